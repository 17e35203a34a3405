//! `haft undo` and `haft redo`: show what will change, ask, put it back.

use std::collections::HashMap;
use std::path::Path;

use haft_files::read_named;
use haft_ledger::undo::{UndoConflict, UndoStep};
use haft_ledger::{Ledger, ReceiptQuery};
use haft_runtime::{CallOptions, Runtime, UndoPreview, UndoTarget};
use haft_tool::{Cancel, Node, ReceiptState, Reversible, ToolError};

use super::args::{self, How};
use super::diff::{Deed, Sides, diff, summary};
use super::exit::{Exit, code};
use super::screen::{self, BAD, GOOD, NAME, NOTE, painted};
use super::show::{MOST_LINES, MOST_SHOWN_BYTES};
use super::{Done, terminal};

pub(super) fn undo(args: &args::Undo) -> Done {
    let ledger = Ledger::open(Ledger::home_from_env()?)?;
    // A call or a session knows its own workspace.
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
    take_back(&runtime, &target, &args.how, "Undo")
}

pub(super) fn redo(args: &args::Redo) -> Done {
    take_back(&args.how.workspace.builder()?.build()?, &UndoTarget::LastUndo, &args.how, "Redo")
}

fn take_back(runtime: &Runtime, target: &UndoTarget, how: &How, word: &str) -> Done {
    runtime.recover()?;
    let preview = runtime.undo_preview(target)?;
    if !preview.blocked.is_empty() && preview.steps.is_empty() {
        let (id, why) = &preview.blocked[0];
        screen::error(&format!("call {id} cannot be taken back: {why}"));
        return Ok(Exit::Failed);
    }
    show(runtime, &preview, how.force)?;
    if *target == UndoTarget::Last {
        tell_what_stays(runtime, &preview)?;
    }
    if !preview.conflicts.is_empty() && !how.force {
        screen::error("something else has changed since, so nothing was taken back; --force overwrites it");
        return Ok(Exit::Failed);
    }
    if preview.steps.is_empty() {
        screen::note("everything already is as it was before; nothing to do");
        return Ok(Exit::Done);
    }
    if how.dry_run {
        return Ok(Exit::Done);
    }
    let calls: Vec<String> = preview.receipts.iter().map(|receipt| receipt.id.to_string()).collect();
    let question = format!("{word} call {}?", calls.join(", "));
    if !how.yes && !terminal::is_there() {
        screen::error(&format!("{question} Nobody is here to be asked; --yes says yes"));
        return Ok(Exit::Denied);
    }
    if !how.yes && !terminal::confirm(&question) {
        screen::note("nothing was changed");
        return Ok(Exit::Denied);
    }
    let cancel = Cancel::new();
    let options = CallOptions { cancel: cancel.clone(), ..CallOptions::default() };
    let result = terminal::wait(&cancel, runtime.undo(&preview, how.force, options))??;
    match result.output.error_kind {
        None => {
            let said = format!(
                "{} (call {id}; haft undo {id} takes this back)",
                result.output.as_text(),
                id = result.receipt.id
            );
            screen::note(&painted(GOOD, &said));
            Ok(Exit::Done)
        }
        Some(kind) => {
            screen::error(&result.output.as_text());
            Ok(code(kind))
        }
    }
}

/// Says which later calls here may have changed something that no undo knows of.
fn tell_what_stays(runtime: &Runtime, preview: &UndoPreview) -> Result<(), ToolError> {
    let last = preview.receipts.first().map_or(0, |receipt| receipt.id);
    let query = ReceiptQuery { workspace: Some(runtime.workspace().to_owned()), ..ReceiptQuery::default() };
    let entries = runtime.ledger()?.summaries(&query)?;
    for later in entries.iter().map(|entry| &entry.receipt).take_while(|receipt| receipt.id > last) {
        if let (Reversible::No { why }, ReceiptState::Completed | ReceiptState::Failed) =
            (&later.reversible, later.state)
        {
            screen::note(&format!(
                "{}: call {} ({}) came later and stays: {why}",
                painted(NOTE, "note"),
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
    let one = |path: &Path, from: &Node, to: &Node| -> Result<String, ToolError> {
        let now = from.as_file().and_then(|_| read_named(path, MOST_SHOWN_BYTES).ok());
        let then = to.as_file().filter(|file| file.size <= MOST_SHOWN_BYTES);
        let then = then.map(|file| ledger.blob(&file.hash)).transpose()?;
        let path = short(path);
        Ok(diff(&Sides { path: &path, from: (from, now.as_deref()), to: (to, then.as_deref()) }))
    };
    let conflicts: HashMap<&Path, &UndoConflict> =
        preview.conflicts.iter().map(|conflict| (conflict.path.as_path(), conflict)).collect();
    let many = preview.steps.len() > MOST_LINES;
    for step in &preview.steps {
        if let Some(conflict) = conflicts.get(step.path()) {
            let mark = if force { painted(NOTE, "overwrites") } else { painted(BAD, "conflict") };
            let (left, found) = (conflict.expected.noun(), conflict.found.noun());
            let place = if many { format!("{}: ", short(step.path())) } else { String::new() };
            screen::out(&format!(
                "{mark}: {place}the call left {left}, and since then it was changed ({found})\n"
            ));
        }
        match step {
            UndoStep::MoveBack { from, to } => {
                let (from, to) = (painted(NAME, &short(from)), painted(NAME, &short(to)));
                screen::out(&format!("{} {from} to {to}\n", painted(NOTE, "move back")));
            }
            UndoStep::Restore { .. } if many => {}
            UndoStep::Restore { path, expect, to } => screen::out(&one(path, expect, to)?),
        }
    }
    if many {
        let deeds = preview.steps.iter().filter_map(|step| match step {
            UndoStep::Restore { path, expect, to } => {
                let path = path.strip_prefix(runtime.workspace()).unwrap_or(path);
                Some((path, Deed::between(expect, to)))
            }
            UndoStep::MoveBack { .. } => None,
        });
        screen::out(&summary(deeds));
    }
    for (id, why) in &preview.blocked {
        screen::note(&format!("{}: call {id} cannot be taken back: {why}", painted(NOTE, "note")));
    }
    Ok(())
}
