//! Advisory locks between Haft processes and threads.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use haft_tool::Cancel;
use rustix::fs::FlockOperation;
use rustix::io::Errno;

const MIN_POLL_INTERVAL: Duration = Duration::from_micros(50);
/// Short, because a waiter that polls rarely would always lose against others that poll often.
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The kernel's offsets are signed.
const MAX_LOCKED_OFFSET: u64 = i64::MAX as u64 >> 1;

/// Why a lock was not acquired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockError {
    Timeout,
    Cancelled,
}

/// Locks the file until the handle is closed. A file system without locks is no error, because every write is atomic anyway.
pub(crate) fn lock_exclusive(fd: &OwnedFd, timeout: Duration, cancel: &Cancel) -> Result<(), LockError> {
    wait_for(timeout, cancel, || rustix::fs::flock(fd, FlockOperation::NonBlockingLockExclusive))
}

/// Locks one byte of the file, which need not exist, until the handle is closed. So one file serves for very many locks.
pub(crate) fn lock_byte(fd: &OwnedFd, at: u64, timeout: Duration, cancel: &Cancel) -> Result<(), LockError> {
    wait_for(timeout, cancel, || try_lock_byte(fd, at))
}

fn wait_for(
    timeout: Duration,
    cancel: &Cancel,
    try_lock: impl Fn() -> Result<(), Errno>,
) -> Result<(), LockError> {
    let start = Instant::now();
    let mut interval = MIN_POLL_INTERVAL;
    while let Err(Errno::WOULDBLOCK | Errno::ACCESS | Errno::INTR) = try_lock() {
        if start.elapsed() >= timeout {
            return Err(LockError::Timeout);
        }
        if cancel.wait(interval) {
            return Err(LockError::Cancelled);
        }
        interval = (interval * 2).min(MAX_POLL_INTERVAL);
    }
    Ok(())
}

/// Tries to lock a byte for this handle, not for the process, because threads must exclude each other, too.
#[expect(unsafe_code, reason = "locks of a range have no safe wrapper")]
fn try_lock_byte(fd: &OwnedFd, at: u64) -> Result<(), Errno> {
    // SAFETY: all-zero is a valid lock, and the kernel only reads it.
    let result = unsafe {
        let mut range: libc::flock = std::mem::zeroed();
        range.l_type = libc::c_short::try_from(libc::F_WRLCK).unwrap_or_default();
        range.l_whence = libc::c_short::try_from(libc::SEEK_SET).unwrap_or_default();
        range.l_start = libc::off_t::try_from(at & MAX_LOCKED_OFFSET).unwrap_or_default();
        range.l_len = 1;
        libc::fcntl(fd.as_raw_fd(), libc::F_OFD_SETLK, &raw const range)
    };
    if result == 0 {
        return Ok(());
    }
    Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
}
