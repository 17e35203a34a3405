//! Whether a directory contains files that are secret by their name.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use haft_tool::lock;

use super::dir_stamps::DirStamps;
use crate::secrets::SecretNames;

/// A directory with more entries is not searched to its end.
const MAX_ENTRIES: usize = 20_000;
/// Directories with many files that others wrote or tools generated, without secrets of the user.
const SKIPPED_DIRECTORIES: &[&str] =
    &[".git", "node_modules", "target", ".venv", "venv", "__pycache__", "site-packages", ".tox", "vendor"];
/// How many results are cached.
const MAX_CACHED: usize = 16;

/// Results, cached until one of the searched directories changes. The most recently used comes first.
#[derive(Debug, Default)]
pub(super) struct SecretSearchCache(Mutex<Vec<SecretSearch>>);

#[derive(Debug)]
struct SecretSearch {
    root: PathBuf,
    names: SecretNames,
    may_contain: bool,
    searched: DirStamps,
}

impl SecretSearchCache {
    /// Whether `root` contains a file with one of `names`, or cannot be searched completely. Links are not followed.
    pub(super) fn may_contain(&self, root: &Path, names: &SecretNames) -> bool {
        let mut cached = lock(&self.0);
        let known = cached
            .iter()
            .position(|known| known.root.as_os_str() == root.as_os_str() && known.names == *names);
        let known = known.map(|index| cached.remove(index)).filter(|known| known.searched.are_current());
        let search = known.unwrap_or_else(|| {
            let (may_contain, searched) = search(root, names, MAX_ENTRIES);
            SecretSearch { root: root.to_owned(), names: names.clone(), may_contain, searched }
        });
        let may_contain = search.may_contain;
        cached.insert(0, search);
        cached.truncate(MAX_CACHED);
        may_contain
    }
}

/// Searches a tree breadth first, because such files are usually near the top.
fn search(root: &Path, names: &SecretNames, max_entries: usize) -> (bool, DirStamps) {
    let mut searched = DirStamps::default();
    if names.is_empty() {
        return (false, searched);
    }
    let mut queue = VecDeque::from([root.to_owned()]);
    let mut left = max_entries;
    let mut may_contain = false;
    while let Some(directory) = queue.pop_front() {
        let (Ok(stat), Ok(entries)) = (rustix::fs::lstat(&directory), fs::read_dir(&directory)) else {
            may_contain = true;
            continue;
        };
        searched.add(&directory, &stat);
        for entry in entries {
            let Ok(entry) = entry else {
                may_contain = true;
                break;
            };
            let name = entry.file_name();
            if left == 0 || names.matches(&name) {
                return (true, searched);
            }
            left -= 1;
            let is_skipped = SKIPPED_DIRECTORIES.iter().any(|skipped| name == *skipped);
            if !is_skipped && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                queue.push_back(entry.path());
            }
        }
    }
    (may_contain, searched)
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
    }

    #[test]
    fn incomplete_searches_may_contain_secrets() {
        let root = tempfile::tempdir().unwrap();
        let names = names(&[".env", ".env.*"]);
        let search = |root: &Path, max_entries| search(root, &names, max_entries).0;
        fs::create_dir_all(root.path().join("a/b/c")).unwrap();
        fs::write(root.path().join("a/b/.env.example"), "").unwrap();
        symlink("/", root.path().join("a/all")).unwrap();
        assert!(!search(root.path(), MAX_ENTRIES));
        assert!(!search(root.path(), 5));
        assert!(search(root.path(), 4));
        fs::write(root.path().join("a/b/c/.env"), "").unwrap();
        assert!(search(root.path(), MAX_ENTRIES));
        assert!(search(&root.path().join("gone"), MAX_ENTRIES));
        assert!(!super::search(Path::new("/"), &SecretNames::default(), 0).0);
    }
}
