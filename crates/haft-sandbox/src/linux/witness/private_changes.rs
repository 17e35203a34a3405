//! What a command changes in the private directories of its session. It is not recorded, and undo does not restore it.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Stat};

use super::paths::DirectoryEntry;
use super::root_dir::RootDir;

/// Fewer paths are not looked at before the end.
const MIN_PATHS_TO_CHECK: usize = 1_000;

/// Device, inode and change time, which programs cannot set.
type FileVersion = (u64, u64, i64, u64);

/// The paths that a command may have changed, with their versions before.
#[derive(Debug)]
pub(super) struct PrivateChanges {
    before: HashMap<PathBuf, Option<FileVersion>>,
    /// Temporary files that are gone again are forgotten at this number of paths.
    next_check: usize,
}

impl PrivateChanges {
    pub(super) fn new() -> Self {
        Self { before: HashMap::new(), next_check: MIN_PATHS_TO_CHECK }
    }

    /// Must be called before a change of the entry.
    pub(super) fn before_change(&mut self, entry: &DirectoryEntry, root: &RootDir) {
        let path = entry.path();
        let is_known = self.before.contains_key(path)
            // What is in a new directory is gone if that is.
            || path.ancestors().skip(1).any(|above| self.before.get(above) == Some(&None));
        if is_known {
            return;
        }
        let stat = entry.stat().ok();
        if stat.as_ref().is_some_and(is_device) {
            return;
        }
        if self.before.len() >= self.next_check {
            self.before.retain(|path, before| current_version(path, root) != *before);
            self.next_check = MIN_PATHS_TO_CHECK.max(2 * self.before.len());
        }
        self.before.insert(path.to_owned(), stat.as_ref().map(version));
    }

    /// What undo will not restore.
    pub(super) fn into_loss(self, root: &RootDir) -> Option<String> {
        let is_changed =
            |(path, before): &(&PathBuf, &Option<FileVersion>)| current_version(path, root) != **before;
        let mut changed: Vec<&PathBuf> =
            self.before.iter().filter(is_changed).map(|(path, _)| path).collect();
        changed.sort_unstable();
        let (first, others) = changed.split_first()?;
        let first = first.display();
        let paths = match others.len() {
            0 => format!("{first} is in a private directory"),
            1 => format!("{first} and 1 more path are in private directories"),
            more => format!("{first} and {more} more paths are in private directories"),
        };
        Some(format!("{paths} of the session, where nothing is restored"))
    }
}

fn current_version(path: &Path, root: &RootDir) -> Option<FileVersion> {
    let (parent, name) = path.parent().zip(path.file_name())?;
    let parent = root.open_directory(root.fd(), parent.as_os_str().as_bytes()).ok()?;
    rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).ok().as_ref().map(version)
}

fn version(stat: &Stat) -> FileVersion {
    (stat.st_dev, stat.st_ino, stat.st_ctime, stat.st_ctime_nsec)
}

/// Writing to a device leaves nothing in the directory.
fn is_device(stat: &Stat) -> bool {
    matches!(FileType::from_raw_mode(stat.st_mode), FileType::CharacterDevice | FileType::BlockDevice)
}
