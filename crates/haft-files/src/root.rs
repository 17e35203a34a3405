//! A directory of the scope, held open: every path is resolved from its handle, never from its name.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use haft_tool::ToolError;
use rustix::fs::{Mode, OFlags};

/// A directory handle that needs no right to list the directory, where the system has such a thing.
#[cfg(target_os = "linux")]
pub(super) const HOLD: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
pub(super) const HOLD: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A directory of the scope, held open.
#[derive(Debug)]
pub struct Root {
    /// Its path, with all links resolved.
    pub path: PathBuf,
    /// Its handle.
    pub(super) fd: OwnedFd,
}

impl Root {
    /// Opens `path`, following links: the user named it.
    pub fn open(path: &Path) -> Result<Self, ToolError> {
        let what = || format!("open the directory {}", path.display());
        let fd = rustix::fs::open(path, HOLD, Mode::empty())
            .map_err(|error| ToolError::io(what(), &error.into()))?;
        let path = true_path(&fd).or_else(|| path.canonicalize().ok());
        let path =
            path.ok_or_else(|| ToolError::internal(format!("{}: its true path is unknown", what())))?;
        Ok(Self { path, fd })
    }
}

/// Where the open file really is, as the kernel says.
#[cfg(target_os = "linux")]
pub(super) fn true_path(fd: &OwnedFd) -> Option<PathBuf> {
    use std::os::fd::AsRawFd;
    std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()
}

/// Where the open file really is, as the kernel says.
#[cfg(target_vendor = "apple")]
pub(super) fn true_path(fd: &OwnedFd) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let path = rustix::fs::getpath(fd).ok()?;
    Some(PathBuf::from(std::ffi::OsString::from_vec(path.into_bytes())))
}

/// Where the open file really is: not told by this system.
#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
pub(super) fn true_path(_fd: &OwnedFd) -> Option<PathBuf> {
    None
}

/// Whether this is one of the files by which Linux shows a process: its environment, its memory, its open files. They
/// lie below a directory with the process's number.
pub(super) fn tells_about_a_process(fd: impl AsFd, real: &Path) -> bool {
    real.components().skip(1).any(|part| is_number(part.as_os_str())) && on_procfs(fd)
}

/// Whether `name` is a number, as the directories of processes are named.
pub(super) fn is_number(name: &OsStr) -> bool {
    name.as_bytes().iter().all(u8::is_ascii_digit)
}

/// Whether the open file is one that Linux makes up about itself and its processes.
#[cfg(target_os = "linux")]
pub(super) fn on_procfs(fd: impl AsFd) -> bool {
    rustix::fs::fstatfs(fd).is_ok_and(|fs| fs.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

/// Whether the open file is one that Linux makes up: no other system does.
#[cfg(not(target_os = "linux"))]
pub(super) fn on_procfs(_fd: impl AsFd) -> bool {
    false
}
