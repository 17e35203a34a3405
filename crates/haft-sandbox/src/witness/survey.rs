//! What lies below a directory that a command made: all of it is new.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_tool::Node;
use rustix::fs::{FileType, Mode, OFlags};

use super::divide::divide;
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

/// A name that is looked at later.
struct Entry {
    dir: Arc<OwnedFd>,
    name: OsString,
    path: PathBuf,
}

/// Looks through everything below `name`.
pub(super) fn survey(dir: &OwnedFd, name: &OsStr, path: &Path) -> Survey {
    let mut survey = Survey::default();
    let Ok(top) = rustix::fs::openat(dir, name, DIRECTORY, Mode::empty()) else {
        survey.losses.push(format!("{} cannot be looked through", path.display()));
        return survey;
    };
    let mut entries = Vec::new();
    let mut open = vec![(Arc::new(top), path.to_owned(), 0)];
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
                    Ok(fd) if depth < DEEPEST => open.push((Arc::new(fd), path.clone(), depth + 1)),
                    Err(_) if entry.file_type() == FileType::Unknown => {}
                    _ => survey.losses.push(format!("{} cannot be looked through", path.display())),
                }
            }
            entries.push(Entry { dir: Arc::clone(&dir), name: name.to_owned(), path });
        }
    }
    look(entries, &mut survey);
    survey
}

fn look(entries: Vec<Entry>, survey: &mut Survey) {
    for part in divide(entries, look_at) {
        match part {
            Some(part) => {
                survey.found.extend(part.found);
                survey.losses.extend(part.losses);
            }
            None => survey.losses.push("part of what was made could not be looked at".to_owned()),
        }
    }
}

fn look_at(entries: Vec<Entry>) -> Survey {
    let mut survey = Survey { found: Vec::with_capacity(entries.len()), losses: Vec::new() };
    for Entry { dir, name, path } in entries {
        match image::look(&dir, &name) {
            Ok(image) => survey.found.push((path, image.node)),
            Err(_) => survey.losses.push(format!("{} cannot be looked at", path.display())),
        }
    }
    survey
}
