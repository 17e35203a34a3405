//! What became of calls that were started by a process that died.
//!
//! The ledger has a receipt of a call before the call has any effect, so a call without one has done nothing and can be made. One
//! with a completed receipt has its result there; only the event was lost. Anything else was interrupted: it is reported, unless all
//! that it could do is recorded and nothing was done.

use std::path::PathBuf;

use haft_ledger::{Ledger, ReceiptQuery};
use haft_model::{ContentPart, ToolCall, ToolResult};
use haft_runtime::{Runtime, UndoTarget};
use haft_tool::{Change, Effect, ErrorKind, Receipt, ReceiptState, Reversible, ToolError};

use crate::call_results;

/// Receipts that are read at once.
const READ_RECEIPTS: usize = 200;

/// What became of a call.
#[derive(Debug, PartialEq)]
pub(crate) enum CallFate {
    /// It has done nothing.
    NotBegun,
    /// It has a result, and a receipt of this number.
    Ended(Box<ToolResult>, i64),
}

/// Finds out what became of a call of a session that did not start before `since`, in milliseconds since 1970.
pub(crate) fn fate_of(
    call: &ToolCall,
    runtime: &Runtime,
    session: &str,
    since: u64,
) -> Result<CallFate, ToolError> {
    let ledger = runtime.ledger()?;
    let Some(receipt) = receipt_of(&ledger, &call.id, session, since)? else { return Ok(CallFate::NotBegun) };
    let result = match receipt.state {
        ReceiptState::Running => {
            return Err(ToolError::new(
                ErrorKind::Conflict,
                format!(
                    "Another process still makes call {} of this run. Wait until it has ended, or continue a copy with \
                     --fork-session.",
                    receipt.id
                ),
            ));
        }
        ReceiptState::Interrupted => {
            let changed = changed_paths(&receipt, runtime);
            if changed.is_empty() && is_all_recorded(&receipt, runtime) {
                return Ok(CallFate::NotBegun);
            }
            call_results::interrupted(call, &changed)
        }
        _ => ToolResult {
            call_id: call.id.clone(),
            name: call.name.clone(),
            content: vec![ContentPart::text(ledger.result(receipt.id)?.unwrap_or_default())],
            is_error: receipt.error_kind.is_some(),
        },
    };
    Ok(CallFate::Ended(Box::new(result), receipt.id))
}

/// The paths that an interrupted call left changed. A receipt of a file tool has what the call was about to change.
fn changed_paths(receipt: &Receipt, runtime: &Runtime) -> Vec<PathBuf> {
    if receipt.changes.is_empty() {
        return Vec::new();
    }
    let to_paths = |changes: &[Change]| changes.iter().map(|change| change.path.clone()).collect();
    match runtime.undo_preview(&UndoTarget::Call(receipt.id)) {
        Ok(preview) if preview.conflicts.is_empty() && preview.blocked.is_empty() => {
            to_paths(&preview.restore.changes)
        }
        _ => to_paths(&receipt.changes),
    }
}

/// Whether all that an interrupted call could do is in its changes, so that one without changes has done nothing.
fn is_all_recorded(receipt: &Receipt, runtime: &Runtime) -> bool {
    let is_recorded = |effect: &Effect| match effect {
        Effect::Read { .. } | Effect::Inspect { .. } | Effect::Write { .. } | Effect::Ask => true,
        Effect::Run { .. } => runtime.confines_commands() && receipt.reversible == Reversible::Yes,
        _ => false,
    };
    receipt.effects.iter().all(is_recorded)
}

/// The newest receipt of a call of a session.
pub(crate) fn receipt_of(
    ledger: &Ledger,
    call_id: &str,
    session: &str,
    since: u64,
) -> Result<Option<Receipt>, ToolError> {
    let mut query =
        ReceiptQuery { session: Some(session.to_owned()), limit: READ_RECEIPTS, ..ReceiptQuery::default() };
    loop {
        let read = ledger.summaries(&query)?;
        let Some(oldest) = read.last().map(|summary| summary.receipt.id) else { return Ok(None) };
        // A call gets its number while it runs, so single ones may be out of order.
        let is_too_old = read.iter().all(|summary| summary.receipt.started_at < since);
        let is_it = |receipt: &Receipt| receipt.call_id == call_id && receipt.started_at >= since;
        if let Some(found) = read.into_iter().find(|summary| is_it(&summary.receipt)) {
            return Ok(Some(ledger.complete(found)?));
        }
        if is_too_old {
            return Ok(None);
        }
        query.before = Some(oldest);
    }
}
