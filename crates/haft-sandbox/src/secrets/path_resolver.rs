//! Resolves symbolic links in many paths with common parents.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// Links followed in total, so that a cycle ends.
const MAX_LINKS: usize = 1_000;

/// Resolves links in absolute paths, each directory once. Unlike `canonicalize` it also resolves paths that do not
/// exist, and dangling links.
#[derive(Debug, Default)]
pub(crate) struct PathResolver {
    /// By the path as it is written, because hashing a `Path` by components is slower.
    known: HashMap<OsString, RealPath>,
    links: usize,
}

/// A path without links in its existing part.
#[derive(Debug, Clone)]
pub(crate) struct RealPath {
    pub(crate) path: PathBuf,
    pub(crate) exists: bool,
}

impl PathResolver {
    pub(crate) fn resolve(&mut self, path: &Path) -> RealPath {
        let Some(parent) = path.parent() else {
            return RealPath { path: PathBuf::from("/"), exists: true };
        };
        if let Some(known) = self.known.get(path.as_os_str()) {
            return known.clone();
        }
        let mut resolved = self.resolve(parent);
        match path.components().next_back() {
            Some(Component::Normal(name)) => {
                resolved.path.push(name);
                if resolved.exists {
                    resolved = self.follow(resolved.path);
                }
            }
            Some(Component::ParentDir) => {
                resolved.path.pop();
            }
            _ => {}
        }
        self.known.insert(path.as_os_str().to_owned(), resolved.clone());
        resolved
    }

    /// Resolves `path`, whose parent has no links in it.
    fn follow(&mut self, path: PathBuf) -> RealPath {
        match fs::read_link(&path) {
            Ok(target) if self.links < MAX_LINKS => {
                self.links += 1;
                let target = path.parent().unwrap_or(&path).join(target);
                self.resolve(&target)
            }
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                RealPath { path, exists: false }
            }
            _ => RealPath { path, exists: true },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_to_missing_files_are_resolved() {
        let directory = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(directory.path()).unwrap();
        fs::create_dir(base.join("real")).unwrap();
        symlink("real", base.join("near")).unwrap();
        symlink(base.join("near/../real/later"), base.join("far")).unwrap();
        let mut resolver = PathResolver::default();
        for (path, target) in [
            ("near/a/b", "real/a/b"),
            ("far", "real/later"),
            ("far/x", "real/later/x"),
            ("real", "real"),
            ("near/../y", "y"),
            ("gone/near", "gone/near"),
        ] {
            assert_eq!(resolver.resolve(&base.join(path)).path, base.join(target), "{path}");
        }
        assert_eq!(resolver.resolve(Path::new("/")).path, Path::new("/"));
    }

    #[test]
    fn link_cycles_end() {
        let directory = tempfile::tempdir().unwrap();
        symlink("b/c", directory.path().join("a")).unwrap();
        symlink("a", directory.path().join("b")).unwrap();
        PathResolver::default().resolve(&directory.path().join("a/x"));
    }
}
