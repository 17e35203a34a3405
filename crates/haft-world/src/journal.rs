//! What the World tells the ledger before it changes anything.

use std::path::PathBuf;

use haft_tool::{Change, ToolError};

/// A change about to be made.
#[derive(Debug)]
pub struct Intent<'a> {
    /// The path, its state now and its state to be.
    pub change: Change,
    /// The bytes that stand there now, if they are a file's.
    pub before: Option<&'a [u8]>,
    /// The temporary name from which the change will be moved into place; a crash may leave it behind.
    pub temp: Option<PathBuf>,
}

/// Where changes are written down before they happen.
pub trait Journal: Send + Sync {
    /// Makes the intents and their before-images durable. Nothing is changed before this returns, or if it fails.
    fn before(&self, intents: &[Intent<'_>]) -> Result<(), ToolError>;

    /// Says that a change has been made; its `after` is what really stands there now.
    fn changed(&self, change: Change);

    /// Says that something about the call will not come back with undo.
    fn not_reversible(&self, why: String);
}
