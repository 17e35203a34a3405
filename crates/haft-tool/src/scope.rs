//! What a call may touch: the answer of policy, enforced by the World.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Where a call may read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reads {
    /// Anywhere but the protected paths.
    Everywhere,
    /// Only inside the roots.
    Roots,
}

/// What a call may touch.
///
/// Paths are lexically normal and absolute; a path lies inside a root by component, never by string prefix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// The folder the call works in; also the first root.
    pub workspace: PathBuf,
    /// Directories whose whole contents may be read and written.
    pub roots: Vec<PathBuf>,
    /// Single paths outside the roots that may be written because a rule or the user said so.
    pub grants: Vec<PathBuf>,
    /// Where the call may read.
    pub reads: Reads,
    /// Paths that nothing may read or write, whatever else is said: the ledger, the configuration.
    pub protected: Vec<PathBuf>,
    /// Whether the call may write at all.
    pub writes: bool,
    /// Whether the call may start processes.
    pub runs: bool,
}

impl Scope {
    /// The root that `path` lies in.
    pub fn root_of(&self, path: &Path) -> Option<&Path> {
        self.roots.iter().map(PathBuf::as_path).find(|root| path.starts_with(root))
    }

    /// Whether `path` is or lies in a protected path.
    pub fn is_protected(&self, path: &Path) -> bool {
        self.protected.iter().any(|protected| path.starts_with(protected))
    }
}
