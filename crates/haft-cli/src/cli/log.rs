//! `haft log`: the calls, newest first.

use std::fmt::Write;

use haft_ledger::{ReceiptQuery, ReceiptSummary};
use haft_tool::{Effect, Receipt, ReceiptState, clip_chars, json};

use super::exit::CliExit;
use super::screen::{self, BAD, FAINT, GOOD, NAME, NOTE, styled};
use super::{CommandResult, args};

pub(super) fn run(args: &args::LogArgs) -> CommandResult {
    let runtime = args.workspace.builder()?.build()?;
    runtime.recover()?;
    let ledger = runtime.ledger()?;
    let session = args.session.as_ref().map(|id| ledger.session(id)).transpose()?.map(|session| session.id);
    let here = !args.all && session.is_none();
    let query = ReceiptQuery {
        workspace: here.then(|| runtime.workspace().to_owned()),
        session,
        limit: args.limit,
        only_changes: args.changes,
        ..ReceiptQuery::default()
    };
    if args.json {
        let receipts = ledger.receipts(&query)?;
        // Not `out`, which would escape what JSON does not.
        for receipt in &receipts {
            screen::result(&json!(receipt).to_string());
        }
        return Ok(CliExit::Done);
    }
    let entries = ledger.summaries(&query)?;
    let mut text = String::new();
    for entry in &entries {
        let _ = writeln!(text, "{}", line(entry, args.all));
    }
    if entries.is_empty() {
        let place = if here { format!(" in {}", runtime.workspace().display()) } else { String::new() };
        screen::note(&format!("no calls are recorded{place}"));
    }
    screen::out(&text);
    Ok(CliExit::Done)
}

fn line(summary: &ReceiptSummary, with_place: bool) -> String {
    let ReceiptSummary { receipt, change_count, undone_by, .. } = summary;
    let mut line = format!(
        "{:>6}  {:<8} {} {} {}",
        receipt.id,
        screen::ago(receipt.started_at),
        state(receipt.state),
        styled(NAME, &format!("{:<6}", screen::escape(&receipt.tool))),
        clip_chars(&screen::escape(&about(receipt)), 80, 0),
    );
    if *change_count > 0 {
        let _ = write!(line, "  {}", styled(FAINT, &format!("{change_count} changed")));
    }
    if !receipt.runs_on_build.is_empty() {
        let _ = write!(line, "  {}", styled(NOTE, "changes what runs on build"));
    }
    if let Some(by) = undone_by {
        let _ = write!(line, "  {}", styled(NOTE, &format!("undone by {by}")));
    }
    if with_place {
        let _ =
            write!(line, "  {}", styled(FAINT, &screen::escape(&receipt.workspace.display().to_string())));
    }
    line
}

/// How a call ended, in one coloured word.
pub(super) fn state(state: ReceiptState) -> String {
    match state {
        ReceiptState::Completed => styled(GOOD, "done       "),
        ReceiptState::Running => styled(NOTE, "running    "),
        ReceiptState::Failed => styled(BAD, "failed     "),
        ReceiptState::Denied => styled(BAD, "denied     "),
        ReceiptState::Interrupted => styled(NOTE, "interrupted"),
        other => styled(NOTE, &format!("{:11}", other.word())),
    }
}

/// The target of the call, in one line.
pub(super) fn about(receipt: &Receipt) -> String {
    let target = match receipt.effects.first() {
        Some(Effect::Read { path } | Effect::Write { path }) => {
            let short = path.strip_prefix(&receipt.workspace).unwrap_or(path);
            if short.as_os_str().is_empty() { ".".to_owned() } else { short.display().to_string() }
        }
        Some(Effect::Run { command }) => command.replace('\n', " ⏎ "),
        Some(Effect::Reach { host }) => host.clone(),
        Some(Effect::Send { channel }) => channel.clone(),
        Some(Effect::Spawn { agent }) => agent.clone(),
        Some(Effect::Serve { server, .. }) => server.clone(),
        Some(Effect::Configure { setting, .. }) => setting.clone(),
        Some(Effect::Inspect { what }) => what.clone(),
        Some(Effect::StopTask { task }) => task.clone(),
        Some(Effect::Undo { .. } | Effect::Note { .. } | Effect::Ask | Effect::Unsandboxed) | None => {
            String::new()
        }
    };
    let undone = &receipt.undoes;
    let what = receipt.input.get("pattern").and_then(|pattern| pattern.as_str());
    match (what, undone.as_slice()) {
        (Some(pattern), _) => format!("{pattern} in {target}"),
        (None, []) => target,
        (None, undone) => {
            format!("of {}", undone.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
        }
    }
}
