//! Tracks where directories are that a command created, removed or moved, and where they were before the command.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::path::{Path, PathBuf};

/// The directories that a command created, removed or moved. A directory is identified by its former path, the one before the
/// command; a new directory has none.
#[derive(Debug, Default)]
pub struct DirectoryTracker {
    /// By current path, the former path, `None` if the directory is new. Contains moved directories, and new ones that are not
    /// inside a new one.
    former: BTreeMap<PathBuf, Option<PathBuf>>,
    /// By former path, the current path, `None` if the directory was removed. Contains moved and removed directories.
    current: HashMap<PathBuf, Option<PathBuf>>,
}

impl DirectoryTracker {
    /// The former path of the directory at `path`; `None` if it is new or inside a new one.
    pub fn former_path(&self, path: &Path) -> Option<PathBuf> {
        if !self.former.is_empty() {
            for above in path.ancestors() {
                match self.former.get(above) {
                    Some(None) => return None,
                    Some(Some(former)) => return Some(rebase(path, above, former)),
                    None => {}
                }
            }
        }
        Some(path.to_owned())
    }

    /// Whether the directory at `path` is new or inside a new one.
    pub fn is_new(&self, path: &Path) -> bool {
        self.new_ancestor(path).is_some()
    }

    /// The new directory at or above `path`, if no moved directory is in between.
    pub fn new_ancestor<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        if self.former.is_empty() {
            return None;
        }
        let above = path.ancestors().find(|above| self.former.contains_key(*above))?;
        self.former[above].is_none().then_some(above)
    }

    /// The current path of the directory that was at `former`; `None` if it was removed.
    pub fn current_path(&self, former: &Path) -> Option<PathBuf> {
        if !self.current.is_empty() {
            for above in former.ancestors() {
                match self.current.get(above) {
                    Some(None) => return None,
                    Some(Some(current)) => return Some(rebase(former, above, current)),
                    None => {}
                }
            }
        }
        Some(former.to_owned())
    }

    /// Whether the directory at exactly this path was moved there.
    pub fn is_moved(&self, path: &Path) -> bool {
        self.former.get(path).is_some_and(Option::is_some)
    }

    /// Whether the directory that was at `former`, or one above it, was moved or removed.
    pub fn has_left(&self, former: &Path) -> bool {
        !self.current.is_empty() && former.ancestors().any(|above| self.current.contains_key(above))
    }

    /// Whether the directory with this former path was moved or removed.
    pub fn is_tracked(&self, former: &Path) -> bool {
        self.current.contains_key(former)
    }

    /// The new directories that are not in a new directory.
    pub fn new_directories(&self) -> impl Iterator<Item = &Path> {
        let is_top = |path: &Path| path.parent().is_none_or(|parent| !self.is_new(parent));
        let new = self.former.iter().filter(|(_, former)| former.is_none()).map(|(path, _)| path.as_path());
        new.filter(move |path| is_top(path))
    }

    /// The former and current paths of the directories that were moved themselves, not just with a directory above them.
    pub fn moves(&self) -> Vec<(&Path, &Path)> {
        let is_elsewhere = |former: &Path, current: &Path| {
            let with_parent = former.parent().and_then(|parent| self.current_path(parent));
            with_parent.zip(former.file_name()).is_none_or(|(parent, name)| parent.join(name) != current)
        };
        let moved = self.former.iter().filter_map(|(current, former)| Some((former.as_deref()?, &**current)));
        let mut moves: Vec<_> = moved.filter(|(former, current)| is_elsewhere(former, current)).collect();
        moves.sort_unstable();
        moves
    }

    /// Notes that the directory at `path` was created.
    pub fn created(&mut self, path: &Path) {
        if path.parent().is_none_or(|parent| !self.is_new(parent)) {
            self.former.insert(path.to_owned(), None);
        }
    }

    /// Notes that the directory at `path` was removed.
    pub fn removed(&mut self, path: &Path) {
        let former = self.former_path(path);
        self.former.remove(path);
        if let Some(former) = former {
            self.current.insert(former, None);
        }
    }

    /// Notes that the removed directory that was at `former` is there again.
    pub fn restored(&mut self, former: &Path) {
        self.former.remove(former);
        self.current.remove(former);
    }

    /// Notes that the directory at `from` was moved to `to`, which was free.
    pub fn moved(&mut self, from: &Path, to: &Path) {
        let former = self.former_path(from);
        let below: Vec<PathBuf> = self
            .former
            .range::<Path, _>((Bound::Included(from), Bound::Unbounded))
            .map(|(path, _)| path.clone())
            .take_while(|path| path.starts_with(from))
            .collect();
        for path in below {
            if let Some(former) = self.former.remove(&path) {
                self.set(rebase(&path, from, to), former);
            }
        }
        self.set(to.to_owned(), former);
    }

    fn set(&mut self, path: PathBuf, former: Option<PathBuf>) {
        if let Some(former) = &former {
            self.current.insert(former.clone(), Some(path.clone()));
        }
        self.former.insert(path, former);
    }
}

/// The path in `to` that corresponds to `path` in `from`.
fn rebase(path: &Path, from: &Path, to: &Path) -> PathBuf {
    match path.strip_prefix(from) {
        Ok(rest) if !rest.as_os_str().is_empty() => to.join(rest),
        _ => to.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracked(events: &[(&str, &str)]) -> DirectoryTracker {
        let mut tracker = DirectoryTracker::default();
        for (from, to) in events {
            match (*from, *to) {
                ("", to) => tracker.created(Path::new(to)),
                (from, "") => tracker.removed(Path::new(from)),
                (from, to) => tracker.moved(Path::new(from), Path::new(to)),
            }
        }
        tracker
    }

    #[test]
    fn former_and_current_paths_follow_moves() {
        let tracker = tracked(&[("/a/s", "/x"), ("/a", "/b"), ("", "/a"), ("/x", "/a/t"), ("/c", "")]);
        for (current, former) in [
            ("/b", Some("/a")),
            ("/b/k", Some("/a/k")),
            ("/a", None),
            ("/a/k", None),
            ("/a/t", Some("/a/s")),
            ("/a/t/u", Some("/a/s/u")),
            ("/d", Some("/d")),
        ] {
            assert_eq!(
                tracker.former_path(Path::new(current)).as_deref(),
                former.map(Path::new),
                "{current}"
            );
        }
        for (former, current) in
            [("/a", Some("/b")), ("/a/s/u", Some("/a/t/u")), ("/c", None), ("/c/d", None), ("/e", Some("/e"))]
        {
            assert_eq!(
                tracker.current_path(Path::new(former)).as_deref(),
                current.map(Path::new),
                "{former}"
            );
        }
        let moves: Vec<_> = tracker.moves();
        assert_eq!(moves, [("/a", "/b"), ("/a/s", "/a/t")].map(|(a, b)| (Path::new(a), Path::new(b))));
        assert_eq!(tracker.new_directories().collect::<Vec<_>>(), [Path::new("/a")]);
    }

    #[test]
    fn move_there_and_back_is_none() {
        let tracker = tracked(&[("/a/s", "/x"), ("/a", "/b"), ("/x", "/b/s"), ("/b", "/c"), ("/c", "/a")]);
        assert_eq!(tracker.moves(), []);
        assert_eq!(tracker.current_path(Path::new("/a/s/f")), Some("/a/s/f".into()));
    }

    #[test]
    fn swapped_directories_are_two_moves() {
        let tracker = tracked(&[("/a", "/t"), ("/b", "/a"), ("/t", "/b")]);
        assert_eq!(tracker.moves(), [("/a", "/b"), ("/b", "/a")].map(|(a, b)| (Path::new(a), Path::new(b))));
    }
}
