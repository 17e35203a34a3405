//! A mutex that is waited for with a deadline.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::{ClientError, lock};

/// How often a waiting thread checks its deadline.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Returns the time that is left, or the error if there is none.
pub(super) type Remaining<'a> = &'a dyn Fn() -> Result<Duration, ClientError>;

/// Held by one thread at a time; the others wait, each with its own deadline.
#[derive(Default)]
pub(super) struct TimedMutex {
    is_locked: Mutex<bool>,
    unlocked: Condvar,
}

impl TimedMutex {
    /// Waits for the lock. Dropping the guard unlocks it.
    pub(super) fn lock(&self, remaining: Remaining<'_>) -> Result<TimedGuard<'_>, ClientError> {
        let mut is_locked = lock(&self.is_locked);
        while *is_locked {
            let timeout = remaining()?.min(POLL_INTERVAL);
            is_locked =
                self.unlocked.wait_timeout(is_locked, timeout).unwrap_or_else(PoisonError::into_inner).0;
        }
        *is_locked = true;
        Ok(TimedGuard(self))
    }
}

/// Holds a [`TimedMutex`].
pub(super) struct TimedGuard<'a>(&'a TimedMutex);

impl Drop for TimedGuard<'_> {
    fn drop(&mut self) {
        *lock(&self.0.is_locked) = false;
        self.0.unlocked.notify_one();
    }
}
