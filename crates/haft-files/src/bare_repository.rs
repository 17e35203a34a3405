//! Git directories that are not called `.git`, such as bare repositories: git, when run inside one, runs its hooks and what its
//! configuration names.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use haft_tool::lies_in;
use rustix::fs::AtFlags;

use crate::root::Root;

/// The git directory that contains `path` once that is written: an existing one, or one that the write completes. In a `.git`,
/// names are guarded anyway.
pub(crate) fn bare_repository_around(root: &Root, path: &Path) -> Option<PathBuf> {
    let is = |name: &std::ffi::OsStr, wanted: &str| name.eq_ignore_ascii_case(wanted);
    if path.components().any(|part| is(part.as_os_str(), ".git")) {
        return None;
    }
    let above = path.ancestors().skip(1).take_while(|directory| lies_in(directory, &root.path));
    let is_repository = |directory: &&Path| {
        let added = path.strip_prefix(directory).ok().and_then(|below| below.components().next());
        let has = |name: &str| {
            let exists = || {
                let entry = directory.join(name);
                let relative = root.relative(&entry);
                relative.is_ok_and(|entry| {
                    rustix::fs::statat(root.fd.as_fd(), entry, AtFlags::SYMLINK_NOFOLLOW).is_ok()
                })
            };
            added.is_some_and(|added| is(added.as_os_str(), name)) || exists()
        };
        // How git recognises a git directory; a configuration is not required.
        has("HEAD") && (has("commondir") || has("objects") && has("refs"))
    };
    above.filter(is_repository).map(Path::to_owned).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_that_completes_a_repository_is_recognised() {
        let temp = tempfile::tempdir().unwrap();
        let root = Root::open(temp.path()).unwrap();
        let around = |path: &str| {
            let found = bare_repository_around(&root, &root.path.join(path));
            found.map(|found| found.strip_prefix(&root.path).unwrap().to_owned())
        };
        for folder in ["bare/objects", "bare/refs", ".git/objects", ".git/refs", "plain"] {
            std::fs::create_dir_all(root.path.join(folder)).unwrap();
        }
        for file in ["bare/config", ".git/config", ".git/HEAD", "plain/config"] {
            std::fs::write(root.path.join(file), "").unwrap();
        }
        assert_eq!(around("bare/hooks/update"), None, "it has no HEAD yet");
        assert_eq!(around("bare/HEAD"), Some("bare".into()));
        assert_eq!(around("bare/head"), Some("bare".into()), "some file systems ignore case");
        std::os::unix::fs::symlink("refs/heads/main", root.path.join("bare/HEAD")).unwrap();
        assert_eq!(around("bare/deep/er/file"), Some("bare".into()));
        std::fs::remove_dir(root.path.join("bare/refs")).unwrap();
        assert_eq!(around("bare/config"), None);
        assert_eq!(around("bare/refs/heads/x"), Some("bare".into()));
        assert_eq!(around("bare/commondir"), Some("bare".into()));
        for path in ["plain/HEAD", "plain/config", ".git/info/exclude", "a", "objects/a"] {
            assert_eq!(around(path), None, "{path}");
        }
    }
}
