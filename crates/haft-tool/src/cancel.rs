//! Cancellation of a call, for blocking loops, poll loops and futures.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};

use crate::lock;

type CancelListener = Box<dyn Fn() + Send>;

#[derive(Default)]
struct CancelInner {
    cancelled: AtomicBool,
    listeners: Mutex<(u64, BTreeMap<u64, CancelListener>)>,
}

/// The cancellation of a call. Clones share one state.
#[derive(Clone, Default)]
pub struct Cancel(Arc<CancelInner>);

impl Cancel {
    /// A cancellation that has not been requested.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests cancellation. Idempotent.
    pub fn cancel(&self) {
        if self.0.cancelled.swap(true, Ordering::SeqCst) {
            return;
        }
        let listeners = {
            let mut held = lock(&self.0.listeners);
            std::mem::take(&mut held.1)
        };
        for listener in listeners.values() {
            listener();
        }
    }

    /// Whether cancellation was requested.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::SeqCst)
    }

    /// Runs `listener` once on cancellation, or immediately if already cancelled. Dropping the guard unregisters it.
    pub fn on_cancel(&self, listener: impl Fn() + Send + 'static) -> CancelGuard {
        CancelGuard { cancel: self.clone(), key: self.listen(Box::new(listener)) }
    }

    /// Runs `listener` once on cancellation, without a guard.
    pub fn then(&self, listener: impl Fn() + Send + 'static) {
        self.listen(Box::new(listener));
    }

    fn listen(&self, listener: CancelListener) -> u64 {
        let key = {
            let mut held = lock(&self.0.listeners);
            held.0 += 1;
            let key = held.0;
            held.1.insert(key, listener);
            key
        };
        if self.is_cancelled() {
            let late = lock(&self.0.listeners).1.remove(&key);
            if let Some(listener) = late {
                listener();
            }
        }
        key
    }

    /// Blocks for `time` or until cancellation; returns whether it was cancelled.
    pub fn wait(&self, time: Duration) -> bool {
        let waiting = std::thread::current();
        let _guard = self.on_cancel(move || waiting.unpark());
        let start = Instant::now();
        while let Some(left) = time.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
            if self.is_cancelled() {
                return true;
            }
            std::thread::park_timeout(left);
        }
        self.is_cancelled()
    }

    /// Waits for cancellation.
    pub async fn cancelled(&self) {
        let mut guard = None;
        poll_fn(|cx| {
            if self.is_cancelled() {
                return Poll::Ready(());
            }
            let waker = cx.waker().clone();
            guard = Some(self.on_cancel(move || waker.wake_by_ref()));
            if self.is_cancelled() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

impl std::fmt::Debug for Cancel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Cancel").field(&self.is_cancelled()).finish()
    }
}

/// Keeps a listener registered until it is dropped.
#[derive(Debug)]
pub struct CancelGuard {
    cancel: Cancel,
    key: u64,
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        lock(&self.cancel.0.listeners).1.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn listener_runs_once_and_not_after_its_guard_is_dropped() {
        let count = Arc::new(AtomicUsize::new(0));
        let counting = |count: &Arc<AtomicUsize>| {
            let count = Arc::clone(count);
            move || {
                count.fetch_add(1, Ordering::SeqCst);
            }
        };
        let cancel = Cancel::new();
        let _early = cancel.on_cancel(counting(&count));
        drop(cancel.on_cancel(counting(&count)));
        cancel.cancel();
        cancel.cancel();
        assert_eq!(count.load(Ordering::SeqCst), 1);
        let _late = cancel.on_cancel(counting(&count));
        assert_eq!(count.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn wait_ends_with_its_time_or_with_the_cancellation() {
        let cancel = Cancel::new();
        assert!(!cancel.wait(Duration::from_millis(1)));
        let other = cancel.clone();
        let canceller = std::thread::spawn(move || other.cancel());
        assert!(cancel.wait(Duration::from_hours(1)));
        canceller.join().unwrap();
    }
}
