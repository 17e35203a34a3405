//! Advisory locks between Haft processes and threads.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use haft_tool::{Cancel, Record};
use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;

use crate::replace::PRIVATE_MODE;
use crate::stat::mode;

const MIN_POLL_INTERVAL: Duration = Duration::from_micros(50);
/// Short, because a waiter that polls rarely would always lose against others that poll often.
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The byte of the lock file that stands for moves of directories; entries have random ones.
const MOVES_OFFSET: u64 = 0;
const MOVES_TIMEOUT: Duration = Duration::from_secs(2);

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

/// Held while directories are moved and while paths are judged, by all Haft processes with the same ledger: what is judged must
/// not be elsewhere at that moment. `None` without a file for locks, or if another process held it for too long, for example
/// because the user has stopped that process.
pub fn lock_moves(record: &dyn Record) -> Option<OwnedFd> {
    let file = record.lock_file().ok()??;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::open(&file, flags, mode(PRIVATE_MODE)).ok()?;
    lock_byte(&fd, MOVES_OFFSET, MOVES_TIMEOUT, &Cancel::new()).ok()?;
    Some(fd)
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
