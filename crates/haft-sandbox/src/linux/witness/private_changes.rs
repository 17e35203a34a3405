//! Notes what a command changes in the private directories of its session, which undo does not restore.

use std::collections::{HashMap, VecDeque};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;

use rustix::fs::{AtFlags, FileType, Stat};

use super::paths::DirectoryEntry;
use super::root_dir::RootDir;

/// With fewer paths, none is checked before the end.
const MIN_PATHS_TO_CHECK: usize = 1_000;
/// More than one, so that the list shrinks while entries are as before.
const MAX_PATHS_PER_CHECK: usize = 2;
/// More paths are not listed.
const MAX_PATHS: usize = 50_000;

/// Device, inode and change time, which programs cannot set.
type FileVersion = (u64, u64, i64, u64);

/// The paths that a command may have changed, with their versions before.
#[derive(Debug, Default)]
pub(super) struct PrivateChanges {
    before: HashMap<Rc<Path>, Option<FileVersion>>,
    /// The same paths in the order in which they are checked. Temporary files that are gone again are forgotten.
    paths: VecDeque<Rc<Path>>,
    /// Whether there were more.
    has_more: bool,
}

impl PrivateChanges {
    /// Must be called before a change of the entry.
    pub(super) fn before_change(&mut self, entry: &DirectoryEntry, root: &RootDir) {
        let path = entry.path();
        let is_known = self.before.contains_key(path)
            // An entry of a new directory is gone when the directory is.
            || path.ancestors().skip(1).any(|above| self.before.get(above) == Some(&None));
        if is_known {
            return;
        }
        let stat = entry.stat().ok();
        if stat.as_ref().is_some_and(is_device) {
            return;
        }
        self.add(path, stat.as_ref().map(version), |path| current_version(path, root));
    }

    /// Adds a path, and checks the next few to forget those that are as before. Few at a time, because other commands wait.
    fn add(
        &mut self,
        path: &Path,
        before: Option<FileVersion>,
        current: impl Fn(&Path) -> Option<FileVersion>,
    ) {
        if self.paths.len() >= MIN_PATHS_TO_CHECK {
            for _ in 0..MAX_PATHS_PER_CHECK {
                let Some(path) = self.paths.pop_front() else { break };
                if self.before.get(&path) == Some(&current(&path)) {
                    self.before.remove(&path);
                } else {
                    self.paths.push_back(path);
                }
            }
        }
        if self.paths.len() >= MAX_PATHS {
            self.has_more = true;
            return;
        }
        let path: Rc<Path> = path.into();
        self.paths.push_back(Rc::clone(&path));
        self.before.insert(path, before);
    }

    /// What undo will not restore.
    pub(super) fn into_loss(self, root: &RootDir) -> Option<String> {
        let is_changed =
            |(path, before): &(&Rc<Path>, &Option<FileVersion>)| current_version(path, root) != **before;
        let mut changed: Vec<&Rc<Path>> =
            self.before.iter().filter(is_changed).map(|(path, _)| path).collect();
        changed.sort_unstable();
        let (first, others) = changed.split_first()?;
        let first = first.display();
        let paths = match others.len() {
            more if self.has_more => {
                format!("{first} and at least {more} more paths are in private directories")
            }
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

/// Writing to a device leaves nothing in its directory.
fn is_device(stat: &Stat) -> bool {
    matches!(FileType::from_raw_mode(stat.st_mode), FileType::CharacterDevice | FileType::BlockDevice)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn few_paths_are_looked_at_for_each_new_one() {
        let mut changes = PrivateChanges::default();
        let looked_at = Cell::new(0);
        for number in 0..MAX_PATHS + 10 {
            looked_at.set(0);
            changes.add(Path::new(&format!("/{number}")), None, |_| {
                looked_at.set(looked_at.get() + 1);
                Some((0, 0, 0, 0))
            });
            assert!(looked_at.get() <= MAX_PATHS_PER_CHECK);
        }
        assert_eq!(
            (changes.before.len(), changes.paths.len(), changes.has_more),
            (MAX_PATHS, MAX_PATHS, true)
        );
    }

    #[test]
    fn temporary_files_are_forgotten() {
        let mut changes = PrivateChanges::default();
        for number in 0..20 * MIN_PATHS_TO_CHECK {
            changes.add(Path::new(&format!("/{number}")), None, |_| None);
        }
        assert!(changes.before.len() <= MIN_PATHS_TO_CHECK && !changes.has_more);
        assert_eq!(changes.before.len(), changes.paths.len());
    }
}
