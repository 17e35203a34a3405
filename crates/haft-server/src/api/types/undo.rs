//! Undo and redo.

use haft_runtime::TextChanges;
use haft_tool::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CallSummary, ChangeList};

/// What to undo or redo: one of the fields, or `from` with `session`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct UndoWhat {
    /// These calls. Those that are undos are redone.
    pub(crate) calls: Option<Vec<i64>>,
    /// All calls of a session.
    pub(crate) session: Option<String>,
    /// This call and all later ones of its workspace; with `session`, only those of the session.
    pub(crate) from: Option<i64>,
    /// The last undo in this workspace: a redo.
    pub(crate) redo: Option<String>,
}

/// A request for the preview of an undo, or for the undo itself.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UndoRequest {
    /// What to undo.
    pub(crate) what: UndoWhat,
    /// Only these paths, absolute or relative to the workspace; if empty, all paths.
    #[serde(default)]
    pub(crate) paths: Vec<String>,
    /// What is at or below these paths stays.
    #[serde(default)]
    pub(crate) except: Vec<String>,
    /// Whether files that changed since are merged where that is possible.
    #[serde(default)]
    pub(crate) merge: bool,
    /// The `plan` of the preview that was shown. Required to perform the undo; ignored by the preview.
    #[serde(default)]
    pub(crate) plan: Option<String>,
    /// Whether paths in conflict are overwritten.
    #[serde(default)]
    pub(crate) force: bool,
}

/// What an undo would do.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct UndoPlanInfo {
    /// Identifies this plan. The undo is refused if by then it would do something else.
    pub(crate) plan: String,
    /// The calls that would be undone, newest first.
    pub(crate) calls: Vec<CallSummary>,
    /// What would change: `before` is the path's state now, `after` its state after the undo.
    pub(crate) changes: ChangeList,
    /// Paths that are no longer as the calls left them.
    pub(crate) conflicts: Vec<PathConflict>,
    /// Calls that cannot be undone, and why.
    pub(crate) blocked: Vec<CallWithReason>,
    /// Calls that would come back only in part, and why.
    pub(crate) partly: Vec<CallWithReason>,
    /// The files that are merged with what changed since.
    pub(crate) merged: Vec<MergedFile>,
    /// Changes of the calls that stay, because only some paths are undone.
    pub(crate) left_out: u64,
}

/// A file that is merged with what changed since.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MergedFile {
    /// The path.
    pub(crate) path: String,
    /// What the undo would change in its text.
    pub(crate) changes: TextChanges,
}

/// A path that is no longer as the calls left it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PathConflict {
    /// The path.
    pub(crate) path: String,
    /// What is there now.
    pub(crate) found: String,
    /// The later call that left it so, if it was a call.
    pub(crate) changed_by: Option<i64>,
    /// Whether it cannot be overwritten, because it is in the way of moving a directory back.
    pub(crate) blocks: bool,
}

/// A call that cannot be undone, or not exactly, and why.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CallWithReason {
    /// The call.
    pub(crate) call: i64,
    /// Why.
    pub(crate) why: String,
}

/// What an undo did.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct UndoDone {
    /// The call of the undo itself.
    pub(crate) call: i64,
    /// Its result, for people.
    pub(crate) message: String,
}
