//! What lies below a directory that a command made: all of it is new.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use haft_tool::Node;
use rustix::fs::{FileType, Mode, OFlags};

use super::image;

/// Directories nested deeper than this are not looked through: each one on the way is held open.
const DEEPEST: usize = 400;

/// A directory to be listed, and nothing that leads to one.
pub(super) const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What was found.
#[derive(Default)]
pub(super) struct Survey {
    pub(super) found: Vec<(PathBuf, Node)>,
    pub(super) losses: Vec<String>,
}

/// Looks through everything below `name`.
pub(super) fn survey(dir: &OwnedFd, name: &OsStr, path: &Path) -> Survey {
    let mut survey = Survey::default();
    let Ok(top) = rustix::fs::openat(dir, name, DIRECTORY, Mode::empty()) else {
        survey.losses.push(format!("{} cannot be looked through", path.display()));
        return survey;
    };
    let mut open = vec![(top, path.to_owned(), 0)];
    while let Some((dir, path, depth)) = open.pop() {
        let Ok(list) = rustix::fs::Dir::read_from(&dir) else {
            survey.losses.push(format!("{} cannot be looked through", path.display()));
            continue;
        };
        for entry in list.flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let path = path.join(name);
            // Some file systems do not say what an entry is; opening it as a directory does.
            if matches!(entry.file_type(), FileType::Directory | FileType::Unknown) {
                match rustix::fs::openat(&dir, name, DIRECTORY, Mode::empty()) {
                    Ok(fd) if depth < DEEPEST => open.push((fd, path.clone(), depth + 1)),
                    Err(_) if entry.file_type() == FileType::Unknown => {}
                    _ => survey.losses.push(format!("{} cannot be looked through", path.display())),
                }
            }
            match image::look(&dir, name) {
                Ok(image) => survey.found.push((path, image.node)),
                Err(_) => survey.losses.push(format!("{} cannot be looked at", path.display())),
            }
        }
    }
    survey
}
