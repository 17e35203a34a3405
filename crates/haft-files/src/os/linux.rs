//! Linux: `O_PATH` handles, openat2, getdents, syncfs and /proc.

use std::ffi::{CStr, OsStr};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, RawDir, ResolveFlags, Stat};
use rustix::io::Errno;

/// Flags to open a file for its metadata only. That needs no read permission and has no effect on a device.
pub(crate) const METADATA_FLAGS: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
/// Flags to open a directory as a starting point for resolution. That needs no permission to list it.
pub(crate) const DIR_HANDLE_FLAGS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Whether [`sync_filesystem`] makes all files of a file system durable.
pub(crate) const HAS_FILESYSTEM_SYNC: bool = true;

/// Whether [`make_fifo`] works.
pub(crate) const HAS_FIFOS: bool = true;

/// The buffer of [`for_each_entry`].
pub(crate) type EntryBuffer = Vec<MaybeUninit<u8>>;
const ENTRY_BUFFER_BYTES: usize = 64 << 10;

/// Lets the kernel resolve `path` below `root`. Returns `None` if the caller has to resolve it component by component: on
/// an absolute link, a loop, a magic link, a concurrent rename, an overlong path, or a kernel without openat2.
pub(crate) fn open_beneath(
    root: BorrowedFd<'_>,
    root_is_slash: bool,
    path: &Path,
    flags: OFlags,
) -> Option<Result<OwnedFd, Errno>> {
    let within = if root_is_slash { ResolveFlags::IN_ROOT } else { ResolveFlags::BENEATH };
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    match rustix::fs::openat2(root, path, flags, Mode::empty(), within | ResolveFlags::NO_MAGICLINKS) {
        Err(Errno::XDEV | Errno::LOOP | Errno::AGAIN | Errno::NOSYS | Errno::PERM | Errno::NAMETOOLONG) => {
            None
        }
        opened => Some(opened),
    }
}

/// Opens the directory at a relative path, with no link on the way.
pub(crate) fn open_without_links(dir: impl AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match rustix::fs::openat2(&dir, path, DIR_HANDLE_FLAGS, Mode::empty(), within) {
        Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => super::walk_without_links(dir.as_fd(), path),
        opened => opened,
    }
}

/// Which mechanism keeps paths below their root.
pub fn containment() -> &'static str {
    match rustix::fs::openat2(rustix::fs::CWD, ".", METADATA_FLAGS, Mode::empty(), ResolveFlags::BENEATH) {
        Err(Errno::NOSYS | Errno::PERM) => "a walk with O_NOFOLLOW (this kernel has no openat2)",
        _ => "openat2 (RESOLVE_BENEATH)",
    }
}

/// The path of an open file, as the kernel reports it.
pub(crate) fn path_of(fd: impl AsFd) -> Option<PathBuf> {
    std::fs::read_link(fd_link(fd)).ok()
}

/// Whether the open file lies on procfs.
pub(crate) fn is_on_procfs(fd: impl AsFd) -> bool {
    rustix::fs::fstatfs(fd).is_ok_and(|fs| fs.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

/// Sets the mode of the open file.
pub(crate) fn set_mode(fd: impl AsFd, mode: Mode) -> Result<(), Errno> {
    match rustix::fs::fchmod(&fd, mode) {
        // An O_PATH handle; its link in /proc leads to the same file.
        Err(Errno::BADF) => rustix::fs::chmod(fd_link(&fd), mode),
        other => other,
    }
}

/// Finds an entry for [`set_entry_mode`], even if its owner cannot read it and whatever takes its name meanwhile. A link is not
/// followed.
pub(crate) fn find_entry(dir: BorrowedFd<'_>, name: &OsStr) -> Result<(OwnedFd, Stat), Errno> {
    let fd = rustix::fs::openat(dir, name, METADATA_FLAGS | OFlags::NOFOLLOW, Mode::empty())?;
    let stat = rustix::fs::fstat(&fd)?;
    Ok((fd, stat))
}

/// Sets the mode of an entry from [`find_entry`].
pub(crate) fn set_entry_mode(entry: &OwnedFd, mode: Mode) -> Result<(), Errno> {
    set_mode(entry, mode)
}

/// A path of the entry `name` of a directory, for calls that take only paths.
pub(crate) fn entry_path(dir: impl AsFd, name: &OsStr) -> PathBuf {
    // `CWD` is not a real descriptor.
    if dir.as_fd().as_raw_fd() < 0 { PathBuf::from(name) } else { Path::new(&fd_link(dir)).join(name) }
}

/// Creates a named pipe.
pub(crate) fn make_fifo(dir: impl AsFd, name: &OsStr, mode: Mode) -> Result<(), Errno> {
    rustix::fs::mknodat(dir, name, FileType::Fifo, mode, 0)
}

/// Makes everything on the file system of `fd` durable.
pub(crate) fn sync_filesystem(fd: impl AsFd) -> Result<(), Errno> {
    rustix::fs::syncfs(fd)
}

/// Calls `f` with name, inode and type of each entry of the directory.
pub(crate) fn for_each_entry(
    directory: impl AsFd,
    buffer: &mut EntryBuffer,
    mut f: impl FnMut(&CStr, u64, FileType),
) -> Result<(), Errno> {
    buffer.resize(ENTRY_BUFFER_BYTES, MaybeUninit::uninit());
    let mut entries = RawDir::new(directory, buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        f(entry.file_name(), entry.ino(), entry.file_type());
    }
    Ok(())
}

/// The umask of this process.
pub(crate) fn umask() -> Option<u32> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(line.trim(), 8).ok()
}

fn fd_link(fd: impl AsFd) -> String {
    format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd())
}
