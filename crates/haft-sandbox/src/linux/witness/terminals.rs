//! Pseudo-terminals that a command created. Their numbers are reused, so each is identified by its open file.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{OFlags, Stat};
use rustix::io::Errno;

use super::root_dir::{RootDir, open_without_links};

/// A pseudo-terminal of the command.
#[derive(Debug)]
pub(super) struct OwnTerminal {
    number: u32,
    /// Opened without access to the terminal, so that the command still notices when it closes.
    file: OwnedFd,
}

impl OwnTerminal {
    /// The terminal whose other end is `master`. `root` is the command's root directory.
    pub(super) fn of_master(master: &OwnedFd, root: &RootDir) -> Result<Self, Errno> {
        let number = terminal_number(master).ok_or(Errno::NOTTY)?;
        let path = format!("/dev/pts/{number}");
        let file = open_without_links(root.fd(), path.as_bytes(), OFlags::NOFOLLOW)?;
        Ok(Self { number, file })
    }

    pub(super) fn is_open(&self) -> bool {
        self.stat().is_some()
    }

    /// Whether the number still means this terminal.
    pub(super) fn has_number(&self, number: u32) -> bool {
        self.number == number && self.is_open()
    }

    /// Whether `stat` is of this terminal.
    pub(super) fn is(&self, stat: &Stat) -> bool {
        self.stat().is_some_and(|own| (own.st_dev, own.st_rdev) == (stat.st_dev, stat.st_rdev))
    }

    /// `None` once the terminal is closed, which removes its file.
    fn stat(&self) -> Option<Stat> {
        rustix::fs::fstat(&self.file).ok().filter(|stat| stat.st_nlink > 0)
    }
}

#[expect(unsafe_code, reason = "the number of a pseudo-terminal has no safe reader")]
fn terminal_number(master: &OwnedFd) -> Option<u32> {
    let mut number: libc::c_uint = 0;
    // SAFETY: TIOCGPTN writes one unsigned int.
    let result = unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCGPTN, &raw mut number) };
    (result == 0).then_some(number)
}
