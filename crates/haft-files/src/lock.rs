//! Advisory locks between Haft processes and threads.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use haft_tool::Cancel;
use rustix::fs::FlockOperation;
use rustix::io::Errno;

const MIN_POLL_INTERVAL: Duration = Duration::from_micros(50);
/// Short, because a waiter that polls seldom loses every time against others that poll often.
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Why a lock was not acquired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockError {
    Timeout,
    Cancelled,
}

/// Locks the file until the handle is closed. A file system without locks is no error: every write is atomic anyhow.
pub(crate) fn lock_exclusive(fd: &OwnedFd, timeout: Duration, cancel: &Cancel) -> Result<(), LockError> {
    let start = Instant::now();
    let mut interval = MIN_POLL_INTERVAL;
    while let Err(Errno::WOULDBLOCK | Errno::INTR) =
        rustix::fs::flock(fd, FlockOperation::NonBlockingLockExclusive)
    {
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
