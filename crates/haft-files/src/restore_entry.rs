//! One step of a restore: moves an entry between its place and its slot.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use haft_tool::{DirNode, FileNode, Node, ToolError};
use rustix::fs::{AtFlags, Dir, DirEntry, Gid, Mode, OFlags, RenameFlags, Stat, Uid};
use rustix::io::Errno;

use crate::error::{changed_meanwhile, conflict};
use crate::os;
use crate::replace::{
    NodeMetadata, PRIVATE_MODE, create_file, is_unsupported, rename_to_free_name, set_metadata, set_modified,
};
use crate::resolve::ResolvedPath;
use crate::restore::restore_failed;
use crate::stat::{file_id, is_directory, mode, permissions, same_version};

/// Aligned blocks of this many zeros become holes.
const HOLE_BYTES: u32 = 64 << 10;
const OWNER_WRITE: u32 = 0o200;
/// The permissions that the owner of a directory needs to list and to change its entries.
pub(crate) const OWNER_ALL: u32 = 0o700;
pub(crate) const DIR_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const FILE_FLAGS: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// A name in one of Haft's own directories.
#[derive(Clone, Copy)]
pub(crate) struct Slot<'a> {
    pub(crate) dir: &'a OwnedFd,
    pub(crate) name: &'a OsStr,
}

/// An entry and its slot.
pub(crate) struct EntryRestore<'a> {
    pub(crate) found: &'a ResolvedPath,
    pub(crate) path: &'a Path,
    pub(crate) slot: Slot<'a>,
}

impl EntryRestore<'_> {
    /// Moves the directory at the path into the slot, with everything in it.
    pub(crate) fn move_directory_out(&self) -> Result<(), ToolError> {
        if !self.stat().is_ok_and(|now| is_directory(&now)) {
            return Err(conflict(self.path, "a directory was to be moved from here, but there is none"));
        }
        self.move_back()
    }

    /// Moves what is at the path into the slot: `expected`, or else an empty directory.
    pub(crate) fn move_out(&self, expected: Option<&Stat>) -> Result<(), ToolError> {
        let now = self.stat().map_err(|_| changed_meanwhile(self.path))?;
        if !is_expected(&now, expected) {
            return Err(changed_meanwhile(self.path));
        }
        self.move_back()?;
        self.check_slot(expected)
    }

    /// Moves what is at the path into the slot again.
    pub(crate) fn move_back(&self) -> Result<(), ToolError> {
        rustix::fs::renameat(&self.found.parent, &self.found.name, self.slot.dir, self.slot.name)
            .map_err(|error| self.failed(error))
    }

    /// Moves what is in the slot to the path, which must be free.
    pub(crate) fn move_in(&self) -> Result<(), ToolError> {
        let is_dir = self.slot_stat().is_ok_and(|stat| is_directory(&stat));
        let ResolvedPath { parent, name, .. } = self.found;
        match rename_to_free_name(self.slot.dir, self.slot.name, parent, name, is_dir) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {
                Err(conflict(self.path, "the path is taken"))
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Exchanges what is in the slot with what is at the path, which must be `expected`.
    pub(crate) fn exchange(&self, expected: Option<&Stat>) -> Result<(), ToolError> {
        if !self.stat().is_ok_and(|now| expected.is_some_and(|seen| same_version(&now, seen))) {
            return Err(changed_meanwhile(self.path));
        }
        match self.swap() {
            Ok(()) => self.check_slot(expected),
            Err(Errno::NOENT) => Err(changed_meanwhile(self.path)),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Exchanges the two names.
    pub(crate) fn swap(&self) -> Result<(), Errno> {
        let ResolvedPath { parent, name, .. } = self.found;
        let Slot { dir, name: slot } = self.slot;
        match rustix::fs::renameat_with(dir, slot, parent, name, RenameFlags::EXCHANGE) {
            Err(error) if is_unsupported(error) => {
                // Three renames. A crash in between leaves a name that recovery finds.
                let mut third = slot.to_owned();
                third.push("-x");
                rustix::fs::renameat(parent, name, dir, &third)?;
                rustix::fs::renameat(dir, slot, parent, name)?;
                rustix::fs::renameat(dir, &third, dir, slot)
            }
            other => other,
        }
    }

    /// Checks that the slot has what was expected at the path; a directory must be empty.
    fn check_slot(&self, expected: Option<&Stat>) -> Result<(), ToolError> {
        let now = self.slot_stat().map_err(|error| self.failed(error))?;
        if !is_expected(&now, expected) {
            return Err(changed_meanwhile(self.path));
        }
        if !is_directory(&now) {
            return Ok(());
        }
        let Ok(dir) = rustix::fs::openat(self.slot.dir, self.slot.name, DIR_FLAGS, Mode::empty()) else {
            return Ok(());
        };
        let entries = Dir::read_from(&dir).map_err(|error| self.failed(error))?;
        let is_entry = |entry: &DirEntry| !matches!(entry.file_name().to_bytes(), b"." | b"..");
        if entries.flatten().any(|entry| is_entry(&entry)) {
            return Err(conflict(self.path, "the directory has entries that the call did not make"));
        }
        Ok(())
    }

    /// Creates a link, a pipe or a directory in the slot.
    pub(crate) fn create(&self, to: &Node) -> Result<(), ToolError> {
        let Slot { dir, name } = self.slot;
        let created = match to {
            Node::Link { target, owner } => {
                rustix::fs::symlinkat(target, dir, name).map(|()| self.set_owner(*owner))
            }
            Node::Fifo { mode: bits, owner, xattrs } => {
                os::make_fifo(dir, name, mode(PRIVATE_MODE)).map_err(|error| self.failed(error))?;
                // No other program has the pipe open, so this neither waits nor wakes one.
                let fifo = rustix::fs::openat(dir, name, FILE_FLAGS | OFlags::RDWR, Mode::empty());
                let fifo = fifo.map_err(|error| self.failed(error))?;
                let metadata = NodeMetadata { mode: *bits, owner: *owner, xattrs };
                return set_metadata(fifo, metadata).map_err(|error| restore_failed(self.path, &error));
            }
            Node::Dir(node) => {
                rustix::fs::mkdirat(dir, name, Mode::RWXU).map_err(|error| self.failed(error))?;
                let dir = rustix::fs::openat(dir, name, DIR_FLAGS, Mode::empty());
                let dir = dir.map_err(|error| self.failed(error))?;
                return set_metadata(dir, node).map_err(|error| restore_failed(self.path, &error));
            }
            _ => {
                return Err(conflict(self.path, "a device or socket was there, which cannot be recreated"));
            }
        };
        created.map_err(|error| self.failed(error))
    }

    /// Sets the owner of what is in the slot, as far as this process may.
    fn set_owner(&self, owner: Option<(u32, u32)>) {
        if let Some((uid, gid)) = owner {
            let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
            let _ = rustix::fs::chownat(self.slot.dir, self.slot.name, uid, gid, AtFlags::SYMLINK_NOFOLLOW);
        }
    }

    /// Sets the time of the last modification of the file in the slot.
    pub(crate) fn set_modified(&self, node: &FileNode) -> Result<(), ToolError> {
        let Some(modified) = node.modified else { return Ok(()) };
        let Slot { dir, name } = self.slot;
        set_modified(dir, name, modified).map_err(|error| self.failed(error))
    }

    /// Writes a file with this content into the slot.
    pub(crate) fn write(&self, node: &FileNode, content: &mut dyn Read, sync: bool) -> Result<(), ToolError> {
        let mut file =
            create_file(self.slot.dir, self.slot.name, PRIVATE_MODE).map_err(|error| self.failed(error))?;
        let failed = |error: std::io::Error| restore_failed(self.path, &error);
        self.check_hash(node, copy_sparse(content, &mut file).map_err(failed)?)?;
        set_metadata(&file, node).map_err(failed)?;
        if sync { file.sync_all().map_err(failed) } else { Ok(()) }
    }

    fn check_hash(&self, node: &FileNode, hash: blake3::Hash) -> Result<(), ToolError> {
        if hash.to_hex().as_str() == node.hash {
            return Ok(());
        }
        Err(ToolError::failed(format!(
            "{}: the stored content is damaged, its hash is not {}; the file was not restored",
            self.path.display(),
            node.hash
        )))
    }

    /// Makes the slot a hard link to the file in another slot; returns whether that worked.
    pub(crate) fn link(&self, other: Slot<'_>) -> bool {
        let Slot { dir, name } = self.slot;
        rustix::fs::linkat(other.dir, other.name, dir, name, AtFlags::empty()).is_ok()
    }

    /// Writes the content into the file at the path, where its other names show it too; without content, sets only the
    /// metadata. What was there before is in the ledger.
    pub(crate) fn rewrite(
        &self,
        seen: Option<&Stat>,
        node: &FileNode,
        content: Option<&mut dyn Read>,
    ) -> Result<(), ToolError> {
        let has_content = content.is_some();
        if let Some(content) = content {
            // Prepared in the slot first, so that the file is not touched if the stored content is damaged.
            self.write(node, content, false)?;
        }
        let failed = |error: std::io::Error| restore_failed(self.path, &error);
        let is_same = self.copy_from_slot(seen, node, has_content).map_err(failed)?;
        if is_same { Ok(()) } else { Err(changed_meanwhile(self.path)) }
    }

    /// Returns whether the file at the path was `seen`.
    fn copy_from_slot(
        &self,
        seen: Option<&Stat>,
        node: &FileNode,
        has_content: bool,
    ) -> std::io::Result<bool> {
        let ResolvedPath { parent, name, .. } = self.found;
        let open = |dir: &OwnedFd, name: &OsStr, access| {
            rustix::fs::openat(dir, name, FILE_FLAGS | access, Mode::empty())
        };
        let existing = open(parent, name, OFlags::RDONLY | os::METADATA_FLAGS)?;
        let now = rustix::fs::fstat(&existing)?;
        if seen.is_some_and(|seen| !same_version(&now, seen)) {
            return Ok(false);
        }
        let writable = match open(parent, name, OFlags::WRONLY) {
            Err(Errno::ACCESS) => {
                os::set_mode(&existing, mode(permissions(&now) | OWNER_WRITE))?;
                open(parent, name, OFlags::WRONLY)
            }
            other => other,
        };
        let mut file = File::from(writable?);
        if file_id(&rustix::fs::fstat(&file)?) != file_id(&now) {
            return Ok(false);
        }
        if has_content {
            // The slot's final mode may deny reading.
            rustix::fs::chmodat(self.slot.dir, self.slot.name, mode(PRIVATE_MODE), AtFlags::empty())?;
            let mut prepared = File::from(open(self.slot.dir, self.slot.name, OFlags::RDONLY)?);
            file.set_len(0)?;
            std::io::copy(&mut prepared, &mut file)?;
        }
        set_metadata(&file, node)?;
        file.sync_all()?;
        Ok(true)
    }

    pub(crate) fn stat(&self) -> Result<Stat, Errno> {
        rustix::fs::statat(&self.found.parent, &self.found.name, AtFlags::SYMLINK_NOFOLLOW)
    }

    pub(crate) fn slot_stat(&self) -> Result<Stat, Errno> {
        rustix::fs::statat(self.slot.dir, self.slot.name, AtFlags::SYMLINK_NOFOLLOW)
    }

    pub(crate) fn failed(&self, error: Errno) -> ToolError {
        restore_failed(self.path, &error.into())
    }
}

fn is_expected(now: &Stat, expected: Option<&Stat>) -> bool {
    expected.map_or(is_directory(now), |seen| same_version(now, seen))
}

/// Changes mode, owner and attributes of a directory.
pub(crate) fn set_directory(
    found: &ResolvedPath,
    path: &Path,
    old: &DirNode,
    new: &DirNode,
) -> Result<(), ToolError> {
    let failed = |error: Errno| restore_failed(path, &error.into());
    let open = |flags: OFlags| rustix::fs::openat(&found.parent, &found.name, flags, Mode::empty());
    let dir = match open(DIR_FLAGS) {
        // Its owner may not list it, but the mode can still be set through a handle.
        Err(Errno::ACCESS) => open(os::DIR_HANDLE_FLAGS | OFlags::NOFOLLOW),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Err(changed_meanwhile(path)),
        other => other,
    };
    let dir = dir.map_err(failed)?;
    if permissions(&rustix::fs::fstat(&dir).map_err(failed)?) != old.mode {
        return Err(changed_meanwhile(path));
    }
    if (old.owner, &old.xattrs) != (new.owner, &new.xattrs) {
        os::set_mode(&dir, mode(old.mode | OWNER_ALL)).map_err(failed)?;
        let dir = open(DIR_FLAGS).map_err(failed)?;
        return set_metadata(dir, new).map_err(|error| restore_failed(path, &error));
    }
    os::set_mode(dir, mode(new.mode)).map_err(failed)
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
