//! Whether a directory contains files that are secret by their name.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use haft_tool::lock;
use rustix::fs::Stat;

use super::dir_stamps::DirStamp;
use crate::secrets::SecretNames;

/// A directory with more entries is not searched to its end.
const MAX_ENTRIES: usize = 20_000;
/// Directories with many files that others wrote or tools generated, without secrets of the user.
const SKIPPED_DIRECTORIES: &[&str] =
    &[".git", "node_modules", "target", ".venv", "venv", "__pycache__", "site-packages", ".tox", "vendor"];
/// Whether a path is in a directory that is not searched.
pub(super) fn skips_secrets(path: &Path) -> bool {
    path.components().any(|part| SKIPPED_DIRECTORIES.iter().any(|name| part.as_os_str() == *name))
}

/// How many results are cached.
const MAX_CACHED: usize = 16;

/// Results, with the most recently used first. Of a tree that was searched before, only changed directories are listed.
#[derive(Debug, Default)]
pub(super) struct SecretSearchCache(Mutex<Vec<SecretSearch>>);

#[derive(Debug)]
struct SecretSearch {
    root: PathBuf,
    names: SecretNames,
    listed: HashMap<PathBuf, ListedDirectory>,
}

/// What matters of a directory.
#[derive(Debug)]
struct ListedDirectory {
    stamp: DirStamp,
    /// Whether it contains a secret or could not be listed completely.
    may_contain: bool,
    entries: usize,
    /// Those of its directories that are searched.
    directories: Vec<OsString>,
}

impl SecretSearchCache {
    /// Whether `root` contains a file with one of `names`, or cannot be searched completely. Links are not followed.
    pub(super) fn may_contain(&self, root: &Path, names: &SecretNames) -> bool {
        let mut cached = lock(&self.0);
        let known = cached
            .iter()
            .position(|known| known.root.as_os_str() == root.as_os_str() && known.names == *names);
        let mut search = known.map_or_else(
            || SecretSearch { root: root.to_owned(), names: names.clone(), listed: HashMap::new() },
            |index| cached.remove(index),
        );
        let may_contain = search.run(MAX_ENTRIES);
        cached.insert(0, search);
        cached.truncate(MAX_CACHED);
        may_contain
    }
}

impl SecretSearch {
    /// Searches the tree breadth first, because such files are usually near the top.
    fn run(&mut self, max_entries: usize) -> bool {
        let mut known = std::mem::take(&mut self.listed);
        if self.names.is_empty() {
            return false;
        }
        let mut queue = VecDeque::from([self.root.clone()]);
        let mut left = max_entries;
        let mut may_contain = false;
        while let Some(directory) = queue.pop_front() {
            let Ok(stat) = rustix::fs::lstat(&directory) else {
                may_contain = true;
                continue;
            };
            let known = known.remove(&directory).filter(|known| known.stamp.is_current(&stat));
            let listed = known.unwrap_or_else(|| list(&directory, &stat, &self.names, left));
            may_contain |= listed.may_contain;
            queue.extend(listed.directories.iter().map(|name| directory.join(name)));
            let Some(rest) = left.checked_sub(listed.entries) else { return true };
            left = rest;
            self.listed.insert(directory, listed);
            if may_contain {
                return true;
            }
        }
        may_contain
    }
}

/// Lists a directory, but not much more than `max_entries` of it.
fn list(directory: &Path, stat: &Stat, names: &SecretNames, max_entries: usize) -> ListedDirectory {
    let stamp = DirStamp::new(stat);
    let mut listed = ListedDirectory { stamp, may_contain: false, entries: 0, directories: Vec::new() };
    let Ok(entries) = fs::read_dir(directory) else {
        listed.may_contain = true;
        return listed;
    };
    for entry in entries {
        let Ok(entry) = entry else {
            listed.may_contain = true;
            break;
        };
        let name = entry.file_name();
        listed.entries += 1;
        listed.may_contain |= names.matches(&name);
        if listed.may_contain || listed.entries > max_entries {
            break;
        }
        let is_skipped = SKIPPED_DIRECTORIES.iter().any(|skipped| name == *skipped);
        if !is_skipped && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            listed.directories.push(name);
        }
    }
    listed
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(globs: &[&str]) -> SecretNames {
        SecretNames::new(globs.iter().map(|&glob| glob.to_owned()).collect())
    }

    #[test]
    fn cached_result_changes_with_the_directory() {
        let root = tempfile::tempdir().unwrap();
        let names = names(&[".env"]);
        let searches = SecretSearchCache::default();
        fs::create_dir_all(root.path().join("a/b")).unwrap();
        let may_contain = || searches.may_contain(root.path(), &names);
        assert!(!may_contain() && !may_contain());
        fs::write(root.path().join("a/b/.env"), "").unwrap();
        assert!(may_contain() && may_contain());
        fs::remove_file(root.path().join("a/b/.env")).unwrap();
        assert!(!may_contain());
        fs::create_dir(root.path().join("a/c")).unwrap();
        assert!(!may_contain());
        fs::write(root.path().join("a/c/.env"), "").unwrap();
        assert!(may_contain());
    }

    #[test]
    fn incomplete_searches_may_contain_secrets() {
        let root = tempfile::tempdir().unwrap();
        let names = names(&[".env", ".env.*"]);
        let search = |root: &Path, max_entries| {
            let (root, names) = (root.to_owned(), names.clone());
            SecretSearch { root, names, listed: HashMap::new() }.run(max_entries)
        };
        fs::create_dir_all(root.path().join("a/b/c")).unwrap();
        fs::write(root.path().join("a/b/.env.example"), "").unwrap();
        symlink("/", root.path().join("a/all")).unwrap();
        assert!(!search(root.path(), MAX_ENTRIES));
        assert!(!search(root.path(), 5));
        assert!(search(root.path(), 4));
        fs::write(root.path().join("a/b/c/.env"), "").unwrap();
        assert!(search(root.path(), MAX_ENTRIES));
        assert!(search(&root.path().join("gone"), MAX_ENTRIES));
        let root = PathBuf::from("/");
        assert!(!SecretSearch { root, names: SecretNames::default(), listed: HashMap::new() }.run(0));
    }
}
