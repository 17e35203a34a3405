//! File access as a tool sees it: readers, atomic updates, walks and restores. No type here needs a local file system.

use std::ffi::OsString;
use std::fmt;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Change, FileNode, Node, ToolError};

/// The type of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link.
    Link,
    /// A device, socket or FIFO.
    Special,
}

/// A regular file opened for reading.
pub struct OpenFile {
    /// Its content, from the first byte on.
    pub reader: Box<dyn Read + Send>,
    /// Its size when it was opened; 0 if the size is not known, as in `/proc`.
    pub size: u64,
    /// The path that was opened.
    pub path: PathBuf,
}

impl fmt::Debug for OpenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reader: _, size, path } = self;
        f.debug_struct("OpenFile").field("path", path).field("size", size).finish_non_exhaustive()
    }
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    /// Its name.
    pub name: OsString,
    /// Its type; links are not followed.
    pub kind: FileKind,
    /// Its size in bytes.
    pub size: u64,
}

/// The result of an update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The path that was written, links resolved.
    pub path: PathBuf,
    /// The state before.
    pub before: Node,
    /// The state after.
    pub after: FileNode,
    /// The number of other hard links to the old file, which keep the old content.
    pub other_names: u64,
}

/// Selects the files that a walk visits.
#[derive(Debug, Clone, Default)]
pub struct WalkRequest {
    /// Where it starts. If this is a file, it is the only one visited.
    pub root: PathBuf,
    /// Globs in gitignore syntax: only what they match or, with `!`, everything else.
    pub globs: Vec<String>,
    /// Ripgrep's name of a file type, for example `rust`.
    pub file_type: Option<String>,
    /// Whether names that start with a dot are visited too.
    pub hidden: bool,
}

/// A regular file visited by a walk.
pub trait WalkedFile {
    /// Its path.
    fn path(&self) -> &Path;
    /// Opens it for reading, inside the scope.
    fn open(&self) -> Result<Box<dyn Read + Send>, ToolError>;
    /// Whether it is not opened because it may hold secrets.
    fn is_secret(&self) -> bool {
        false
    }
    /// The time of its last modification in nanoseconds since 1970; 0 if unknown.
    fn modified_ns(&self) -> i64;
}

/// Called by one thread of a walk for each file; `Break` ends the whole walk.
pub type FileVisitor<'a> = Box<dyn FnMut(&dyn WalkedFile) -> ControlFlow<()> + Send + 'a>;

/// Returns the new content for the old one (`None`: no file yet). Called again if the file changed meanwhile.
pub type EditFn<'a> = dyn FnMut(Option<&[u8]>) -> Result<Vec<u8>, ToolError> + 'a;

/// One step of a restore. Its paths are those after the steps before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "nearly all steps are of the large variant")]
pub enum RestoreStep {
    /// Changes what is at a path.
    Set {
        /// The absolute path.
        #[serde(with = "crate::path_text")]
        path: PathBuf,
        /// The state it must have; any other is a conflict.
        expect: Node,
        /// The state to restore.
        to: Node,
    },
    /// Moves a directory with everything in it out of the way, until a `MoveIn` puts it at its new path.
    MoveOut {
        /// Its path.
        #[serde(with = "crate::path_text")]
        from: PathBuf,
    },
    /// Moves a directory in that a `MoveOut` moved away.
    MoveIn {
        /// The path of the `MoveOut`.
        #[serde(with = "crate::path_text")]
        from: PathBuf,
        /// The new path, which is free.
        #[serde(with = "crate::path_text")]
        to: PathBuf,
    },
}

impl RestoreStep {
    /// The path that is restored.
    pub fn path(&self) -> &Path {
        match self {
            Self::Set { path, .. } => path,
            Self::MoveOut { from } => from,
            Self::MoveIn { to, .. } => to,
        }
    }
}

/// A step, and the path at which what it puts in place or removes is kept until the restore has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedStep {
    /// The step.
    pub step: RestoreStep,
    /// The path, in one of Haft's own directories.
    #[serde(with = "crate::path_text")]
    pub slot: PathBuf,
}

/// A restore. It is performed as a whole or not at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestorePlan {
    /// The steps, in order.
    pub steps: Vec<RestoreStep>,
    /// The changes that all steps together make, for the receipt.
    pub changes: Vec<Change>,
}

/// Opens the stored content of a file that is restored.
pub type OpenContent<'a> = dyn Fn(&FileNode) -> Result<Box<dyn Read + Send>, ToolError> + 'a;

/// The files inside the scope. No path leads out of it, even if links change during the call.
pub trait Files: Send + Sync {
    /// The type of `path`, links followed.
    fn kind(&self, path: &Path) -> Result<FileKind, ToolError>;
    /// The path with all links resolved.
    fn real_path(&self, path: &Path) -> Result<PathBuf, ToolError>;
    /// Opens a regular file for reading. Anything else is an error and never blocks.
    fn open(&self, path: &Path) -> Result<OpenFile, ToolError>;
    /// The first `limit` entries of a directory by name, and how many it has in all.
    fn list_first(&self, path: &Path, limit: usize) -> Result<(Vec<DirEntry>, u64), ToolError>;
    /// The entries of a directory, sorted by name.
    fn list(&self, path: &Path) -> Result<Vec<DirEntry>, ToolError> {
        self.list_first(path, usize::MAX).map(|(entries, _)| entries)
    }
    /// Replaces a file's content by what `edit` returns for it, atomically and recorded.
    ///
    /// Keeps mode, owner and extended attributes, creates missing parent directories, and never overwrites changes by other
    /// writers.
    fn update(&self, path: &Path, edit: &mut EditFn<'_>) -> Result<Written, ToolError>;
    /// Visits files in parallel and in no particular order; `visitors` is called once per thread.
    fn walk<'a>(
        &self,
        request: &WalkRequest,
        visitors: &mut dyn FnMut() -> FileVisitor<'a>,
    ) -> Result<(), ToolError>;
    /// The state of `path` itself, links not followed, with the hash of its content.
    fn observe(&self, path: &Path) -> Result<Node, ToolError>;
    /// Restores paths to earlier states, and records that. `content` opens the stored content of a file, which is checked
    /// against its hash. If a step fails, the steps before it are undone.
    fn restore(&self, plan: &RestorePlan, content: &OpenContent<'_>) -> Result<(), ToolError>;
}
