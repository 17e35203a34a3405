//! Which calls an undo is about.

use std::collections::BTreeSet;

use haft_ledger::ReceiptQuery;
use haft_tool::{ErrorKind, Receipt, ReceiptState, Reversible, ToolError};

use crate::history::History;
use crate::undo::UndoTarget;
use crate::undo_paths::UndoPaths;

/// How many calls are read at once while looking for one.
const PAGE_CALLS: usize = 50;

/// The calls of a workspace after a call, since a time and of a session; all calls by default.
#[derive(Default)]
struct UndoRange<'a> {
    after: i64,
    /// In milliseconds since 1970.
    since: u64,
    session: Option<&'a str>,
}

impl History {
    /// The calls that `target` means, if they can be undone; newest first.
    pub(crate) fn find(&self, target: &UndoTarget, paths: &UndoPaths) -> Result<Vec<Receipt>, ToolError> {
        let nothing = |what: String| ToolError::new(ErrorKind::TargetNotFound, what);
        let (ledger, here) = (self.ledger()?, self.workspace().display());
        match target {
            UndoTarget::Last if !paths.only.is_empty() => {
                let last = self.undoable(&UndoRange::default(), 1, paths)?;
                if last.is_empty() {
                    return Err(nothing(format!(
                        "no call in {here} that could be undone changed these paths"
                    )));
                }
                Ok(last)
            }
            UndoTarget::LastCalls(count) => {
                let last = self.undoable(&UndoRange::default(), *count, paths)?;
                if last.is_empty() {
                    return Err(nothing(format!("there is nothing to undo in {here}")));
                }
                Ok(last)
            }
            UndoTarget::AfterCall { id, session } => {
                let range = UndoRange { after: *id, session: session.as_deref(), ..UndoRange::default() };
                let later = self.undoable(&range, usize::MAX, paths)?;
                if later.is_empty() {
                    return Err(nothing(format!(
                        "no call after {id} in {here} changed anything that could be undone"
                    )));
                }
                Ok(later)
            }
            UndoTarget::Since(time) => {
                let range = UndoRange { since: *time, ..UndoRange::default() };
                let since = self.undoable(&range, usize::MAX, paths)?;
                if since.is_empty() {
                    return Err(nothing(format!(
                        "no call in {here} since then changed anything that could be undone"
                    )));
                }
                Ok(since)
            }
            UndoTarget::Calls(ids) => {
                let ids: BTreeSet<i64> = ids.iter().copied().collect();
                let mut receipts = Vec::new();
                for id in ids.into_iter().rev() {
                    receipts.extend(self.find(&UndoTarget::Call(id), paths)?);
                }
                Ok(receipts)
            }
            UndoTarget::Last => {
                let last = ledger.next_to_undo(self.workspace())?;
                Ok(vec![last.ok_or_else(|| nothing(format!("there is nothing to undo in {here}")))?])
            }
            UndoTarget::LastUndo => {
                let last = ledger.next_to_redo(self.workspace())?;
                Ok(vec![last.ok_or_else(|| nothing(format!("there is nothing to redo in {here}")))?])
            }
            UndoTarget::LastOfSession(session) => {
                let last = self.last_of_session(session)?;
                Ok(vec![last.ok_or_else(|| {
                    nothing("this session has changed nothing that could be undone".to_owned())
                })?])
            }
            UndoTarget::Call(id) => {
                let receipt = ledger.receipt(*id)?;
                if let Some(by) = ledger.undone_by(*id)? {
                    return Err(nothing(format!(
                        "call {id} has already been undone, by call {by}; undo {by} to redo it"
                    )));
                }
                if receipt.changes.is_empty() && receipt.reversible == Reversible::Yes {
                    return Err(nothing(format!("call {id} ({}) changed nothing", receipt.tool)));
                }
                Ok(vec![receipt])
            }
            UndoTarget::Session(id) => {
                let session = ledger.session(id)?.id;
                let query = ReceiptQuery {
                    session: Some(session.clone()),
                    only_changes: true,
                    limit: usize::MAX,
                    ..ReceiptQuery::default()
                };
                let mut receipts = Vec::new();
                for receipt in ledger.receipts(&query)? {
                    if receipt.undoes.is_empty() && ledger.undone_by(receipt.id)?.is_none() {
                        receipts.push(receipt);
                    }
                }
                if receipts.is_empty() {
                    return Err(nothing(format!("session {session} changed nothing that could be undone")));
                }
                Ok(receipts)
            }
        }
    }

    /// At most `limit` calls of a range that changed something in these paths and have ended; newest first. Calls that have been
    /// undone are not among them, nor are undos, except for those that restored what an earlier call had changed: without
    /// them, the files would not become what they were before the range.
    fn undoable(
        &self,
        range: &UndoRange<'_>,
        limit: usize,
        paths: &UndoPaths,
    ) -> Result<Vec<Receipt>, ToolError> {
        let ledger = self.ledger()?;
        let mut query = ReceiptQuery {
            workspace: Some(self.workspace().to_owned()),
            session: range.session.map(str::to_owned),
            only_changes: true,
            limit: PAGE_CALLS,
            ..ReceiptQuery::default()
        };
        let mut found = Vec::new();
        // The calls that are in effect again once the undos found so far are undone.
        let mut reopened = BTreeSet::new();
        loop {
            let entries = ledger.summaries(&query)?;
            let Some(oldest) = entries.last() else { break };
            query.before = Some(oldest.receipt.id);
            for entry in entries {
                let receipt = &entry.receipt;
                let ended = receipt.started_at.saturating_add(receipt.duration_us / 1_000 + 1);
                // A call gets its number while it runs, so one that had ended by then has only older ones before it.
                let is_running = receipt.state == ReceiptState::Running;
                if found.len() == limit || receipt.id <= range.after || (ended < range.since && !is_running) {
                    return Ok(found);
                }
                if is_running || receipt.started_at < range.since {
                    continue;
                }
                let is_open = match entry.undone_by {
                    Some(_) => reopened.contains(&receipt.id),
                    None => receipt.undoes.is_empty() || self.reaches_outside(&receipt.undoes, range)?,
                };
                if !is_open {
                    continue;
                }
                reopened.extend(receipt.undoes.iter().copied());
                let receipt = ledger.complete(entry)?;
                if receipt.changes.iter().any(|change| paths.include(change)) {
                    found.push(receipt);
                }
            }
        }
        Ok(found)
    }

    /// Whether one of the calls is not in the range.
    fn reaches_outside(&self, calls: &[i64], range: &UndoRange<'_>) -> Result<bool, ToolError> {
        for id in calls {
            if *id <= range.after {
                return Ok(true);
            }
            let receipt = self.ledger()?.receipt(*id)?;
            let is_in_session = range.session.is_none_or(|session| receipt.session == session);
            if receipt.started_at < range.since || !is_in_session {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn last_of_session(&self, session: &str) -> Result<Option<Receipt>, ToolError> {
        let ledger = self.ledger()?;
        let mut query = ReceiptQuery {
            session: Some(session.to_owned()),
            only_changes: true,
            limit: PAGE_CALLS,
            ..ReceiptQuery::default()
        };
        loop {
            let entries = ledger.summaries(&query)?;
            let Some(oldest) = entries.last() else { return Ok(None) };
            query.before = Some(oldest.receipt.id);
            let found = entries.iter().find(|entry| {
                entry.undone_by.is_none()
                    && entry.receipt.undoes.is_empty()
                    && entry.receipt.state != ReceiptState::Running
            });
            if let Some(entry) = found {
                return ledger.receipt(entry.receipt.id).map(Some);
            }
        }
    }
}
