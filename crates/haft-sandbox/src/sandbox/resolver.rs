//! Where paths really lead, for many paths with much of their way in common.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// How many links are followed in all: a circle must come to an end.
const MOST_LINKS: usize = 1_000;

/// Follows the links in absolute paths, each part of a way once.
///
/// Other than the system's own way to do this it also answers for what is not there yet, or what a link without a
/// target means.
#[derive(Debug, Default)]
pub(crate) struct Resolver {
    begun: bool,
    mounts: Option<File>,
    /// By the path as it is written: to hash one by its parts takes longer.
    known: HashMap<OsString, (PathBuf, bool)>,
    links: usize,
}

impl Resolver {
    /// `path` without links, as far as it exists; the rest as it is written.
    pub(super) fn resolve(&mut self, path: &Path) -> PathBuf {
        self.look(path).0
    }

    /// The same, and whether there is anything.
    pub(super) fn look(&mut self, path: &Path) -> (PathBuf, bool) {
        self.begin();
        let Some(parent) = path.parent() else { return (PathBuf::from("/"), true) };
        if let Some(known) = self.known.get(path.as_os_str()) {
            return known.clone();
        }
        let (mut place, exists) = self.look(parent);
        let found = match path.components().next_back() {
            Some(Component::Normal(name)) => {
                place.push(name);
                if exists { self.follow(place) } else { (place, false) }
            }
            Some(Component::ParentDir) => {
                place.pop();
                (place, exists)
            }
            _ => (place, exists),
        };
        self.known.insert(path.as_os_str().to_owned(), found.clone());
        found
    }

    /// The mount table, opened before anything was looked at: it tells whether something is mounted from then on.
    #[cfg(target_os = "linux")]
    pub(super) fn mounts(&mut self) -> Option<File> {
        self.begin();
        self.mounts.take()
    }

    fn begin(&mut self) {
        if !self.begun && cfg!(target_os = "linux") {
            self.mounts = File::open("/proc/self/mountinfo").ok();
        }
        self.begun = true;
    }

    /// Where `place` leads, whose parent has no links in it.
    fn follow(&mut self, place: PathBuf) -> (PathBuf, bool) {
        match fs::read_link(&place) {
            Ok(target) if self.links < MOST_LINKS => {
                self.links += 1;
                let target = place.parent().unwrap_or(&place).join(target);
                self.look(&target)
            }
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                (place, false)
            }
            _ => (place, true),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_also_to_what_is_not_there() {
        let place = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(place.path()).unwrap();
        fs::create_dir(base.join("real")).unwrap();
        symlink("real", base.join("near")).unwrap();
        symlink(base.join("near/../real/later"), base.join("far")).unwrap();
        let mut resolver = Resolver::default();
        for (path, target) in [
            ("near/a/b", "real/a/b"),
            ("far", "real/later"),
            ("far/x", "real/later/x"),
            ("real", "real"),
            ("near/../y", "y"),
            ("gone/near", "gone/near"),
        ] {
            assert_eq!(resolver.resolve(&base.join(path)), base.join(target), "{path}");
        }
        assert_eq!(resolver.resolve(Path::new("/")), Path::new("/"));
    }

    #[test]
    fn links_in_a_circle_come_to_an_end() {
        let place = tempfile::tempdir().unwrap();
        symlink("b/c", place.path().join("a")).unwrap();
        symlink("a", place.path().join("b")).unwrap();
        Resolver::default().resolve(&place.path().join("a/x"));
    }
}
