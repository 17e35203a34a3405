//! What a change did to its path, in one word.

use crate::{Change, Node};

/// What happened to a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeKind {
    /// It did not exist.
    Created,
    /// Its content, owner or attributes changed.
    Modified,
    /// It no longer exists.
    Deleted,
    /// Only its mode changed: from and to.
    Mode(u32, u32),
    /// The directory was moved.
    Moved(String),
}

impl ChangeKind {
    /// What this change did.
    pub fn of(change: &Change) -> Self {
        match &change.moved_to {
            Some(to) => Self::Moved(to.display().to_string()),
            None => Self::between(&change.before, &change.after),
        }
    }

    /// The difference between two states.
    pub fn between(before: &Node, after: &Node) -> Self {
        match (before, after) {
            (Node::Absent, _) => Self::Created,
            (_, Node::Absent) => Self::Deleted,
            (Node::Dir(a), Node::Dir(b)) if a.mode != b.mode => Self::Mode(a.mode, b.mode),
            (Node::File(a), Node::File(b)) if a.hash == b.hash && a.mode != b.mode => {
                Self::Mode(a.mode, b.mode)
            }
            _ => Self::Modified,
        }
    }

    /// The word for people.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
            Self::Mode(..) => "mode",
            Self::Moved(_) => "moved",
        }
    }
}
