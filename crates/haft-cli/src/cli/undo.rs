//! `haft undo` and `haft redo`: shows what will change, asks, restores it.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use haft_agent::{calls_since, rewind_run};
use haft_ledger::{EventLog, Ledger, ReceiptQuery};
use haft_runtime::{CallOptions, Runtime, UndoPaths, UndoPreview, UndoTarget};
use haft_tool::{Cancel, ReceiptState, Reversible, ToolError};

use super::args::WorkspaceArgs;
use super::exit::{CliExit, code};
use super::local_time::point_in_time;
use super::screen::{self, GOOD, NOTE, styled};
use super::terminal::StatusLine;
use super::{CommandResult, paths, terminal, undo_preview};

/// More later calls are not looked at for what stays.
const MAX_LATER_CALLS: usize = 1_000;
/// The numbers of more calls are not listed.
const MAX_NAMED_CALLS: usize = 10;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
haft undo                     # the last call that changed something here\n  \
haft undo 24 25               # these calls\n  \
haft undo 24 -- src           # only what call 24 changed in src\n  \
haft undo -n 3                # the last three calls\n  \
haft undo --to 20             # everything after call 20\n  \
haft undo --since 10m         # everything in the last ten minutes\n  \
haft undo --run h8zxed8q --turn 2   # a run of haft -p, from its second prompt on\n  \
haft undo 24 --merge          # keep what changed since in other lines of the same files")]
pub(super) struct UndoArgs {
    /// Numbers of calls, from `haft log` [default: the last call that changed something].
    #[arg(value_name = "ID", value_parser = undone_call)]
    ids: Vec<i64>,
    /// Only what the calls changed in these paths.
    #[arg(last = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Undo the last N calls in this workspace that changed something.
    #[arg(short = 'n', long = "last", value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["ids", "to", "since", "session"])]
    last: Option<u32>,
    /// Undo everything that calls in this workspace changed after call ID.
    #[arg(long, value_name = "ID", value_parser = paths::call_id, conflicts_with_all = ["ids", "since", "session"])]
    to: Option<i64>,
    /// Undo everything that calls in this workspace changed since then: an age such as 10m, or a date.
    #[arg(long, value_name = "TIME", value_parser = point_in_time, conflicts_with_all = ["ids", "session"])]
    since: Option<u64>,
    /// Undo all calls of this session.
    #[arg(long, value_name = "SESSION", conflicts_with = "ids")]
    session: Option<String>,
    /// Undo what this run of `haft -p` did from --turn on, and take its conversation back to before that.
    #[arg(long, value_name = "SESSION", requires = "turn", conflicts_with_all = ["ids", "paths", "last", "to", "since", "session"])]
    run: Option<String>,
    /// Number of the prompt of the run, counted from 1.
    #[arg(long, value_name = "N", requires = "run")]
    turn: Option<usize>,
    #[command(flatten)]
    how: UndoFlags,
}

#[derive(Debug, Args)]
pub(super) struct RedoArgs {
    #[command(flatten)]
    how: UndoFlags,
}

#[derive(Debug, Args)]
struct UndoFlags {
    /// Do not ask for confirmation.
    #[arg(short, long)]
    yes: bool,
    /// Only show what would change.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Overwrite files that have changed since the call.
    #[arg(long)]
    force: bool,
    /// Merge text files that have changed since the call: what changed since stays where it is in other lines.
    #[arg(long, conflicts_with = "force")]
    merge: bool,
    #[command(flatten)]
    workspace: WorkspaceArgs,
}

/// Reads the number of a call; a path needs `--` before it.
fn undone_call(text: &str) -> Result<i64, String> {
    paths::call_id(text).map_err(|why| {
        let is_number = text.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
        if is_number { why } else { format!("{why}. To undo what changed in a path: haft undo -- {text}") }
    })
}

pub(super) fn undo(args: &UndoArgs) -> CommandResult {
    let ledger = Ledger::open(Ledger::home_from_env()?)?;
    if let (Some(run), Some(turn)) = (&args.run, args.turn) {
        return undo_turns(ledger, run, turn, &args.how);
    }
    // A call and a session name their workspace.
    let (target, workspace) = match (args.ids.as_slice(), &args.session) {
        ([id], _) => (UndoTarget::Call(*id), Some(ledger.receipt(*id)?.workspace)),
        ([], Some(id)) => {
            let session = ledger.session_in(id, &args.how.workspace.folder()?)?;
            (UndoTarget::Session(session.id), Some(session.workspace))
        }
        ([], None) => (target_here(args, &ledger)?, None),
        (ids, _) => (UndoTarget::Calls(ids.to_vec()), Some(common_workspace(&ledger, ids)?)),
    };
    let builder = args.how.workspace.builder()?;
    let runtime = match workspace {
        Some(workspace) => builder.workspace(workspace).build()?,
        None => builder.build()?,
    };
    let only = args.paths.iter().map(|path| paths::named(path)).collect::<Result<Vec<_>, _>>()?;
    apply(&runtime, &target, &UndoPaths { only, ..UndoPaths::default() }, &args.how, "Undo")
}

/// Undoes the calls of a run from a turn on, then takes the conversation back.
fn undo_turns(ledger: Ledger, run: &str, turn: usize, how: &UndoFlags) -> CommandResult {
    let session = ledger.session_in(run, &how.workspace.folder()?)?;
    let runtime = how.workspace.builder()?.workspace(&session.workspace).build()?;
    let _driver = if how.dry_run { None } else { Some(ledger.drive_run(&session.id)?) };
    runtime.recover()?;
    let mut calls = calls_since(&ledger, &session.id, turn)?;
    let is_undoable = |id: &i64| -> Result<bool, ToolError> {
        Ok(!ledger.receipt(*id)?.changes.is_empty() && ledger.undone_by(*id)?.is_none())
    };
    let undoable = calls.iter().map(is_undoable).collect::<Result<Vec<bool>, _>>()?;
    let mut undoable = undoable.into_iter();
    calls.retain(|_| undoable.next() == Some(true));
    let exit = if calls.is_empty() {
        let question = format!("Take the conversation of run {} back to before turn {turn}?", session.id);
        let is_wanted = how.dry_run || how.yes || terminal::confirm_change(&question);
        if is_wanted { CliExit::Done } else { CliExit::Denied }
    } else {
        apply(&runtime, &UndoTarget::Calls(calls), &UndoPaths::default(), how, "Undo")?
    };
    if exit == CliExit::Done && !how.dry_run {
        rewind_run(&(Arc::new(ledger) as Arc<dyn EventLog>), &session.id, turn)?;
        screen::note(&format!("the conversation of run {} is as it was before turn {turn}", session.id));
    }
    Ok(exit)
}

pub(super) fn redo(args: &RedoArgs) -> CommandResult {
    apply(
        &args.how.workspace.builder()?.build()?,
        &UndoTarget::LastUndo,
        &UndoPaths::default(),
        &args.how,
        "Redo",
    )
}

fn target_here(args: &UndoArgs, ledger: &Ledger) -> Result<UndoTarget, ToolError> {
    Ok(match (args.last, args.to, args.since) {
        (Some(count), _, _) => UndoTarget::LastCalls(usize::try_from(count).unwrap_or(usize::MAX)),
        (_, Some(id), _) => UndoTarget::AfterCall { id: ledger.receipt(id)?.id, session: None },
        (_, _, Some(time)) => UndoTarget::Since(time),
        _ => UndoTarget::Last,
    })
}

fn common_workspace(ledger: &Ledger, ids: &[i64]) -> Result<PathBuf, ToolError> {
    let mut workspaces = ids.iter().map(|id| ledger.receipt(*id).map(|receipt| receipt.workspace));
    let first = workspaces.next().unwrap_or_else(|| Err(ToolError::internal("no calls were named")))?;
    for other in workspaces {
        if other? != first {
            let why = "these calls were made in different workspaces; undo those of each one on their own";
            return Err(ToolError::invalid_arguments(why));
        }
    }
    Ok(first)
}

fn apply(
    runtime: &Runtime,
    target: &UndoTarget,
    paths: &UndoPaths,
    how: &UndoFlags,
    word: &str,
) -> CommandResult {
    runtime.recover()?;
    let looking = StatusLine::started("comparing files");
    let preview = runtime.undo_preview_in(target, paths)?;
    drop(looking);
    if !preview.blocked.is_empty() && preview.restore.changes.is_empty() {
        let (id, why) = &preview.blocked[0];
        screen::error(&format!("call {id} cannot be undone: {why}"));
        return Ok(CliExit::Failed);
    }
    let preview = if how.merge { runtime.merge_conflicts(preview)? } else { preview };
    undo_preview::show(runtime, &preview, how.force)?;
    note_what_stays(runtime, target, &preview)?;
    let preview = match resolve(runtime, preview, how)? {
        Ok(preview) => preview,
        Err(exit) => return Ok(exit),
    };
    if preview.restore.changes.is_empty() {
        screen::note("nothing to do: everything is already as it was before");
        return Ok(CliExit::Done);
    }
    if how.dry_run {
        return Ok(CliExit::Done);
    }
    if !how.yes && !terminal::confirm_change(&question(&preview, word)) {
        return Ok(CliExit::Denied);
    }
    let cancel = Cancel::new();
    let status_line = StatusLine::on(word);
    let options =
        CallOptions { cancel: cancel.clone(), watch: status_line.watch(), ..CallOptions::default() };
    let result = terminal::wait(&cancel, runtime.undo(&preview, how.force, options))??;
    drop(status_line);
    match result.output.error_kind {
        None => {
            let said = format!(
                "{} (call {id}; to undo it: haft undo {id})",
                result.output.as_text(),
                id = result.receipt.id
            );
            screen::note(&styled(GOOD, &said));
            if let Some(why) = result.receipt.reversible.why() {
                screen::note(&format!("{}: {why}", styled(NOTE, "note")));
            }
            Ok(CliExit::Done)
        }
        Some(kind) => {
            screen::error(&result.output.as_text());
            Ok(code(kind))
        }
    }
}

/// What to do about conflicts: the preview to perform, or the exit code if nothing is done.
fn resolve(
    runtime: &Runtime,
    preview: UndoPreview,
    how: &UndoFlags,
) -> Result<Result<UndoPreview, CliExit>, ToolError> {
    if preview.conflicts.is_empty() || how.force {
        return Ok(Ok(preview));
    }
    if how.merge {
        screen::error(
            "not everything can be merged, so nothing was undone. To overwrite it: --force. To undo only some paths: \
             haft undo ID -- PATH",
        );
        return Ok(Err(CliExit::Failed));
    }
    let merged = runtime.merge_conflicts(preview.clone())?;
    let can_merge = merged.conflicts.is_empty();
    if can_merge && !how.yes && !how.dry_run && terminal::is_interactive() {
        screen::note("These files have changed since, in other lines. Merged, they would change as follows:");
        undo_preview::show(runtime, &merged, false)?;
        return Ok(if terminal::confirm("Merge?") { Ok(merged) } else { Err(nothing_changed()) });
    }
    let merge = if can_merge { "To keep what changed since in other lines: --merge. " } else { "" };
    screen::error(&format!(
        "files have changed since, so nothing was undone. {merge}To overwrite them: --force"
    ));
    Ok(Err(CliExit::Failed))
}

fn nothing_changed() -> CliExit {
    screen::note("nothing was changed");
    CliExit::Denied
}

fn question(preview: &UndoPreview, word: &str) -> String {
    let calls: Vec<String> = preview.receipts.iter().map(|receipt| receipt.id.to_string()).collect();
    let partly = if preview.left_out > 0 { " in these paths" } else { "" };
    match calls.as_slice() {
        [one] => format!("{word} call {one}{partly}?"),
        [newest, .., oldest] if calls.len() > MAX_NAMED_CALLS => {
            format!("{word} {} calls, {newest} to {oldest}{partly}?", calls.len())
        }
        calls => format!("{word} calls {}{partly}?", calls.join(", ")),
    }
}

/// Prints what is not undone: changes outside the given paths, and later calls in this workspace that cannot be undone.
fn note_what_stays(runtime: &Runtime, target: &UndoTarget, preview: &UndoPreview) -> Result<(), ToolError> {
    let note = |text: &str| screen::note(&format!("{}: {text}", styled(NOTE, "note")));
    if preview.left_out > 0 {
        let count = screen::count(preview.left_out as u64, "change");
        note(&format!("{count} of these calls outside the given paths will stay"));
    }
    let oldest = match target {
        UndoTarget::Last => preview.receipts.first().map(|receipt| receipt.id),
        UndoTarget::LastCalls(_) | UndoTarget::Since(_) => preview.receipts.last().map(|receipt| receipt.id),
        UndoTarget::AfterCall { id, .. } => Some(*id),
        _ => None,
    };
    let Some(oldest) = oldest else { return Ok(()) };
    let query = ReceiptQuery {
        workspace: Some(runtime.workspace().to_owned()),
        limit: MAX_LATER_CALLS,
        ..ReceiptQuery::default()
    };
    let entries = runtime.ledger()?.summaries(&query)?;
    for later in entries.iter().map(|entry| &entry.receipt).take_while(|receipt| receipt.id > oldest) {
        let why = match (&later.reversible, later.state) {
            (_, ReceiptState::Running) => "it is still running",
            (Reversible::No { why }, ReceiptState::Completed | ReceiptState::Failed) => why,
            _ => continue,
        };
        note(&format!("call {} ({}) ran later and is not undone: {why}", later.id, later.tool));
    }
    Ok(())
}
