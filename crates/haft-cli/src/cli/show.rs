//! `haft show`: one call in full.

use std::fmt::Write;

use clap::Args;
use haft_ledger::Ledger;
use haft_runtime::recorded_content;
use haft_tool::{ChangeKind, ErrorKind, Receipt, ToolError, clip_chars, json, runs_on_build_line};

use super::diff::{FileDiff, change_lines, diff, line, summary};
use super::exit::CliExit;
use super::local_time::local_time_with_offset;
use super::screen::{self, BOLD, FAINT, NAME, styled};
use super::view::ViewArgs;
use super::{CommandResult, log, paths};

/// More changed files than this get one line each instead of a diff.
pub(super) const MAX_DIFF_FILES: usize = 10;
/// More changed files than this are counted per directory.
pub(super) const MAX_LISTED_FILES: usize = 50;
/// More refusals than this are counted, not listed.
const MAX_DENIAL_LINES: usize = 10;
/// How much of an error the head has; the result has all of it.
const MAX_ERROR_CHARS: usize = 300;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  haft show 14\n  haft show 14 --stat\n  haft show 14 --output > output.txt"
)]
pub(super) struct ShowArgs {
    /// Number of the call, from `haft log`.
    #[arg(value_parser = paths::call_id)]
    id: i64,
    /// Print only the full output, even if the caller saw a truncated one.
    #[arg(long)]
    output: bool,
    /// List every change.
    #[arg(long)]
    all: bool,
    /// List the changed paths without their contents.
    #[arg(long)]
    stat: bool,
    /// Print the receipt as JSON, with the result.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    view: ViewArgs,
}

pub(super) fn run(args: &ShowArgs) -> CommandResult {
    args.view.set_colors();
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
    let session = ledger.session(&receipt.session).ok().and_then(|session| session.name);
    let mut text = head(&receipt, session.as_deref(), ledger.undone_by(receipt.id)?);
    text.push_str(&changes(&ledger, &receipt, args.all, args.stat));
    if let Some(result) = ledger.result(receipt.id)? {
        // Indented, so that no line of it looks like one of ours.
        let lines: String = result.lines().map(|line| format!("  {line}\n")).collect();
        let _ = write!(text, "{}\n{}", styled(FAINT, "result"), screen::sanitize(&lines));
    }
    args.view.show(&text);
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

/// What the call changed.
pub(super) fn changes(ledger: &Ledger, receipt: &Receipt, all: bool, only_stat: bool) -> String {
    let count = receipt.changes.len();
    if all || (only_stat && count <= MAX_LISTED_FILES) {
        return change_lines(receipt, usize::MAX, "");
    }
    if count > MAX_LISTED_FILES {
        let lines = receipt.changes.iter().map(|change| {
            let path = change.path.strip_prefix(&receipt.workspace).unwrap_or(&change.path);
            (path, ChangeKind::of(change))
        });
        let more = format!("{count} changes; haft show {} --all lists them", receipt.id);
        return format!("{}{}\n", summary(lines), styled(FAINT, &more));
    }
    if count > MAX_DIFF_FILES {
        return change_lines(receipt, usize::MAX, "");
    }
    let mut text = String::new();
    for change in &receipt.changes {
        if change.moved_to.is_some() {
            text.push_str(&line(&change.path, &ChangeKind::of(change)));
            continue;
        }
        // A file whose content is not stored or is too large is shown by its size.
        let before = recorded_content(ledger, &change.path, &change.before);
        let after = recorded_content(ledger, &change.path, &change.after);
        text.push_str(&diff(&FileDiff {
            path: &change.path.display().to_string(),
            from: (&change.before, before.as_deref()),
            to: (&change.after, after.as_deref()),
        }));
    }
    text
}

fn head(receipt: &Receipt, session: Option<&str>, undone: Option<i64>) -> String {
    let mut text = format!(
        "{} {}  {} {}, took {}\n",
        styled(BOLD, &format!("call {}", receipt.id)),
        styled(NAME, &screen::escape(&receipt.tool)),
        log::outcome(receipt, 0),
        local_time_with_offset(receipt.started_at),
        screen::took(receipt.duration_us),
    );
    let mut row = |name: &str, value: &str| {
        // Lines of a value are indented, so that none looks like a row.
        let value = screen::sanitize(value).replace('\n', &format!("\n{:12}", ""));
        let _ = writeln!(text, "{} {value}", styled(FAINT, &format!("{name:<11}")));
    };
    row(
        "session",
        &session.map_or_else(|| receipt.session.clone(), |name| format!("{} ({name})", receipt.session)),
    );
    row("workspace", &receipt.workspace.display().to_string());
    row("input", &clip_chars(&receipt.input.to_string(), 2_000, 0));
    if let Some(note) = &receipt.input_note {
        row("arguments", note);
    }
    if let Some(decision) = &receipt.decision {
        let rule = decision.rule.as_ref().map(|rule| format!(" [{rule}]")).unwrap_or_default();
        row(
            "decision",
            &format!("{}: {}{rule}", json!(decision.verdict).as_str().unwrap_or_default(), decision.reason),
        );
    }
    if let Some(error) = &receipt.error {
        let error = clip_chars(error.lines().next().unwrap_or_default(), MAX_ERROR_CHARS, 0);
        row("error", &format!("{}: {error}", receipt.error_kind.map(ErrorKind::name).unwrap_or_default()));
    }
    if let Some(code) = receipt.exit_code {
        row("exit code", &code.to_string());
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
