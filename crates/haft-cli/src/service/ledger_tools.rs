//! Answers the ledger tools (`haft_log`, `haft_undo`) of a client.

use haft_ledger::ReceiptQuery;
use haft_runtime::{CallOptions, Runtime, Target};
use haft_tool::{ErrorKind, Logged, Output, ToolError};

/// The largest number of changed paths listed per call.
const MAX_PATHS: usize = 20;

/// The latest calls in this workspace, newest first.
pub(super) fn log(runtime: &Runtime, limit: usize) -> Result<Vec<Logged>, ToolError> {
    let query =
        ReceiptQuery { workspace: Some(runtime.workspace().to_owned()), limit, ..ReceiptQuery::default() };
    let entries = runtime.ledger()?.summaries(&query)?;
    let line = |entry: haft_ledger::ReceiptSummary| {
        let receipt = entry.receipt;
        let paths = receipt.changes.iter().take(MAX_PATHS).map(|change| change.path.display().to_string());
        Logged {
            call: receipt.id,
            paths: paths.collect(),
            tool: receipt.tool,
            state: receipt.state,
            at: receipt.started_at,
            changes: entry.change_count,
            undone_by: entry.undone_by,
        }
    };
    Ok(entries.into_iter().map(line).collect())
}

/// Undoes a call of this workspace.
pub(super) fn undo(runtime: &Runtime, call: Option<i64>) -> Result<Output, ToolError> {
    let target = match call {
        None => Target::Last,
        Some(id) if runtime.ledger()?.receipt(id)?.workspace == runtime.workspace() => Target::Call(id),
        Some(id) => {
            let why = format!("Call {id} belongs to another workspace. Undo it there.");
            return Err(ToolError::new(ErrorKind::TargetNotFound, why));
        }
    };
    let preview = runtime.undo_preview(&target)?;
    if let ([], Some((id, why))) = (preview.steps.as_slice(), preview.blocked.first()) {
        return Err(ToolError::failed(format!("Call {id} cannot be undone: {why}")));
    }
    let done = runtime.undo_blocking(&preview, false, CallOptions::default())?;
    Ok(done.output)
}
