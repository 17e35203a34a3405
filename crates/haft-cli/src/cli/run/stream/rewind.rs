//! Files as they were before a message of the user, through the ledger: what commands changed is restored, too.

use haft_agent::{calls_since, read_run};
use haft_ledger::Ledger;
use haft_runtime::{CallOptions, Runtime, UndoPreview, UndoTarget};
use haft_tool::{ToolError, Value, json};
use similar::{ChangeTag, TextDiff};

/// Takes the files back, or says what would change.
pub(super) fn rewind(runtime: &Runtime, session: &str, message: &str, dry_run: bool) -> Value {
    match try_rewind(runtime, session, message, dry_run) {
        Ok(answer) => answer,
        Err(error) => json!({"canRewind": false, "error": error.message}),
    }
}

fn try_rewind(runtime: &Runtime, session: &str, message: &str, dry_run: bool) -> Result<Value, ToolError> {
    let ledger = runtime.ledger()?;
    let state = read_run(&ledger, session)?.unwrap_or_default();
    let is_meant = |uuid: &Option<String>| uuid.as_deref() == Some(message);
    let Some(at) = state.turns.iter().position(|turn| is_meant(&turn.uuid)) else {
        return Err(ToolError::invalid_arguments(format!(
            "No message of this session has the id {message}."
        )));
    };
    runtime.recover()?;
    let calls = undoable(&ledger, calls_since(&ledger, session, at + 1)?)?;
    if calls.is_empty() {
        return Ok(json!({"canRewind": true, "filesChanged": [], "insertions": 0, "deletions": 0}));
    }
    let preview = runtime.undo_preview(&UndoTarget::Calls(calls))?;
    if let (Some((id, why)), true) = (preview.blocked.first(), preview.restore.changes.is_empty()) {
        return Err(ToolError::failed(format!("Call {id} cannot be undone: {why}")));
    }
    let mut answer = described(&ledger, &preview);
    if let Some(conflict) = preview.conflicts.first() {
        answer["canRewind"] = false.into();
        answer["error"] = format!(
            "{} has changed since, so nothing was restored. `haft undo` shows what it would overwrite.",
            conflict.path.display()
        )
        .into();
        return Ok(answer);
    }
    if !dry_run && !preview.restore.changes.is_empty() {
        let result = runtime.undo_blocking(&preview, false, CallOptions::default())?;
        if result.output.error_kind.is_some() {
            return Err(ToolError::failed(result.output.as_text()));
        }
    }
    Ok(answer)
}

/// The calls that changed something and are not undone.
fn undoable(ledger: &Ledger, calls: Vec<i64>) -> Result<Vec<i64>, ToolError> {
    let mut undoable = Vec::new();
    for id in calls {
        if !ledger.receipt(id)?.changes.is_empty() && ledger.undone_by(id)?.is_none() {
            undoable.push(id);
        }
    }
    Ok(undoable)
}

/// Which files would change, and by how many lines.
fn described(ledger: &Ledger, preview: &UndoPreview) -> Value {
    let (mut paths, mut insertions, mut deletions) = (Vec::new(), 0_usize, 0_usize);
    for change in &preview.restore.changes {
        paths.push(change.path.display().to_string());
        let before = UndoPreview::bytes(ledger, &change.before).unwrap_or_default();
        let after = UndoPreview::bytes(ledger, &change.after).unwrap_or_default();
        if let (Ok(before), Ok(after)) = (std::str::from_utf8(&before), std::str::from_utf8(&after)) {
            for line in TextDiff::from_lines(before, after).iter_all_changes() {
                match line.tag() {
                    ChangeTag::Insert => insertions += 1,
                    ChangeTag::Delete => deletions += 1,
                    ChangeTag::Equal => {}
                }
            }
        }
    }
    let mut answer = json!({
        "canRewind": true, "filesChanged": paths, "insertions": insertions, "deletions": deletions,
    });
    if !preview.blocked.is_empty() {
        let skipped: Vec<String> =
            preview.blocked.iter().map(|(id, why)| format!("call {id}: {why}")).collect();
        answer["skipped"] = json!(skipped);
    }
    answer
}
