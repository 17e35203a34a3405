//! Opens directories whose modes keep Haft out, for as long as a search, a judgement or a comparison takes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, Mode};

use handle::{open_directory, set_mode};

/// A handle, got without following a link.
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd as DirectoryHandle;
/// The path, because a directory that cannot be listed cannot be opened on this system.
#[cfg(not(target_os = "linux"))]
use std::path::PathBuf as DirectoryHandle;

/// The access needed to list a directory and reach its entries.
pub const LIST_ACCESS: Access = Access::READ_OK.union(Access::EXEC_OK);

/// Directories that their owner could not list, search or change, and the modes that they get back.
#[derive(Debug, Default)]
pub struct OpenedDirectories(Vec<(DirectoryHandle, Mode)>);

impl OpenedDirectories {
    /// Opens for `access` the directories above these paths in which changes are recorded. A directory of another user stays as
    /// it is.
    pub fn above<'p>(
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

    /// Opens a directory and those above it that are in one of `roots`, so that it can be listed.
    pub fn down_to(directory: &Path, roots: &[PathBuf]) -> Self {
        let mut opened = Self::default();
        if is_allowed(directory, LIST_ACCESS) {
            return opened;
        }
        let above: Vec<&Path> = directory.ancestors().collect();
        let is_inside = |above: &Path| roots.iter().any(|root| above.starts_with(root));
        for above in above.into_iter().rev().filter(|above| is_inside(above)) {
            opened.open(above, LIST_ACCESS);
        }
        opened
    }

    /// Opens one directory, unless it allows this access already.
    pub fn open(&mut self, directory: &Path, access: Access) {
        if is_allowed(directory, access) {
            return;
        }
        let Some((handle, stat)) = open_directory(directory) else { return };
        let mode = Mode::from_raw_mode(stat.st_mode);
        if set_mode(&handle, mode | Mode::RWXU).is_ok() {
            self.0.push((handle, mode));
        }
    }
}

/// Whether a directory allows this access as it is.
pub fn is_allowed(directory: &Path, access: Access) -> bool {
    rustix::fs::accessat(CWD, directory, access, AtFlags::EACCESS).is_ok()
}

impl Drop for OpenedDirectories {
    fn drop(&mut self) {
        for (handle, mode) in self.0.drain(..).rev() {
            // Fails for a directory that was removed meanwhile, whose mode does not matter.
            let _ = set_mode(&handle, mode);
        }
    }
}

#[cfg(target_os = "linux")]
mod handle {
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::fs::Stat;

    pub(super) use crate::os::set_mode;

    pub(super) fn open_directory(path: &Path) -> Option<(OwnedFd, Stat)> {
        let fd = crate::open_directory(path).ok()?;
        let stat = rustix::fs::fstat(&fd).ok()?;
        Some((fd, stat))
    }
}

#[cfg(not(target_os = "linux"))]
mod handle {
    use std::path::{Path, PathBuf};

    use rustix::fs::{AtFlags, CWD, Mode, Stat};

    use crate::stat::is_directory;

    pub(super) fn open_directory(path: &Path) -> Option<(PathBuf, Stat)> {
        let stat = rustix::fs::lstat(path).ok().filter(is_directory)?;
        Some((path.to_owned(), stat))
    }

    pub(super) fn set_mode(handle: &Path, mode: Mode) -> rustix::io::Result<()> {
        rustix::fs::chmodat(CWD, handle, mode, AtFlags::SYMLINK_NOFOLLOW)
    }
}
