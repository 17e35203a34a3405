//! `haft show`: one call in full.

use std::fmt::Write;

use haft_files::{hash, read_named};
use haft_ledger::Ledger;
use haft_tool::{ErrorKind, FileNode, Node, Receipt, ToolError, clip_chars, json, runs_on_build_line};

use super::diff::{ChangeKind, FileDiff, diff, line, summary};
use super::exit::CliExit;
use super::screen::{self, BOLD, FAINT, NAME, styled};
use super::{CommandResult, args, log};

/// Files larger than this are not read to show a diff.
pub(super) const MAX_DIFF_FILE_BYTES: u64 = 16 << 20;
/// More changed files than this get one line each instead of a diff.
pub(super) const MAX_DIFF_FILES: usize = 10;
/// More changed files than this are counted per directory.
pub(super) const MAX_LISTED_FILES: usize = 50;
/// More lines of a result than this are counted, not printed.
const MAX_RESULT_LINES: usize = 50;
/// More refusals than this are counted, not listed.
const MAX_DENIAL_LINES: usize = 10;

pub(super) fn run(args: &args::ShowArgs) -> CommandResult {
    let ledger = Ledger::open(Ledger::home_from_env()?)?;
    let receipt = ledger.receipt(args.id)?;
    if args.output {
        screen::result(&output(&ledger, &receipt)?);
        return Ok(CliExit::Done);
    }
    if args.json {
        let mut shown = json!(receipt);
        shown["result"] = json!(ledger.result(receipt.id)?);
        screen::result(&serde_json::to_string_pretty(&shown)?);
        return Ok(CliExit::Done);
    }
    screen::out(&head(&receipt, ledger.undone_by(receipt.id)?));
    changes(&ledger, &receipt, args.all);
    // An error is in the head already.
    if receipt.error.is_none()
        && let Some(text) = ledger.result(receipt.id)?
    {
        result(receipt.id, &text);
    }
    Ok(CliExit::Done)
}

/// The whole output of a call, or what its caller saw if that was all.
fn output(ledger: &Ledger, receipt: &Receipt) -> Result<String, ToolError> {
    if let Some(hash) = &receipt.full_output {
        return Ok(String::from_utf8_lossy(&ledger.blob(hash)?).into_owned());
    }
    ledger.result(receipt.id)?.ok_or_else(|| {
        let message = format!("Call {} ({}) has no output in the ledger.", receipt.id, receipt.tool);
        ToolError::new(ErrorKind::TargetNotFound, message)
    })
}

/// Prints what the caller saw.
fn result(id: i64, text: &str) {
    let lines = text.lines().count();
    // Indented, so that no line of it looks like one of ours.
    let first: String = text.lines().take(MAX_RESULT_LINES).map(|line| format!("  {line}\n")).collect();
    screen::out(&format!("{}\n{first}", styled(FAINT, "result")));
    if lines > MAX_RESULT_LINES {
        screen::note(&format!("{lines} lines; haft show {id} --output prints them all"));
    }
}

/// Prints what the call changed.
fn changes(ledger: &Ledger, receipt: &Receipt, all: bool) {
    let count = receipt.changes.len();
    if count > MAX_DIFF_FILES || all {
        let lines = receipt.changes.iter().map(|change| {
            let path = change.path.strip_prefix(&receipt.workspace).unwrap_or(&change.path);
            (path, ChangeKind::of(change))
        });
        if count > MAX_LISTED_FILES && !all {
            screen::out(&summary(lines));
            screen::note(&format!("{count} changes; haft show {} --all lists them", receipt.id));
        } else {
            screen::out(&lines.map(|(path, kind)| line(path, &kind)).collect::<String>());
        }
        return;
    }
    for change in &receipt.changes {
        if change.moved_to.is_some() {
            screen::out(&line(&change.path, &ChangeKind::of(change)));
            continue;
        }
        // A file whose content is not stored or is too large is shown by its size.
        let small = |file: &&FileNode| file.size <= MAX_DIFF_FILE_BYTES;
        let before = change.before.as_file().filter(small).and_then(|file| ledger.blob(&file.hash).ok());
        let after = current(&change.path.display().to_string(), &change.after);
        screen::out(&diff(&FileDiff {
            path: &change.path.display().to_string(),
            from: (&change.before, before.as_deref()),
            to: (&change.after, after.as_deref()),
        }));
    }
}

/// The content of `path`, if it is small enough and still the one of `node`.
pub(super) fn current(path: &str, node: &Node) -> Option<Vec<u8>> {
    let file = node.as_file()?;
    let bytes = read_named(path.as_ref(), MAX_DIFF_FILE_BYTES).ok()?;
    (hash(&bytes) == file.hash).then_some(bytes)
}

fn head(receipt: &Receipt, undone: Option<i64>) -> String {
    let mut text = format!(
        "{} {}  {} {}, took {}\n",
        styled(BOLD, &format!("call {}", receipt.id)),
        styled(NAME, &screen::escape(&receipt.tool)),
        log::state(receipt.state).trim_end(),
        screen::ago(receipt.started_at),
        screen::took(receipt.duration_us),
    );
    let mut row = |name: &str, value: &str| {
        // Lines of a value are indented, so that none looks like a row.
        let value = screen::sanitize(value).replace('\n', &format!("\n{:12}", ""));
        let _ = writeln!(text, "{} {value}", styled(FAINT, &format!("{name:<11}")));
    };
    row("session", &receipt.session);
    row("workspace", &receipt.workspace.display().to_string());
    row("input", &clip_chars(&receipt.input.to_string(), 2_000, 0));
    if let Some(decision) = &receipt.decision {
        let rule = decision.rule.as_ref().map(|rule| format!(" [{rule}]")).unwrap_or_default();
        row(
            "decision",
            &format!("{}: {}{rule}", json!(decision.verdict).as_str().unwrap_or_default(), decision.reason),
        );
    }
    if let Some(error) = &receipt.error {
        row("error", &format!("{}: {error}", receipt.error_kind.map(ErrorKind::name).unwrap_or_default()));
    }
    let why = receipt.reversible.why().map(|why| format!(": {why}")).unwrap_or_default();
    row("reversible", &format!("{}{why}", receipt.reversible.word()));
    if let Some(how) = &receipt.enforcement {
        row("enforcement", how);
    }
    for denial in receipt.denials.iter().take(MAX_DENIAL_LINES) {
        row("refused", denial.line().trim_start_matches("Refused: "));
    }
    if receipt.denials.len() > MAX_DENIAL_LINES {
        row("refused", &format!("{} more; see --json", receipt.denials.len() - MAX_DENIAL_LINES));
    }
    if let Some(line) = runs_on_build_line(&receipt.runs_on_build) {
        row("build", &line);
    }
    if !receipt.undoes.is_empty() {
        row("undoes", &receipt.undoes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "));
    }
    if let Some(by) = undone {
        row("undone by", &by.to_string());
    }
    if receipt.full_output.is_some() {
        row("output", &format!("haft show {} --output", receipt.id));
    }
    text
}
