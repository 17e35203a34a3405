//! Atomic replacement: at every moment there is either the old or the new file, and no other writer's version is lost.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use haft_tool::{DirNode, FileNode, FileTime, Hash};
use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, RenameFlags, Stat, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags,
};
use rustix::io::Errno;

use crate::node::{file_node, xattrs};
use crate::open::READ_FLAGS;
use crate::stat::{is_directory, is_file, mode, modified, same_version, size};

/// The mode of a new file until it has its final permissions: no other user may read it before.
pub(crate) const PRIVATE_MODE: u32 = 0o600;
/// Without setuid and setgid.
const MODE_WITHOUT_SETID: u32 = 0o1777;
const TEMP_PREFIX: &str = ".haft-";
const TEMP_SUFFIX: &str = ".tmp";

/// A random name that Haft recognises if a crash leaves the file behind.
pub fn temp_name() -> io::Result<OsString> {
    let mut random = [0_u8; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    Ok(format!("{TEMP_PREFIX}{:016x}{TEMP_SUFFIX}", u64::from_ne_bytes(random)).into())
}

/// Whether this is a name from [`temp_name`].
pub(crate) fn is_temp_name(name: &str) -> bool {
    name.starts_with(TEMP_PREFIX) && name.ends_with(TEMP_SUFFIX)
}

/// Removes temporary files that a dead process left behind, if they have a name that Haft gives.
pub fn remove_leftovers(temps: &[PathBuf]) {
    for temp in temps {
        if temp.file_name().and_then(OsStr::to_str).is_some_and(is_temp_name)
            && std::fs::remove_file(temp).is_err()
        {
            let _ = std::fs::remove_dir(temp);
        }
    }
}

/// Creates a file in `dir`.
pub(crate) fn create_file(dir: &OwnedFd, name: &OsStr, bits: u32) -> Result<File, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, mode(bits)).map(File::from)
}

/// Mode, owner and attributes of a file or a directory.
#[derive(Clone, Copy)]
pub(crate) struct NodeMetadata<'a> {
    pub(crate) mode: u32,
    pub(crate) owner: Option<(u32, u32)>,
    pub(crate) xattrs: &'a [(String, Vec<u8>)],
}

impl<'a> From<&'a FileNode> for NodeMetadata<'a> {
    fn from(node: &'a FileNode) -> Self {
        Self { mode: node.mode, owner: node.owner, xattrs: &node.xattrs }
    }
}

impl<'a> From<&'a DirNode> for NodeMetadata<'a> {
    fn from(node: &'a DirNode) -> Self {
        Self { mode: node.mode, owner: node.owner, xattrs: &node.xattrs }
    }
}

/// Sets mode, owner and attributes as far as this process may.
pub(crate) fn set_metadata<'a>(file: impl AsFd, node: impl Into<NodeMetadata<'a>>) -> io::Result<()> {
    let node = node.into();
    let own = || (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let (uid, gid) = node.owner.unwrap_or_else(own);
    let stat = rustix::fs::fstat(&file)?;
    let mut bits = node.mode;
    if (stat.st_uid, stat.st_gid) != (uid, gid) {
        let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        if rustix::fs::fchown(&file, uid, gid).is_err() {
            // Only root can give a file away. Setting the group may still work, and setuid must not apply to the wrong owner.
            let _ = rustix::fs::fchown(&file, None, gid);
            bits &= MODE_WITHOUT_SETID;
        }
    }
    // A directory's default ACL can give a new file attributes that the old one did not have.
    for (name, _) in xattrs(&file) {
        if !node.xattrs.iter().any(|(wanted, _)| *wanted == name) {
            let _ = rustix::fs::fremovexattr(&file, name.as_str());
        }
    }
    for (name, value) in node.xattrs {
        let _ = rustix::fs::fsetxattr(&file, name.as_str(), value, XattrFlags::empty());
    }
    // After the owner, because changing that clears setuid.
    rustix::fs::fchmod(&file, mode(bits))?;
    Ok(())
}

/// Sets the time of the last modification of an entry.
pub(crate) fn set_modified(
    dir: impl AsFd,
    name: &OsStr,
    (seconds, nanoseconds): FileTime,
) -> Result<(), Errno> {
    let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let last_modification = Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() };
    let times = Timestamps { last_access, last_modification };
    rustix::fs::utimensat(dir, name, &times, AtFlags::SYMLINK_NOFOLLOW)
}

/// Copies the regular file `name` of a directory to the new name `copy` beside it, with mode, owner, attributes and times.
pub fn copy_beside(dir: &OwnedFd, name: &OsStr, copy: &OsStr) -> io::Result<()> {
    let mut from = File::from(rustix::fs::openat(dir, name, READ_FLAGS | OFlags::NOFOLLOW, Mode::empty())?);
    let stat = rustix::fs::fstat(&from)?;
    if !is_file(&stat) {
        return Err(Errno::AGAIN.into());
    }
    let mut to = create_file(dir, copy, PRIVATE_MODE)?;
    let mut fill = || {
        io::copy(&mut from, &mut to)?;
        set_metadata(&to, &file_node(Hash::new(), size(&stat), &stat, &from))?;
        Ok(set_modified(dir, copy, modified(&stat))?)
    };
    fill().inspect_err(|_| {
        let _ = rustix::fs::unlinkat(dir, copy, AtFlags::empty());
    })
}

/// The result of a replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replaced {
    Yes,
    /// Another program changed the file first; nothing was changed.
    Conflict,
    /// The same, and one of the other program's versions is kept under the temporary name, because it has no other name.
    ConflictKept,
}

/// A name in a directory and the temporary name beside it.
#[derive(Clone, Copy)]
pub(crate) struct ReplaceTarget<'a> {
    pub(crate) dir: &'a OwnedFd,
    /// Whether the directory is still at the path for which the write was allowed.
    pub(crate) is_in_place: &'a dyn Fn() -> bool,
    pub(crate) name: &'a OsStr,
    pub(crate) temp: &'a OsStr,
}

impl ReplaceTarget<'_> {
    /// Moves the file `new` from the temporary name to the name at which `expected` was seen (`None`: nothing).
    ///
    /// The two names are exchanged in one step, and only then is the old file checked: if it is not the expected one, they are
    /// exchanged back. So a writer that does not take Haft's lock loses nothing either. The same happens if the directory was
    /// moved meanwhile: what is written would be at a path for which it was not allowed. Nothing is left under the temporary
    /// name unless the result is `ConflictKept`.
    pub(crate) fn install(&self, new: &Stat, expected: Option<&Stat>) -> Result<Replaced, Errno> {
        let result = match expected {
            None => self.move_to_free_name(new).and_then(|moved| self.unless_moved(moved, new)),
            // Also checked before the exchange, so that others rarely see a version that is then exchanged back.
            Some(expected) if !self.is(self.name, expected) => Ok(Replaced::Conflict),
            Some(expected) => self.exchange(new, expected),
        };
        if matches!(result, Ok(Replaced::Conflict) | Err(_)) && self.is(self.temp, new) {
            let _ = self.unlink(self.temp, new);
        }
        result
    }

    fn exchange(&self, new: &Stat, expected: &Stat) -> Result<Replaced, Errno> {
        let exchange =
            || rustix::fs::renameat_with(self.dir, self.temp, self.dir, self.name, RenameFlags::EXCHANGE);
        match exchange() {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(Replaced::Conflict),
            Err(error) if is_unsupported(error) => return self.check_and_rename(new, expected),
            Err(error) => return Err(error),
        }
        let mut failure = None;
        if self.is(self.temp, expected) && (self.is_in_place)() {
            match self.unlink(self.temp, expected) {
                Ok(()) => return Ok(Replaced::Yes),
                Err(error) => failure = Some(error),
            }
        }
        let back = exchange();
        if back.is_ok() && self.is(self.temp, new) {
            return failure.map_or(Ok(Replaced::Conflict), Err);
        }
        if back.is_ok() {
            // What came back is newer, so it gets its name again.
            let _ = exchange();
        }
        Ok(Replaced::ConflictKept)
    }

    /// For file systems without exchange: a check, then a rename.
    fn check_and_rename(&self, new: &Stat, expected: &Stat) -> Result<Replaced, Errno> {
        if !self.is(self.name, expected) || !(self.is_in_place)() {
            return Ok(Replaced::Conflict);
        }
        if is_directory(new) || is_directory(expected) {
            self.unlink(self.name, expected)?;
            return self.move_to_free_name(new);
        }
        rustix::fs::renameat(self.dir, self.temp, self.dir, self.name).map(|()| Replaced::Yes)
    }

    /// Moves the temporary file to the name if that is free.
    fn move_to_free_name(&self, file: &Stat) -> Result<Replaced, Errno> {
        match rename_to_free_name(self.dir, self.temp, self.dir, self.name, is_directory(file)) {
            Ok(()) => Ok(Replaced::Yes),
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => Ok(Replaced::Conflict),
            Err(error) => Err(error),
        }
    }

    /// Takes the new file away again if the directory was moved.
    fn unless_moved(&self, moved: Replaced, new: &Stat) -> Result<Replaced, Errno> {
        if moved != Replaced::Yes || (self.is_in_place)() {
            return Ok(moved);
        }
        if self.is(self.name, new) {
            self.unlink(self.name, new)?;
        }
        Ok(Replaced::Conflict)
    }

    /// Removes what was created under the temporary name.
    pub(crate) fn remove_temp(&self) {
        let _ = rustix::fs::unlinkat(self.dir, self.temp, AtFlags::empty());
    }

    fn unlink(&self, name: &OsStr, file: &Stat) -> Result<(), Errno> {
        let flags = if is_directory(file) { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        rustix::fs::unlinkat(self.dir, name, flags)
    }

    /// Whether `name` is still the same version of the same file.
    fn is(&self, name: &OsStr, expected: &Stat) -> bool {
        rustix::fs::statat(self.dir, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|now| same_version(&now, expected))
    }
}

/// Renames without replacing anything, or at most an empty directory by a directory.
pub(crate) fn rename_to_free_name(
    from_dir: &OwnedFd,
    from: &OsStr,
    to_dir: &OwnedFd,
    to: &OsStr,
    is_directory: bool,
) -> Result<(), Errno> {
    match rustix::fs::renameat_with(from_dir, from, to_dir, to, RenameFlags::NOREPLACE) {
        // A plain rename of a directory replaces nothing but an empty one.
        Err(error) if is_unsupported(error) && is_directory => {
            rustix::fs::renameat(from_dir, from, to_dir, to)
        }
        Err(error) if is_unsupported(error) => {
            rustix::fs::linkat(from_dir, from, to_dir, to, AtFlags::empty())?;
            rustix::fs::unlinkat(from_dir, from, AtFlags::empty())
        }
        other => other,
    }
}

/// Whether the file system does not support the flag of a rename.
pub(crate) fn is_unsupported(error: Errno) -> bool {
    matches!(error, Errno::INVAL | Errno::NOSYS | Errno::NOTSUP)
}
