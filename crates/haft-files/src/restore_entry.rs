//! Restoring one path: from its current node to another one.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use haft_tool::{FileNode, Node, OpenContent, ToolError};
use rustix::fs::{AtFlags, Dir, DirEntry, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::error::conflict;
use crate::node::capture;
use crate::os;
use crate::replace::{PRIVATE_MODE, ReplaceTarget, Replaced, create_file, set_metadata};
use crate::resolve::ResolvedPath;
use crate::restore::restore_failed;
use crate::stat::{file_id, mode, permissions, same_version};

/// Aligned blocks of this many zeros become holes.
const HOLE_BYTES: u32 = 64 << 10;
const OWNER_WRITE: u32 = 0o200;
const DIR_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const FILE_FLAGS: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// A path with its current state.
pub(crate) struct EntryRestore<'a> {
    pub(crate) target: ReplaceTarget<'a>,
    pub(crate) path: &'a Path,
    pub(crate) now: &'a Node,
    pub(crate) stat: Option<&'a Stat>,
}

impl EntryRestore<'_> {
    /// Refuses to replace a directory that has entries.
    pub(crate) fn refuse_non_empty(&self) -> Result<(), ToolError> {
        // If it cannot be listed, the kernel refuses when it is replaced.
        let Ok(entries) = Dir::read_from(self.open_directory()?) else { return Ok(()) };
        let is_entry = |entry: &DirEntry| !matches!(entry.file_name().to_bytes(), b"." | b"..");
        if entries.flatten().any(|entry| is_entry(&entry)) { Err(self.not_empty()) } else { Ok(()) }
    }

    /// Writes the stored content of `node` under the temporary name. The caller syncs it.
    pub(crate) fn prepare(
        &self,
        node: &FileNode,
        open_content: &OpenContent<'_>,
    ) -> Result<(File, Stat), ToolError> {
        let mut content = open_content(node)?;
        let mut file = create_file(self.target.dir, self.target.temp, PRIVATE_MODE)
            .map_err(|error| self.failed(error))?;
        let mut fill = || -> Result<Stat, ToolError> {
            let failed = |error: std::io::Error| restore_failed(self.path, &error);
            if copy_sparse(&mut *content, &mut file).map_err(failed)?.to_hex().as_str() != node.hash {
                return Err(ToolError::failed(format!(
                    "{}: the stored content is damaged, its hash is not {}; the file was not restored",
                    self.path.display(),
                    node.hash
                )));
            }
            set_metadata(&file, node).map_err(failed)?;
            rustix::fs::fstat(&file).map_err(|error| self.failed(error))
        };
        let stat = fill().inspect_err(|_| self.target.remove_temp())?;
        Ok((file, stat))
    }

    /// Makes the temporary name a hard link to `other`, if that is all that `node` needs.
    pub(crate) fn link(&self, other: &ResolvedPath, node: &FileNode) -> Option<Stat> {
        let ReplaceTarget { dir, temp, .. } = self.target;
        rustix::fs::linkat(&other.parent, &other.name, dir, temp, AtFlags::empty()).ok()?;
        let linked = capture(dir, temp).ok();
        let same = |now: &FileNode| FileNode { linked: node.linked, ..now.clone() } == *node;
        let stat = linked.and_then(|linked| linked.stat.filter(|_| linked.node.as_file().is_some_and(same)));
        if stat.is_none() {
            self.target.remove_temp();
        }
        stat
    }

    /// Moves `to` into place; a file has been prepared under the temporary name.
    pub(crate) fn install(&self, to: &Node, prepared: Option<&Stat>) -> Result<Replaced, ToolError> {
        let failed = |error| self.failed(error);
        match (self.now, self.stat, to) {
            (Node::Dir { .. }, _, Node::Dir { mode: bits }) => {
                os::set_mode(self.open_directory()?, mode(*bits)).map_err(failed)?;
                Ok(Replaced::Yes)
            }
            (_, None, Node::Absent) => Ok(Replaced::Yes),
            (_, Some(stat), Node::Absent) => self.target.remove(stat).map_err(failed),
            (_, stat, Node::File(_)) => {
                let prepared = prepared.ok_or_else(|| ToolError::internal("the file was not prepared"))?;
                self.target.install(prepared, stat).map_err(failed)
            }
            (_, stat, to) => self.target.install(&self.create(to).map_err(failed)?, stat).map_err(failed),
        }
    }

    /// Creates a link or a directory under the temporary name.
    fn create(&self, to: &Node) -> Result<Stat, Errno> {
        let ReplaceTarget { dir, temp, .. } = self.target;
        match to {
            Node::Link { target } => rustix::fs::symlinkat(target, dir, temp)?,
            Node::Dir { mode: bits } => {
                rustix::fs::mkdirat(dir, temp, Mode::RWXU)?;
                let made = rustix::fs::openat(dir, temp, DIR_FLAGS, Mode::empty());
                made.and_then(|fd| os::set_mode(fd, mode(*bits))).inspect_err(|_| {
                    let _ = rustix::fs::unlinkat(dir, temp, AtFlags::REMOVEDIR);
                })?;
            }
            _ => return Err(Errno::INVAL),
        }
        rustix::fs::statat(dir, temp, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Writes the prepared content into the existing file, because its other names must show it too. Not atomic.
    pub(crate) fn rewrite_in_place(&self, node: &FileNode) -> Result<Replaced, ToolError> {
        let result = self.rewrite(node).map_err(|error| restore_failed(self.path, &error));
        if result.is_ok() {
            self.target.remove_temp();
        }
        result
    }

    fn rewrite(&self, node: &FileNode) -> std::io::Result<Replaced> {
        let ReplaceTarget { dir, name, temp } = self.target;
        let open = |name: &OsStr, access| rustix::fs::openat(dir, name, FILE_FLAGS | access, Mode::empty());
        let mut prepared = File::from(open(temp, OFlags::RDONLY)?);
        let existing = open(name, OFlags::RDONLY)?;
        let now = rustix::fs::fstat(&existing)?;
        if !self.stat.is_some_and(|seen| same_version(&now, seen)) {
            return Ok(Replaced::Conflict);
        }
        let writable = match open(name, OFlags::WRONLY) {
            Err(Errno::ACCESS) => {
                rustix::fs::fchmod(&existing, mode(permissions(&now) | OWNER_WRITE))?;
                open(name, OFlags::WRONLY)
            }
            other => other,
        };
        let mut file = File::from(writable?);
        if file_id(&rustix::fs::fstat(&file)?) != file_id(&now) {
            return Ok(Replaced::Conflict);
        }
        file.set_len(0)?;
        std::io::copy(&mut prepared, &mut file)?;
        set_metadata(&file, node)?;
        file.sync_all()?;
        Ok(Replaced::Yes)
    }

    fn open_directory(&self) -> Result<OwnedFd, ToolError> {
        let ReplaceTarget { dir, name, .. } = self.target;
        match rustix::fs::openat(dir, name, DIR_FLAGS, Mode::empty()) {
            // Its owner may not list it; the mode can still be set through a handle.
            Err(Errno::ACCESS) => {
                rustix::fs::openat(dir, name, os::DIR_HANDLE_FLAGS | OFlags::NOFOLLOW, Mode::empty())
            }
            other => other,
        }
        .map_err(|error| self.failed(error))
    }

    fn not_empty(&self) -> ToolError {
        conflict(self.path, "the directory has entries that the call did not make")
    }

    fn failed(&self, error: Errno) -> ToolError {
        match error {
            Errno::NOTEMPTY => self.not_empty(),
            error => restore_failed(self.path, &error.into()),
        }
    }
}

/// Copies into an empty file, with holes for blocks of zeros, and returns the hash of the content.
fn copy_sparse(from: &mut dyn Read, to: &mut File) -> std::io::Result<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    let mut block = Vec::new();
    loop {
        block.clear();
        let count = Read::take(&mut *from, HOLE_BYTES.into()).read_to_end(&mut block)?;
        if count == 0 {
            break;
        }
        hasher.update(&block);
        if count == HOLE_BYTES as usize && block.iter().all(|byte| *byte == 0) {
            to.seek(SeekFrom::Current(HOLE_BYTES.into()))?;
        } else {
            to.write_all(&block)?;
        }
    }
    to.set_len(hasher.count())?;
    Ok(hasher.finalize())
}
