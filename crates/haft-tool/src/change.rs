//! What a call did to one path: the state before and the state after.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The BLAKE3 hash of some bytes, in hexadecimal.
pub type Hash = String;

/// Device and number of a file: the same under all its names.
pub type FileId = (u64, u64);

/// A time in seconds and nanoseconds since 1970.
pub type FileTime = (i64, u32);

/// A regular file's state, apart from its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileNode {
    /// The hash of its bytes; empty if there are too many, or if they cannot be read without changing its mode.
    pub hash: Hash,
    /// Its size in bytes.
    pub size: u64,
    /// Permission bits, setuid and sticky included.
    pub mode: u32,
    /// Owner and group, where they are not the caller's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<(u32, u32)>,
    /// Extended attributes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub xattrs: Vec<(String, Vec<u8>)>,
    /// Which file it is, if it has other names too. They all have the same bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linked: Option<FileId>,
    /// When its bytes last changed. A different time alone is no change, and it is restored only for bytes that did not change
    /// since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<FileTime>,
}

/// A directory's state, apart from its name and its entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirNode {
    /// Permission bits.
    pub mode: u32,
    /// Owner and group, where they are not the caller's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<(u32, u32)>,
    /// Extended attributes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub xattrs: Vec<(String, Vec<u8>)>,
}

/// The state of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Node {
    /// Nothing.
    Absent,
    /// A regular file.
    File(FileNode),
    /// A directory; its entries are nodes of their own.
    Dir(DirNode),
    /// A symbolic link.
    Link {
        /// Where it points, as written.
        #[serde(with = "crate::path_text")]
        target: PathBuf,
        /// Owner and group, where they are not the caller's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<(u32, u32)>,
    },
    /// A named pipe.
    Fifo {
        /// Permission bits.
        mode: u32,
        /// Owner and group, where they are not the caller's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<(u32, u32)>,
        /// Extended attributes: ACLs.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        xattrs: Vec<(String, Vec<u8>)>,
    },
    /// A device or socket: seen, never recreated.
    Special,
}

/// Without this bit, the owner of a directory can list neither its entries nor its attributes.
const OWNER_READ: u32 = 0o400;

impl Node {
    /// A directory of the caller's own, without attributes.
    pub const fn directory(mode: u32) -> Self {
        Self::Dir(DirNode { mode, owner: None, xattrs: Vec::new() })
    }

    /// A symbolic link of the caller's own.
    pub fn link(target: impl Into<PathBuf>) -> Self {
        Self::Link { target: target.into(), owner: None }
    }

    /// The file's state, if this is a file.
    pub fn as_file(&self) -> Option<&FileNode> {
        match self {
            Self::File(file) => Some(file),
            _ => None,
        }
    }

    /// Which file it is, if this is a file with several names.
    pub fn linked(&self) -> Option<FileId> {
        self.as_file().and_then(|file| file.linked)
    }

    /// Whether putting `self` in place of `other` would change anything that undo promises to restore.
    pub fn same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File(a), Self::File(b)) => {
                // Without a hash, the time tells two versions of the bytes apart.
                let same_bytes = a.hash == b.hash && (!a.hash.is_empty() || a.modified == b.modified);
                same_bytes && a.size == b.size && a.mode == b.mode
            }
            (Self::Dir(a), Self::Dir(b)) => a.mode == b.mode,
            (Self::Link { target: a, .. }, Self::Link { target: b, .. }) => a == b,
            (Self::Fifo { mode: a, .. }, Self::Fifo { mode: b, .. }) => a == b,
            (a, b) => a == b,
        }
    }

    /// Whether this is a file whose bytes, or a directory whose attributes, were not read, and that matches `other` in
    /// everything else.
    pub fn may_be(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File(a), Self::File(b)) => {
                a.hash.is_empty() && !b.hash.is_empty() && a.size == b.size && a.mode == b.mode
            }
            (Self::Dir(a), Self::Dir(b)) => {
                a.mode & OWNER_READ == 0 && a.xattrs.is_empty() && a.mode == b.mode && a.owner == b.owner
            }
            _ => false,
        }
    }

    /// The same, owner and attributes included.
    pub fn fully_same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File(a), Self::File(b)) => {
                self.same_as(other) && a.owner == b.owner && a.xattrs == b.xattrs
            }
            (a, b) => a == b,
        }
    }

    /// A word for it, for people.
    pub fn noun(&self) -> &'static str {
        match self {
            Self::Absent => "nothing",
            Self::File(_) => "a file",
            Self::Dir { .. } => "a directory",
            Self::Link { .. } => "a symbolic link",
            Self::Fifo { .. } => "a named pipe",
            Self::Special => "a special file",
        }
    }
}

/// One path's state before and after a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The absolute path: that before the call if something was there, else that after it. They differ if a directory above was
    /// moved.
    #[serde(with = "crate::path_text")]
    pub path: PathBuf,
    /// Its state before the call.
    pub before: Node,
    /// Its state after the call.
    pub after: Node,
    /// Where the directory at this path was moved to, with everything in it. All moves of a call count as simultaneous: each
    /// leads from the path before the call to the path after it.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::path_text::optional")]
    pub moved_to: Option<PathBuf>,
    /// Whether another program or call changed it, too, while the call ran. Then `after` may be theirs, so undo asks before it
    /// overwrites it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub contested: bool,
}

impl Change {
    /// A path's state before and after.
    pub fn new(path: impl Into<PathBuf>, before: Node, after: Node) -> Self {
        Self { path: path.into(), before, after, moved_to: None, contested: false }
    }
}

/// Whether a call can be undone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Reversible {
    /// Exactly.
    #[default]
    Yes,
    /// All but what `why` names.
    Partly {
        /// What cannot be restored.
        why: String,
    },
    /// Not at all.
    No {
        /// The reason.
        why: String,
    },
}

impl Reversible {
    /// `yes`, `partly` or `no`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::Partly { .. } => "partly",
            Self::No { .. } => "no",
        }
    }

    /// The reason, where there is one.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Yes => None,
            Self::Partly { why } | Self::No { why } => Some(why),
        }
    }
}
