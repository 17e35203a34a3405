//! Finds entries such as `.git` and `haft.toml` in a directory or above it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// An entry that was found in a directory or above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundAbove {
    /// The directory that has it.
    pub directory: PathBuf,
    /// Whether it belongs to the user or to the owner of the directory where the search started. In `/tmp`, for example, anyone
    /// can create an entry.
    pub is_own: bool,
}

/// The nearest directory, from `start` upwards, with an entry of that name.
pub fn find_upwards(start: &Path, name: &str) -> Option<FoundAbove> {
    let owner = |path: &Path| std::fs::symlink_metadata(path).ok().map(|found| found.uid());
    let (directory, entry_owner) =
        start.ancestors().find_map(|directory| Some((directory, owner(&directory.join(name))?)))?;
    let is_own = entry_owner == rustix::process::geteuid().as_raw() || Some(entry_owner) == owner(start);
    Some(FoundAbove { directory: directory.to_owned(), is_own })
}
