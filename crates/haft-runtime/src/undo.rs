//! Undo as a person asks for it: a preview, then a call like any other, with a receipt of its own.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use haft_ledger::Ledger;
use haft_ledger::undo::UndoConflict;
use haft_tool::{Call, ErrorKind, Node, Receipt, RestorePlan, Tool, ToolError, json, now_ms};

use crate::Runtime;
use crate::call::{CallOptions, CallOrigin, CallResult, StartedCall};
use crate::undo_paths::UndoPaths;
use crate::undo_tools::UndoCalls;

/// Which calls to undo.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum UndoTarget {
    /// The last one in this workspace that changed anything and has not been undone.
    Last,
    /// The same of one session.
    LastOfSession(String),
    /// One call.
    Call(i64),
    /// Several calls.
    Calls(Vec<i64>),
    /// This many of the last ones in this workspace that changed anything and have not been undone.
    LastCalls(usize),
    /// The calls in this workspace after this one that have not been undone; with a session, only its own.
    AfterCall {
        /// The call that stays.
        id: i64,
        /// The session.
        session: Option<String>,
    },
    /// The calls in this workspace that started at this time or later and have not been undone, in milliseconds since 1970.
    Since(u64),
    /// All calls of a session that have not been undone.
    Session(String),
    /// The last undo in this workspace: redo.
    LastUndo,
}

/// What an undo would change.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UndoPreview {
    /// The calls that would be undone, newest first.
    pub receipts: Vec<Receipt>,
    /// What would be restored, paths in conflict included.
    pub restore: RestorePlan,
    /// Paths that are no longer as the calls left them.
    pub conflicts: Vec<UndoConflict>,
    /// Calls whose changes are not known, and why.
    pub blocked: Vec<(i64, String)>,
    /// For paths in conflict, the later call that left them as they are now.
    pub changed_by: BTreeMap<PathBuf, Receipt>,
    /// How many of the calls' changes are left as they are, because only some paths are undone.
    pub left_out: usize,
    /// The new content of files that are merged with what changed since.
    pub merged: BTreeMap<PathBuf, String>,
}

impl UndoPreview {
    /// The bytes of `node`, if it is a file whose bytes the ledger has.
    pub fn bytes(ledger: &Ledger, node: &Node) -> Result<Vec<u8>, ToolError> {
        node.as_file().map_or_else(|| Ok(Vec::new()), |file| ledger.blob(&file.hash))
    }

    /// Why the undo must not be performed: conflicts, unless forced.
    pub(crate) fn check(&self, force: bool) -> Result<(), ToolError> {
        let conflict = |message: String| Err(ToolError::new(ErrorKind::Conflict, message));
        if let Some(blocking) = self.conflicts.iter().find(|conflict| conflict.blocks_move) {
            let (path, found) = (blocking.path.display(), blocking.found.noun());
            return conflict(format!(
                "{path} is in the way of moving a directory back ({found} is there), so nothing was undone"
            ));
        }
        if !self.conflicts.is_empty() && !force {
            let paths: Vec<String> =
                self.conflicts.iter().map(|conflict| conflict.path.display().to_string()).collect();
            return conflict(format!(
                "changed since, so nothing was undone: {}; see the preview, or force it",
                paths.join(", ")
            ));
        }
        Ok(())
    }
}

impl Runtime {
    /// What undoing `target` would change. Changes nothing.
    pub fn undo_preview(&self, target: &UndoTarget) -> Result<UndoPreview, ToolError> {
        self.undo_preview_in(target, &UndoPaths::default())
    }

    /// The same, limited to some paths.
    pub fn undo_preview_in(&self, target: &UndoTarget, paths: &UndoPaths) -> Result<UndoPreview, ToolError> {
        self.inner.history.preview(target, paths)
    }

    /// The preview with conflicts merged where that is possible: in text of which the call and later changes touched different
    /// lines. Other conflicts remain.
    pub fn merge_conflicts(&self, preview: UndoPreview) -> Result<UndoPreview, ToolError> {
        Ok(preview.merged(&self.ledger()?))
    }

    /// Performs the undo that the preview showed; with `force`, even where something has changed since.
    pub async fn undo(
        &self,
        preview: &UndoPreview,
        force: bool,
        options: CallOptions,
    ) -> Result<CallResult, ToolError> {
        Ok(self.start_undo(preview, force, options)?.wait().await)
    }

    /// Like [`Runtime::undo`], but blocks the thread.
    pub fn undo_blocking(
        &self,
        preview: &UndoPreview,
        force: bool,
        options: CallOptions,
    ) -> Result<CallResult, ToolError> {
        Ok(self.start_undo(preview, force, options)?.wait_blocking())
    }

    fn start_undo(
        &self,
        preview: &UndoPreview,
        force: bool,
        options: CallOptions,
    ) -> Result<StartedCall, ToolError> {
        preview.check(force)?;
        let calls: Vec<i64> = preview.receipts.iter().map(|receipt| receipt.id).collect();
        let call =
            Call::new(format!("undo_{}", now_ms()), UndoCalls::NAME, json!({"calls": calls, "force": force}));
        let tool = UndoCalls::new(Arc::clone(&self.inner.history), preview.clone());
        Ok(self.start(call, CallOptions { tool: Some(Arc::new(tool)), ..options }, CallOrigin::User))
    }

    /// Marks calls whose process died as interrupted and removes the temporary files they left.
    pub fn recover(&self) -> Result<Vec<Receipt>, ToolError> {
        self.inner.history.recover()
    }
}

#[cfg(test)]
mod tests;
