//! Opens directories whose modes keep Haft out, for the time of a search or a judgement.

use std::collections::BTreeSet;
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, Mode};

use handle::{open_directory, set_mode};

/// A handle that allows nothing but to set the mode.
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd as DirectoryHandle;
/// The path: a directory that cannot be listed cannot be opened here.
#[cfg(not(target_os = "linux"))]
use std::path::PathBuf as DirectoryHandle;

/// Directories that their owner could not list, search or change, and the modes that they get back.
#[derive(Debug, Default)]
pub(crate) struct OpenedDirectories(Vec<(DirectoryHandle, Mode)>);

impl OpenedDirectories {
    /// Opens the directories above these paths for `access`, as far as changes in them are recorded. A directory of another
    /// user stays as it is.
    pub(crate) fn above<'p>(
        paths: impl Iterator<Item = &'p Path>,
        access: Access,
        is_recorded: impl Fn(&Path) -> bool,
    ) -> Self {
        // Sorted, so that a directory comes before those in it.
        let above: BTreeSet<&Path> = paths.flat_map(|path| path.ancestors().skip(1)).collect();
        let mut opened = Self::default();
        for directory in above.into_iter().filter(|directory| is_recorded(directory)) {
            opened.open(directory, access);
        }
        opened
    }

    /// Opens one directory, unless it allows this access already.
    pub(super) fn open(&mut self, directory: &Path, access: Access) {
        if rustix::fs::accessat(CWD, directory, access, AtFlags::EACCESS).is_ok() {
            return;
        }
        let Ok((handle, stat)) = open_directory(directory) else { return };
        let mode = Mode::from_raw_mode(stat.st_mode);
        if set_mode(&handle, mode | Mode::RWXU).is_ok() {
            self.0.push((handle, mode));
        }
    }
}

impl Drop for OpenedDirectories {
    fn drop(&mut self) {
        for (handle, mode) in self.0.drain(..).rev() {
            // A directory that the judgement removed has no mode to set.
            let _ = set_mode(&handle, mode);
        }
    }
}

#[cfg(target_os = "linux")]
mod handle {
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::path::Path;

    use rustix::fs::{Mode, OFlags, Stat};

    pub(super) fn open_directory(path: &Path) -> rustix::io::Result<(OwnedFd, Stat)> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&fd)?;
        Ok((fd, stat))
    }

    pub(super) fn set_mode(handle: &OwnedFd, mode: Mode) -> rustix::io::Result<()> {
        rustix::fs::chmod(format!("/proc/self/fd/{}", handle.as_raw_fd()), mode)
    }
}

#[cfg(not(target_os = "linux"))]
mod handle {
    use std::path::{Path, PathBuf};

    use rustix::fs::{AtFlags, CWD, FileType, Mode, Stat};
    use rustix::io::Errno;

    pub(super) fn open_directory(path: &Path) -> rustix::io::Result<(PathBuf, Stat)> {
        let stat = rustix::fs::lstat(path)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Ok((path.to_owned(), stat)),
            _ => Err(Errno::NOTDIR),
        }
    }

    pub(super) fn set_mode(handle: &Path, mode: Mode) -> rustix::io::Result<()> {
        rustix::fs::chmodat(CWD, handle, mode, AtFlags::SYMLINK_NOFOLLOW)
    }
}
