//! Lists everything below a directory that a command created.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use haft_files::capture;
use haft_tool::Node;
use rustix::fs::{FileType, Mode, OFlags};

/// Directories nested deeper are not listed: each one on the way is kept open.
const MAX_DEPTH: usize = 400;

/// Flags to open a directory for listing, without following a link.
pub(super) const LIST_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The contents of a new tree.
#[derive(Default)]
pub(super) struct NewTree {
    pub(super) entries: Vec<(PathBuf, Node)>,
    /// What could not be read.
    pub(super) losses: Vec<String>,
}

/// Lists everything below the entry `name` of a directory.
pub(super) fn list_new_tree(dir: &OwnedFd, name: &OsStr, path: &Path) -> NewTree {
    let mut tree = NewTree::default();
    let Ok(top) = rustix::fs::openat(dir, name, LIST_FLAGS, Mode::empty()) else {
        tree.losses.push(cannot_list(path));
        return tree;
    };
    let mut todo = vec![(top, path.to_owned(), 0)];
    while let Some((dir, path, depth)) = todo.pop() {
        let Ok(list) = rustix::fs::Dir::read_from(&dir) else {
            tree.losses.push(cannot_list(&path));
            continue;
        };
        for entry in list.flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let path = path.join(name);
            // Some file systems do not report the type.
            if matches!(entry.file_type(), FileType::Directory | FileType::Unknown) {
                match rustix::fs::openat(&dir, name, LIST_FLAGS, Mode::empty()) {
                    Ok(fd) if depth < MAX_DEPTH => todo.push((fd, path.clone(), depth + 1)),
                    Err(_) if entry.file_type() == FileType::Unknown => {}
                    _ => tree.losses.push(cannot_list(&path)),
                }
            }
            match capture(&dir, name) {
                Ok(captured) => tree.entries.push((path, captured.node)),
                Err(_) => tree.losses.push(format!("{} cannot be read", path.display())),
            }
        }
    }
    tree
}

fn cannot_list(path: &Path) -> String {
    format!("{} cannot be listed", path.display())
}
