//! What stands at a path, with the hash of its bytes.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use haft_tool::{FileNode, Node, Reads, ToolError};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::open::protected;
use crate::hash;

use super::resolve::{Leaf, Place, below, resolve};
use super::{LocalFiles, special};

/// A regular file as it was read: its state, its bytes, and what tells whether it has changed since.
pub(super) struct Current {
    pub(super) node: FileNode,
    pub(super) bytes: Vec<u8>,
    pub(super) stat: Stat,
}

/// Files beyond this are for the shell, not for a tool that holds them in memory twice.
const MOST_BYTES: u64 = 1 << 30;

impl LocalFiles {
    pub(super) fn observe_path(&self, path: &Path) -> Result<Node, ToolError> {
        let place = self.place_to_look_at(path)?;
        if !place.missing.is_empty() {
            return Ok(Node::Absent);
        }
        let (node, current) = look(&place.parent, &place.name, path)?;
        if let Some(current) = current {
            self.refuse_alias(path, &current.stat)?;
        }
        Ok(node)
    }

    fn place_to_look_at(&self, path: &Path) -> Result<Place, ToolError> {
        if self.scope.is_protected(path) {
            return Err(protected(path));
        }
        let contained = self.root_of(path);
        let place = match &contained {
            Some(root) => resolve(root, &self.roots, below(root, path)?, Leaf::Keep)?,
            None if self.scope.reads == Reads::Everywhere => {
                let root = self.filesystem()?;
                resolve(&root, std::slice::from_ref(&root), below(&root, path)?, Leaf::Keep)?
            }
            None => self.granted_place(path)?,
        };
        self.refuse_secret_place(path, &place, contained.is_some())?;
        Ok(place)
    }
}

/// What stands under `name`, and its bytes if they are a file's.
pub(super) fn look(
    parent: &OwnedFd,
    name: &OsStr,
    path: &Path,
) -> Result<(Node, Option<Current>), ToolError> {
    let stat = match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok((Node::Absent, None)),
        Err(error) => return Err(ToolError::io(path.display(), &error.into())),
    };
    Ok(match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            let current = read_current(parent, name, path)?;
            (current.as_ref().map_or(Node::Absent, |current| Node::File(current.node.clone())), current)
        }
        FileType::Directory => (Node::Dir { mode: stat.st_mode & 0o7777 }, None),
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(parent, name, Vec::new())
                .map_err(|error| ToolError::io(path.display(), &error.into()))?;
            (Node::Link { target: PathBuf::from(OsString::from_vec(target.into_bytes())) }, None)
        }
        _ => (Node::Special, None),
    })
}

/// Reads the regular file `name`; `None` if there is none.
pub(super) fn read_current(
    parent: &OwnedFd,
    name: &OsStr,
    path: &Path,
) -> Result<Option<Current>, ToolError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let fd = match rustix::fs::openat(parent, name, flags, Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(special(path, FileType::Symlink)),
        Err(Errno::NXIO) => return Err(special(path, FileType::Socket)),
        Err(error) => return Err(ToolError::io(path.display(), &error.into())),
    };
    let what = |error: Errno| ToolError::io(path.display(), &error.into());
    let stat = rustix::fs::fstat(&fd).map_err(what)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        other => return Err(special(path, other)),
    }
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    if size > MOST_BYTES {
        return Err(ToolError::failed(format!(
            "{} has {size} bytes; file tools change files up to {MOST_BYTES} bytes",
            path.display()
        )));
    }
    let mut file = File::from(fd);
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
    file.by_ref()
        .take(MOST_BYTES)
        .read_to_end(&mut bytes)
        .map_err(|error| ToolError::io(format!("read {}", path.display()), &error))?;
    let node = FileNode {
        hash: hash(&bytes),
        size: bytes.len() as u64,
        mode: stat.st_mode & 0o7777,
        owner: foreign_owner(&stat),
        xattrs: xattrs(&file),
        linked: (stat.st_nlink > 1).then_some((stat.st_dev, stat.st_ino)),
    };
    Ok(Some(Current { node, bytes, stat }))
}

/// Owner and group, where a file that this process creates would get others.
pub(super) fn foreign_owner(stat: &Stat) -> Option<(u32, u32)> {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    (stat.st_uid != uid || stat.st_gid != gid).then_some((stat.st_uid, stat.st_gid))
}

/// The extended attributes, as far as they can be read.
pub(super) fn xattrs(file: impl AsFd) -> Vec<(String, Vec<u8>)> {
    let mut names = vec![0; 64 * 1024];
    let Ok(used) = rustix::fs::flistxattr(&file, names.as_mut_slice()) else { return Vec::new() };
    names.truncate(used);
    let names = String::from_utf8_lossy(&names).into_owned();
    let mut found: Vec<(String, Vec<u8>)> = names
        .split('\0')
        .filter(|name| !name.is_empty())
        .filter_map(|name| {
            let mut value = vec![0; 64 * 1024];
            let used = rustix::fs::fgetxattr(&file, name, value.as_mut_slice()).ok()?;
            value.truncate(used);
            Some((name.to_owned(), value))
        })
        .collect();
    found.sort();
    found
}
