//! Finds what commands may not read in a directory: files that are secret by their name, and what rules deny.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use haft_policy::PathGlobs;
use haft_tool::{Scope, lock};
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

/// More secrets of one directory are not listed.
const MAX_SECRETS: usize = 200;
/// How many results are cached.
const MAX_CACHED: usize = 16;

/// Results, with the most recently used first. Of a tree that was searched before, only changed directories are listed.
#[derive(Debug, Default)]
pub(super) struct SecretSearchCache(Mutex<Vec<SecretSearch>>);

/// What is searched for.
#[derive(Debug, Clone)]
pub(super) struct SecretQuery {
    names: SecretNames,
    /// The globs of paths that rules deny, and the same compiled.
    denied: Vec<String>,
    globs: PathGlobs,
}

impl SecretQuery {
    pub(super) fn new(names: &SecretNames, scope: &Scope) -> Self {
        Self { names: names.clone(), denied: scope.unreadable.clone(), globs: PathGlobs::unreadable(scope) }
    }

    fn is_empty(&self) -> bool {
        self.names.is_empty() && self.denied.is_empty()
    }

    fn is_same(&self, other: &Self) -> bool {
        self.names == other.names && self.denied == other.denied
    }
}

#[derive(Debug)]
struct SecretSearch {
    root: PathBuf,
    query: SecretQuery,
    listed: HashMap<PathBuf, ListedDirectory>,
}

/// What matters of a directory.
#[derive(Debug)]
struct ListedDirectory {
    stamp: DirStamp,
    is_complete: bool,
    entries: usize,
    /// Its secret files, and its directories that rules deny.
    secrets: Vec<OsString>,
    /// Those of its directories that are searched.
    directories: Vec<OsString>,
}

/// The secrets of a directory.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct FoundSecrets {
    pub(super) paths: Vec<PathBuf>,
    /// Whether there may be others.
    pub(super) is_incomplete: bool,
}

impl SecretSearchCache {
    /// What is to be found below `root`. Links are not followed.
    pub(super) fn find(&self, root: &Path, query: &SecretQuery) -> FoundSecrets {
        let mut cached = lock(&self.0);
        let known = cached
            .iter()
            .position(|known| known.root.as_os_str() == root.as_os_str() && known.query.is_same(query));
        let mut search = known.map_or_else(
            || SecretSearch { root: root.to_owned(), query: query.clone(), listed: HashMap::new() },
            |index| cached.remove(index),
        );
        let found = search.run(MAX_ENTRIES);
        cached.insert(0, search);
        cached.truncate(MAX_CACHED);
        found
    }
}

impl SecretSearch {
    /// Searches the tree breadth first, because such files are usually near the top.
    fn run(&mut self, max_entries: usize) -> FoundSecrets {
        let mut known = std::mem::take(&mut self.listed);
        let mut found = FoundSecrets::default();
        if self.query.is_empty() {
            return found;
        }
        let mut queue = VecDeque::from([self.root.clone()]);
        let mut left = max_entries;
        while let Some(directory) = queue.pop_front() {
            let Ok(stat) = rustix::fs::lstat(&directory) else {
                found.is_incomplete = true;
                continue;
            };
            let known = known.remove(&directory).filter(|known| known.stamp.is_current(&stat));
            let listed = known.unwrap_or_else(|| list(&directory, &stat, &self.query, left));
            found.is_incomplete |= !listed.is_complete;
            found.paths.extend(listed.secrets.iter().map(|name| directory.join(name)));
            queue.extend(listed.directories.iter().map(|name| directory.join(name)));
            let rest = left.checked_sub(listed.entries);
            self.listed.insert(directory, listed);
            let Some(rest) = rest.filter(|_| found.paths.len() <= MAX_SECRETS) else {
                found.is_incomplete = true;
                return found;
            };
            left = rest;
        }
        found
    }
}

/// Lists a directory, but not much more than `max_entries` of it.
fn list(directory: &Path, stat: &Stat, query: &SecretQuery, max_entries: usize) -> ListedDirectory {
    let stamp = DirStamp::new(stat);
    let (secrets, directories) = (Vec::new(), Vec::new());
    let mut listed = ListedDirectory { stamp, is_complete: false, entries: 0, secrets, directories };
    let Ok(entries) = fs::read_dir(directory) else { return listed };
    for entry in entries {
        let Ok(entry) = entry else { return listed };
        let name = entry.file_name();
        listed.entries += 1;
        if listed.entries > max_entries {
            return listed;
        }
        let Ok(kind) = entry.file_type() else { return listed };
        let is_skipped = || SKIPPED_DIRECTORIES.iter().any(|skipped| name == *skipped);
        // What a link leads to is judged by its own name.
        let is_denied = || !query.globs.is_none() && query.globs.contain(&directory.join(&name));
        if kind.is_symlink() {
            continue;
        }
        if (!kind.is_dir() && query.names.matches(&name)) || is_denied() {
            listed.secrets.push(name);
        } else if kind.is_dir() && !is_skipped() {
            listed.directories.push(name);
        }
    }
    listed.is_complete = true;
    listed
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn names_of(globs: &[&str]) -> SecretQuery {
        let names = SecretNames::new(globs.iter().map(|&glob| glob.to_owned()).collect());
        SecretQuery::new(&names, &Scope::of("/"))
    }

    fn find(root: &Path, query: &SecretQuery, max_entries: usize) -> FoundSecrets {
        let (root, query) = (root.to_owned(), query.clone());
        SecretSearch { root, query, listed: HashMap::new() }.run(max_entries)
    }

    #[test]
    fn cached_result_changes_with_the_directory() {
        let root = tempfile::tempdir().unwrap();
        let names = names_of(&[".env"]);
        let searches = SecretSearchCache::default();
        fs::create_dir_all(root.path().join("a/b")).unwrap();
        let found = || {
            let found = searches.find(root.path(), &names);
            assert!(!found.is_incomplete);
            found.paths
        };
        assert!(found().is_empty() && found().is_empty());
        let (first, second) = (root.path().join("a/b/.env"), root.path().join("a/c/.env"));
        fs::write(&first, "").unwrap();
        assert_eq!((found(), found()), (vec![first.clone()], vec![first.clone()]));
        fs::create_dir(root.path().join("a/c")).unwrap();
        fs::write(&second, "").unwrap();
        assert_eq!(found().len(), 2);
        fs::remove_file(&first).unwrap();
        assert_eq!(found(), [second]);
    }

    #[test]
    fn files_are_found_and_links_and_directories_are_not() {
        let root = tempfile::tempdir().unwrap();
        let names = names_of(&[".env", ".env.*"]);
        fs::create_dir_all(root.path().join("a/.env/node_modules")).unwrap();
        fs::write(root.path().join("a/.env/node_modules/.env"), "").unwrap();
        fs::write(root.path().join("a/.env/.env.local"), "").unwrap();
        fs::write(root.path().join("a/.env.example"), "").unwrap();
        symlink("/", root.path().join("a/all")).unwrap();
        symlink("/etc/passwd", root.path().join(".env")).unwrap();
        let found = find(root.path(), &names, MAX_ENTRIES);
        assert_eq!(found.paths, [root.path().join("a/.env/.env.local")]);
        assert!(!found.is_incomplete);
    }

    #[test]
    fn incomplete_searches_say_so() {
        let root = tempfile::tempdir().unwrap();
        let names = names_of(&[".env", ".env.*"]);
        fs::create_dir_all(root.path().join("a/b/c")).unwrap();
        fs::write(root.path().join("a/b/.env.example"), "").unwrap();
        symlink("/", root.path().join("a/all")).unwrap();
        assert!(!find(root.path(), &names, 5).is_incomplete);
        assert!(find(root.path(), &names, 4).is_incomplete);
        assert!(find(&root.path().join("gone"), &names, MAX_ENTRIES).is_incomplete);
        assert!(!find(Path::new("/"), &names_of(&[]), 0).is_incomplete);
        for number in 0..=MAX_SECRETS {
            fs::write(root.path().join(format!(".env.{number}")), "").unwrap();
        }
        assert!(find(root.path(), &names, MAX_ENTRIES).is_incomplete);
    }
}
