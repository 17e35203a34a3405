//! Locking a mutex without poisoning.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks the mutex even if a holder panicked: no value behind a mutex in Haft is ever left half changed.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
