//! Lists what a command created below a directory that it created.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use haft_files::{OpenedDirectories, birth_id, capture, open_directory};
use haft_tool::{FileId, Node};
use rustix::fs::{AtFlags, FileType, OFlags};

/// Flags to open a directory for listing, without following a link.
pub(super) const LIST_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What was listed.
pub(super) struct NewTree {
    /// The number of entries, those before this tree included.
    pub(super) listed: usize,
    /// What could not be read.
    pub(super) losses: Vec<String>,
}

/// Passes what is in `own` below the directory at `path` to `visit`, which returns whether to enter a directory, as long as at
/// most `max` entries are listed. What other programs created is left out. Directories in `roots` that the command closed are
/// opened while they are listed.
pub(super) fn list_new_tree(
    path: &Path,
    (own, roots): (&HashSet<FileId>, &[PathBuf]),
    max: usize,
    mut listed: usize,
    visit: &mut dyn FnMut(PathBuf, Node) -> bool,
) -> NewTree {
    let mut losses = Vec::new();
    let mut todo = vec![path.to_owned()];
    while let Some(path) = todo.pop() {
        let _opened = OpenedDirectories::down_to(&path, roots);
        let Ok((dir, list)) = open_directory(&path).and_then(|dir| {
            let list = rustix::fs::Dir::read_from(&dir)?;
            Ok((dir, list))
        }) else {
            losses.push(format!("{} cannot be listed", path.display()));
            continue;
        };
        for entry in list.flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let path = path.join(name);
            let stat = rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW);
            if let Ok(stat) = &stat
                && !birth_id(&dir, name).is_some_and(|file| own.contains(&file))
            {
                // A directory of another program may hold files of the command.
                let is_dir = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
                todo.extend(is_dir.then_some(path));
                continue;
            }
            match capture(&dir, name) {
                Ok(captured) => {
                    let is_dir = matches!(captured.node, Node::Dir { .. });
                    listed += usize::from(captured.node != Node::Absent);
                    if captured.node != Node::Absent
                        && listed <= max
                        && visit(path.clone(), captured.node)
                        && is_dir
                    {
                        todo.push(path);
                    }
                }
                Err(_) => losses.push(format!("{} cannot be read", path.display())),
            }
        }
    }
    NewTree { listed, losses }
}
