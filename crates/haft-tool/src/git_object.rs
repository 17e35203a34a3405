//! Objects of git repositories, and how recorded calls affected them.

use std::path::{Path, PathBuf};

/// The id of a git object: SHA-1, as nearly all repositories use it.
pub type GitObjectId = [u8; 20];

/// A blob that a repository has.
#[derive(Debug, Clone, Copy)]
pub struct GitBlob<'a> {
    /// Its id.
    pub id: GitObjectId,
    /// Its content.
    pub content: &'a [u8],
    /// The files of the repository that contain it: a loose object, indexes of packs.
    pub files: &'a [GitObjectFile],
}

/// A file that contains objects, or lists those of a pack. Times are in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitObjectFile {
    /// Its path.
    pub path: PathBuf,
    /// When it was created or, if that is not known, when its inode last changed.
    pub created_at: u64,
    /// When its inode last changed.
    pub changed_at: u64,
}

/// How a call affected an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitObjectEventKind {
    /// The call found it in a file that it then changed or removed. No other call ran meanwhile.
    Found,
    /// The call wrote a file that contains it, or may contain it.
    Written,
    /// The call wrote its content to a file outside git's object store, from which the user may have added it.
    ContentWritten,
}

/// An event in the history of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitObjectEvent {
    /// What happened.
    pub kind: GitObjectEventKind,
    /// The file.
    pub path: PathBuf,
    /// The number of the call.
    pub call: i64,
    /// When the call started, in milliseconds since 1970.
    pub started_at: u64,
}

/// The directory of objects to which a loose object or an index at `path` belongs.
pub fn git_objects_directory(path: &Path) -> Option<&Path> {
    path.ancestors().nth(2)
}

/// Whether a file of this name lists the objects of packs.
pub fn is_git_index(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".idx") || name.starts_with("multi-pack-index")
}
