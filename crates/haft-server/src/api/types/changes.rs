//! What changed.

use haft_runtime::TextChanges;
use haft_tool::JsonSchema;
use serde::Serialize;

/// A part of a list of changes.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChangeList {
    /// The changes, sorted by path.
    pub(crate) changes: Vec<ChangeEntry>,
    /// How many changes there are in total.
    pub(crate) total: u64,
    /// The value of `offset` for the next part; `null` at the end.
    pub(crate) next: Option<u64>,
}

/// What happened to a path.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ChangeEntry {
    /// The path: relative to the workspace, absolute outside it.
    pub(crate) path: String,
    /// `created`, `modified`, `deleted`, `mode` or `moved`.
    pub(crate) what: String,
    /// Where it was moved to, if `what` is `moved`.
    pub(crate) moved_to: Option<String>,
    /// Where it was before, if it is a file that was moved with its directory and also changed.
    pub(crate) moved_from: Option<String>,
    /// Its state before.
    pub(crate) before: ChangeSide,
    /// Its state after.
    pub(crate) after: ChangeSide,
    /// Whether something else also changed it while the call ran.
    pub(crate) contested: bool,
    /// The calls that changed it, newest first; only in lists that cover several calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) calls: Vec<i64>,
}

/// The state of a path.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ChangeSide {
    /// `absent`, `file`, `dir`, `link`, `fifo` or `special`.
    pub(crate) kind: String,
    /// The size of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<u64>,
    /// The hash of a file's bytes, for `/diff` and `/blobs`; `null` if it is not a file or its content is not known.
    pub(crate) hash: Option<String>,
    /// Permission bits, as octal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<String>,
    /// Where a link points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<String>,
}

/// The difference between two versions of a file.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum VersionDiff {
    /// Both are text.
    Text {
        /// The lines that changed.
        changes: TextChanges,
    },
    /// At least one is an image that browsers show; `/blobs/HASH` has the bytes.
    Image {
        /// The media type of the old one; `null` if there is none.
        before: Option<String>,
        /// The media type of the new one; `null` if there is none.
        after: Option<String>,
    },
    /// At least one is not text.
    Binary,
    /// At least one is too large to be compared.
    TooLarge,
    /// The content of at least one is no longer in the ledger.
    Unknown,
}

/// What changed in a workspace or session, each path once.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChangedFiles {
    /// The folder.
    pub(crate) workspace: String,
    /// The changes.
    pub(crate) changes: ChangeList,
    /// How many calls they come from.
    pub(crate) calls: u64,
    /// Whether older calls are left out because there are too many.
    pub(crate) is_cut: bool,
}
