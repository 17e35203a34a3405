//! How the World records a change before it makes it.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::{Change, Denial, Node, ToolError};

/// The bytes of a file before it changes.
#[derive(Debug, Clone, Copy)]
pub enum Image<'a> {
    /// There are none: it is no file, or its bytes are not kept.
    None,
    /// They are at hand.
    Small(&'a [u8]),
    /// They are too many to hold; the file is open for reading, at its beginning.
    Large(&'a File),
}

impl<'a> From<Option<&'a [u8]>> for Image<'a> {
    fn from(bytes: Option<&'a [u8]>) -> Self {
        bytes.map_or(Self::None, Self::Small)
    }
}

/// A change about to be made.
#[derive(Debug)]
pub struct Intent<'a> {
    /// The path, its state now and its state to be.
    pub change: Change,
    /// The bytes that stand there now, if they are a file's.
    pub before: Image<'a>,
    /// The temporary name from which the change will be moved into place; a crash may leave it behind.
    pub temp: Option<PathBuf>,
}

/// What stands at a path that a command is about to touch for the first time.
#[derive(Debug, Clone, Copy)]
pub struct Before<'a> {
    /// The absolute path.
    pub path: &'a Path,
    /// What stands there, a file with the hash of its bytes.
    pub node: &'a Node,
    /// Its bytes.
    pub bytes: Image<'a>,
}

/// Where changes are written down before they happen.
pub trait Record: Send + Sync {
    /// Makes the intents and their before-images durable. Nothing is changed before this returns, or if it fails.
    fn before(&self, intents: &[Intent<'_>]) -> Result<(), ToolError>;

    /// Says that a change has been made; its `after` is what really stands there now.
    fn changed(&self, change: Change);

    /// Says that something about the call will not come back with undo.
    fn not_reversible(&self, why: String);

    /// Keeps what stands at a path that a command is about to touch. Survives the death of Haft, not that of the
    /// machine: it costs one write into the page cache.
    fn witness(&self, before: &Before<'_>) -> Result<(), ToolError>;

    /// Keeps that a directory which stood before the command is about to be moved with everything in it. Without
    /// this, what a dead Haft left could not be told from what the command made new.
    fn moving(&self, from: &Path, to: &Path) -> Result<(), ToolError>;

    /// Takes the last `moving` back: the kernel refused.
    fn stayed(&self) -> Result<(), ToolError>;

    /// Gives the witnessed changes of a command, in order, when all its processes are gone. Only now are the
    /// before-images that are needed moved into the ledger's store; the others are dropped.
    fn witnessed(&self, changes: Vec<Change>) -> Result<(), ToolError>;

    /// Says how the kernel held the call to its scope.
    fn enforced(&self, how: String);

    /// Says what the scope refused to the call's command.
    fn refused(&self, denials: &[Denial]);
}
