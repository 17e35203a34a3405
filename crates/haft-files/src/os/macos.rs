//! macOS: no O_PATH and no openat2, so every path is resolved component by component with O_NOFOLLOW.

use std::ffi::{CStr, OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// Flags to open a file for its metadata only. `NONBLOCK` keeps FIFOs and devices from blocking.
pub(crate) const METADATA_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
/// Flags to open a directory as a starting point for resolution.
pub(crate) const DIR_HANDLE_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Whether [`sync_filesystem`] makes all files of a file system durable.
pub(crate) const HAS_FILESYSTEM_SYNC: bool = false;

/// Whether [`make_fifo`] works.
pub(crate) const HAS_FIFOS: bool = false;

/// The buffer of [`for_each_entry`].
pub(crate) type EntryBuffer = ();

/// Always leaves the resolution to the caller.
pub(crate) fn open_beneath(
    _root: BorrowedFd<'_>,
    _root_is_slash: bool,
    _path: &Path,
    _flags: OFlags,
) -> Option<Result<OwnedFd, Errno>> {
    None
}

/// Opens the directory at a relative path, with no link on the way.
pub(crate) fn open_without_links(dir: impl AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    super::walk_without_links(dir.as_fd(), path)
}

/// Which mechanism keeps paths below their root.
pub fn containment() -> &'static str {
    "a walk with O_NOFOLLOW"
}

/// The path of an open file, as the kernel reports it.
pub(crate) fn path_of(fd: impl AsFd) -> Option<PathBuf> {
    let path = rustix::fs::getpath(fd).ok()?;
    Some(PathBuf::from(OsString::from_vec(path.into_bytes())))
}

/// Whether the open file lies on procfs, which macOS does not have.
pub(crate) fn is_on_procfs(_fd: impl AsFd) -> bool {
    false
}

/// Sets the mode of the open file.
pub(crate) fn set_mode(fd: impl AsFd, mode: Mode) -> Result<(), Errno> {
    rustix::fs::fchmod(fd, mode)
}

/// Finds an entry for [`set_entry_mode`], even if its owner cannot read it. A link is not followed.
pub(crate) fn find_entry<'a>(
    dir: BorrowedFd<'a>,
    name: &'a OsStr,
) -> Result<((BorrowedFd<'a>, &'a OsStr), Stat), Errno> {
    let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(((dir, name), stat))
}

/// Sets the mode of an entry from [`find_entry`].
pub(crate) fn set_entry_mode((dir, name): &(BorrowedFd<'_>, &OsStr), mode: Mode) -> Result<(), Errno> {
    rustix::fs::chmodat(dir, *name, mode, AtFlags::SYMLINK_NOFOLLOW)
}

/// The name alone, because an entry of an open directory has no path here.
pub(crate) fn entry_path(_dir: impl AsFd, name: &OsStr) -> PathBuf {
    PathBuf::from(name)
}

/// Not supported: named pipes count as special files here, which are not recreated.
pub(crate) fn make_fifo(_dir: impl AsFd, _name: &OsStr, _mode: Mode) -> Result<(), Errno> {
    Err(Errno::NOTSUP)
}

/// Syncs only `fd`: see [`HAS_FILESYSTEM_SYNC`].
pub(crate) fn sync_filesystem(fd: impl AsFd) -> Result<(), Errno> {
    rustix::fs::fsync(fd)
}

/// Calls `f` with name, inode and type of each entry of the directory.
pub(crate) fn for_each_entry(
    directory: impl AsFd,
    _buffer: &mut EntryBuffer,
    mut f: impl FnMut(&CStr, u64, FileType),
) -> Result<(), Errno> {
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        f(entry.file_name(), entry.ino(), entry.file_type());
    }
    Ok(())
}

/// Unknown: the umask can only be read by setting it.
pub(crate) fn umask() -> Option<u32> {
    None
}
