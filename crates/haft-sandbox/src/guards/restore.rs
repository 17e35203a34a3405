//! Reverts what a judgement refuses. Directories are opened without following links, because other commands may be running.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use haft_files::{open_directory, temp_name};
use haft_tool::{FileNode, Node};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::{BeforeView, Violation};
use crate::denials::DenialList;

/// Part of the name of everything that is put aside.
pub(super) const REFUSED_MARK: &[u8] = b".refused-";

/// A state to restore.
#[derive(Debug)]
pub(crate) enum Restoration {
    /// Nothing was there, or the user's version is not known.
    Remove,
    /// This state, with the bytes if it is a file.
    Put(Node, Vec<u8>),
}

impl Restoration {
    /// Restores the state at `path`. Handles that other programs have open keep what is there now.
    pub(crate) fn perform(&self, path: &Path) -> io::Result<()> {
        let (parent, name) = path.parent().zip(path.file_name()).ok_or(io::ErrorKind::InvalidInput)?;
        let dir = open_directory(parent)?;
        let Self::Put(node, bytes) = self else { return Ok(remove(&dir, name)?) };
        match node {
            Node::Absent | Node::Fifo { .. } | Node::Special => Ok(remove(&dir, name)?),
            Node::Dir(directory) => {
                if file_type(&dir, name) == Some(FileType::Directory) {
                    return Ok(());
                }
                remove(&dir, name)?;
                rustix::fs::mkdirat(&dir, name, Mode::RWXU)?;
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let made = rustix::fs::openat(&dir, name, flags, Mode::empty())?;
                Ok(rustix::fs::fchmod(&made, haft_files::mode(directory.mode))?)
            }
            Node::File(file) => {
                let temp = temp_name()?;
                let put = write_new(&dir, &temp, bytes, file)
                    .and_then(|()| Ok(rustix::fs::renameat(&dir, &temp, &dir, name)?));
                put.inspect_err(|_| {
                    let _ = rustix::fs::unlinkat(&dir, &temp, AtFlags::empty());
                })
            }
            Node::Link { target, .. } => {
                remove(&dir, name)?;
                Ok(rustix::fs::symlinkat(target, &dir, name)?)
            }
        }
    }
}

/// Restores each refused path to its state before the command, and adds a denial for it.
pub(crate) fn restore_violations(
    mut violations: Vec<Violation>,
    before: &dyn BeforeView,
    denials: &mut DenialList,
) {
    violations.sort_by(|a, b| a.path.cmp(&b.path));
    violations.dedup_by(|a, b| a.path == b.path);
    for violation in violations {
        let rule = match restore_before(&violation.path, before) {
            Ok(()) => violation.rule(),
            Err(error) => format!("{}; it could not be restored: {error}", violation.rule()),
        };
        let place = violation.path.display().to_string();
        denials.add(violation.what, place, rule, Some(violation.allow()));
    }
}

fn restore_before(path: &Path, before: &dyn BeforeView) -> io::Result<()> {
    for directory in path.ancestors().skip(1).filter(|above| !above.exists()) {
        if let Some(node @ Node::Dir { .. }) = before.stored(directory) {
            drop(Restoration::Put(node, Vec::new()).perform(directory));
        }
    }
    let former = before.former_entry(path);
    let restoration = match former.as_ref().and_then(|former| Some((former, before.stored(former)?))) {
        Some((_, node)) if is_now(path, &node) => return put_aside(path),
        Some((former, node)) => match node.as_file().map(|file| before.stored_bytes(former, file)) {
            Some(Some(bytes)) => Restoration::Put(node, bytes),
            Some(None) => Restoration::Remove,
            None => Restoration::Put(node, Vec::new()),
        },
        // It was there before, in another directory or without effect.
        None if former.is_some() => return put_aside(path),
        None => Restoration::Remove,
    };
    restoration.perform(path)
}

fn put_aside(path: &Path) -> io::Result<()> {
    let (parent, name) = path.parent().zip(path.file_name()).ok_or(io::ErrorKind::InvalidInput)?;
    let dir = open_directory(parent)?;
    let aside = refused_name(path)?;
    let aside = aside.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::fs::renameat(&dir, name, &dir, aside)?)
}

/// Whether the path is in this state now. A file of another size is not read.
pub(crate) fn is_now(path: &Path, node: &Node) -> bool {
    let size = std::fs::symlink_metadata(path).map(|meta| meta.len()).ok();
    let may_be = node.as_file().is_none_or(|file| size == Some(file.size));
    may_be
        && haft_files::capture(rustix::fs::CWD, path.as_os_str())
            .is_ok_and(|now| now.node.fully_same_as(node))
}

/// A name for something that is put aside. No program uses a file of that name.
pub(crate) fn refused_name(path: &Path) -> io::Result<PathBuf> {
    let mut random = [0; 4];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let mut name: OsString = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
    name.push(OsStr::from_bytes(REFUSED_MARK));
    name.push(format!("{:08x}", u32::from_ne_bytes(random)));
    Ok(path.with_file_name(name))
}

fn file_type(dir: &OwnedFd, name: &OsStr) -> Option<FileType> {
    let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

fn remove(dir: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
    let removed = match file_type(dir, name) {
        Some(FileType::Directory) => rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR),
        _ => rustix::fs::unlinkat(dir, name, AtFlags::empty()),
    };
    if removed == Err(Errno::NOENT) { Ok(()) } else { removed }
}

fn write_new(dir: &OwnedFd, name: &OsStr, bytes: &[u8], node: &FileNode) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(dir, name, flags, Mode::RUSR | Mode::WUSR)?;
    let mut file = File::from(fd);
    file.write_all(bytes)?;
    if let Some((user, group)) = node.owner {
        std::os::unix::fs::fchown(&file, Some(user), Some(group))?;
    }
    file.set_permissions(Permissions::from_mode(node.mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_put_aside_through_a_link() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let names = |directory: &str| {
            let entries = std::fs::read_dir(root.join(directory)).unwrap().flatten();
            entries.map(|entry| entry.file_name().into_string().unwrap()).collect::<Vec<_>>()
        };
        for directory in ["outside", "work"] {
            std::fs::create_dir(root.join(directory)).unwrap();
            std::fs::write(root.join(directory).join("tasks.json"), "").unwrap();
        }
        std::os::unix::fs::symlink("outside", root.join("link")).unwrap();
        put_aside(&root.join("link/tasks.json")).unwrap_err();
        assert_eq!(names("outside"), ["tasks.json"]);
        put_aside(&root.join("work/tasks.json")).unwrap();
        assert!(names("work").iter().all(|name| name.starts_with("tasks.json.refused-")));
    }
}
