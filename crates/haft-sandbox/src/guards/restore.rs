//! Takes away what a judgement refuses. Directories are opened without following links, because other commands may be running.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use haft_files::{open_directory, temp_name};
use haft_tool::{FileNode, Node};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

/// A state to restore.
#[derive(Debug)]
pub(crate) enum Restoration {
    /// Nothing was there, or it is not known what was the user's.
    Remove,
    /// This state, with the bytes of a file.
    Put(Node, Vec<u8>),
}

impl Restoration {
    /// Restores the state at `path`. Open handles of other programs keep what is there now.
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

/// A name for something that is put aside, under which no program uses it.
pub(crate) fn refused_name(path: &Path) -> io::Result<PathBuf> {
    let mut random = [0; 4];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let mut name: OsString = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
    name.push(format!(".refused-{:08x}", u32::from_ne_bytes(random)));
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
