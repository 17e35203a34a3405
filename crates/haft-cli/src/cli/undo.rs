//! `haft undo` and `haft redo`: shows what will change, asks, restores it.

use std::collections::HashMap;
use std::path::Path;

use haft_files::read_named;
use haft_ledger::undo::UndoConflict;
use haft_ledger::{Ledger, ReceiptQuery};
use haft_runtime::{CallOptions, Runtime, UndoPreview, UndoTarget};
use haft_tool::{Cancel, Node, ReceiptState, Reversible, ToolError};

use super::args::{self, UndoFlags};
use super::diff::{ChangeKind, FileDiff, diff, summary};
use super::exit::{CliExit, code};
use super::screen::{self, BAD, GOOD, NAME, NOTE, styled};
use super::show::{MAX_DIFF_FILE_BYTES, MAX_LISTED_FILES};
use super::{CommandResult, terminal};

pub(super) fn undo(args: &args::UndoArgs) -> CommandResult {
    let ledger = Ledger::open(Ledger::home_from_env()?)?;
    // A call and a session name their workspace.
    let (target, workspace) = match (&args.id, &args.session) {
        (Some(id), _) => (UndoTarget::Call(*id), Some(ledger.receipt(*id)?.workspace)),
        (None, Some(id)) => {
            let session = ledger.session(id)?;
            (UndoTarget::Session(session.id), Some(session.workspace))
        }
        (None, None) => (UndoTarget::Last, None),
    };
    let builder = args.how.workspace.builder()?;
    let runtime = match workspace {
        Some(workspace) => builder.workspace(workspace).build()?,
        None => builder.build()?,
    };
    apply(&runtime, &target, &args.how, "Undo")
}

pub(super) fn redo(args: &args::RedoArgs) -> CommandResult {
    apply(&args.how.workspace.builder()?.build()?, &UndoTarget::LastUndo, &args.how, "Redo")
}

fn apply(runtime: &Runtime, target: &UndoTarget, how: &UndoFlags, word: &str) -> CommandResult {
    runtime.recover()?;
    let preview = runtime.undo_preview(target)?;
    if !preview.blocked.is_empty() && preview.restore.changes.is_empty() {
        let (id, why) = &preview.blocked[0];
        screen::error(&format!("call {id} cannot be undone: {why}"));
        return Ok(CliExit::Failed);
    }
    show(runtime, &preview, how.force)?;
    if *target == UndoTarget::Last {
        note_irreversible_later_calls(runtime, &preview)?;
    }
    if !preview.conflicts.is_empty() && !how.force {
        screen::error("files have changed since, so nothing was undone. To overwrite them: --force");
        return Ok(CliExit::Failed);
    }
    if preview.restore.changes.is_empty() {
        screen::note("nothing to do: everything is already as it was before");
        return Ok(CliExit::Done);
    }
    if how.dry_run {
        return Ok(CliExit::Done);
    }
    let calls: Vec<String> = preview.receipts.iter().map(|receipt| receipt.id.to_string()).collect();
    let question = format!("{word} call {}?", calls.join(", "));
    if !how.yes && !terminal::confirm_change(&question) {
        return Ok(CliExit::Denied);
    }
    let cancel = Cancel::new();
    let options = CallOptions { cancel: cancel.clone(), ..CallOptions::default() };
    let result = terminal::wait(&cancel, runtime.undo(&preview, how.force, options))??;
    match result.output.error_kind {
        None => {
            let said = format!(
                "{} (call {id}; to undo it: haft undo {id})",
                result.output.as_text(),
                id = result.receipt.id
            );
            screen::note(&styled(GOOD, &said));
            Ok(CliExit::Done)
        }
        Some(kind) => {
            screen::error(&result.output.as_text());
            Ok(code(kind))
        }
    }
}

/// Prints which later calls in this workspace cannot be undone.
fn note_irreversible_later_calls(runtime: &Runtime, preview: &UndoPreview) -> Result<(), ToolError> {
    let last = preview.receipts.first().map_or(0, |receipt| receipt.id);
    let query = ReceiptQuery { workspace: Some(runtime.workspace().to_owned()), ..ReceiptQuery::default() };
    let entries = runtime.ledger()?.summaries(&query)?;
    for later in entries.iter().map(|entry| &entry.receipt).take_while(|receipt| receipt.id > last) {
        if let (Reversible::No { why }, ReceiptState::Completed | ReceiptState::Failed) =
            (&later.reversible, later.state)
        {
            screen::note(&format!(
                "{}: call {} ({}) ran later and is not undone: {why}",
                styled(NOTE, "note"),
                later.id,
                later.tool
            ));
        }
    }
    Ok(())
}

fn show(runtime: &Runtime, preview: &UndoPreview, force: bool) -> Result<(), ToolError> {
    let ledger = runtime.ledger()?;
    let short = |path: &Path| path.strip_prefix(runtime.workspace()).unwrap_or(path).display().to_string();
    let named = |path: &Path| screen::escape(&short(path));
    let one = |path: &Path, from: &Node, to: &Node| -> Result<String, ToolError> {
        let now = from.as_file().and_then(|_| read_named(path, MAX_DIFF_FILE_BYTES).ok());
        let then = to.as_file().filter(|file| file.size <= MAX_DIFF_FILE_BYTES);
        let then = then.map(|file| ledger.blob(&file.hash)).transpose()?;
        let path = short(path);
        Ok(diff(&FileDiff { path: &path, from: (from, now.as_deref()), to: (to, then.as_deref()) }))
    };
    let conflicts: HashMap<&Path, &UndoConflict> =
        preview.conflicts.iter().map(|conflict| (conflict.path.as_path(), conflict)).collect();
    let changes = &preview.restore.changes;
    let many = changes.len() > MAX_LISTED_FILES;
    for change in changes {
        if let Some(conflict) = conflicts.get(&*change.path) {
            let mark = if force { styled(NOTE, "overwrites") } else { styled(BAD, "conflict") };
            let (left, found) = (conflict.expected.noun(), conflict.found.noun());
            let place = if many { format!("{}: ", named(&change.path)) } else { String::new() };
            screen::out(&format!(
                "{mark}: {place}changed since the call (it left {left}, now there is {found})\n"
            ));
        }
        match &change.moved_to {
            Some(to) => {
                let (from, to) = (styled(NAME, &named(&change.path)), styled(NAME, &named(to)));
                screen::out(&format!("{} {from} to {to}\n", styled(NOTE, "move back")));
            }
            None if many => {}
            None => screen::out(&one(&change.path, &change.before, &change.after)?),
        }
    }
    if many {
        let listed = changes.iter().filter(|change| change.moved_to.is_none()).map(|change| {
            let path = change.path.strip_prefix(runtime.workspace()).unwrap_or(&change.path);
            (path, ChangeKind::between(&change.before, &change.after))
        });
        screen::out(&summary(listed));
    }
    for (id, why) in &preview.blocked {
        screen::note(&format!("{}: call {id} cannot be undone: {why}", styled(NOTE, "note")));
    }
    Ok(())
}
