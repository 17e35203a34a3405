//! Locks that nobody can poison.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the mutex guards. Whoever broke down while holding it left it whole: nothing in Haft is changed in two steps.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
