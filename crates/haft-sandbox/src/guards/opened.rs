//! Opens directories whose modes keep Haft out, for the time of a search or a judgement.

use std::collections::BTreeSet;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags};

/// Directories that their owner could not list, search or change, and the modes that they get back.
#[derive(Debug, Default)]
pub(crate) struct OpenedDirectories(Vec<(OwnedFd, Mode)>);

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
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(fd) = rustix::fs::open(directory, flags, Mode::empty()) else { return };
        let Ok(stat) = rustix::fs::fstat(&fd) else { return };
        let mode = Mode::from_raw_mode(stat.st_mode);
        if set_mode(&fd, mode | Mode::RWXU).is_ok() {
            self.0.push((fd, mode));
        }
    }
}

impl Drop for OpenedDirectories {
    fn drop(&mut self) {
        for (fd, mode) in self.0.drain(..).rev() {
            // A directory that the judgement removed has no mode to set.
            let _ = set_mode(&fd, mode);
        }
    }
}

/// Sets the mode through a handle that allows nothing else.
fn set_mode(fd: &OwnedFd, mode: Mode) -> rustix::io::Result<()> {
    rustix::fs::chmod(format!("/proc/self/fd/{}", fd.as_raw_fd()), mode)
}
