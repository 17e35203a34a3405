//! Orders calls that write the same path. All other calls run concurrently, whatever they touch.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use haft_tool::{Cancel, lock};

/// The calls that have not ended, in the order they were made.
#[derive(Default)]
pub(crate) struct WriteOrder {
    calls: Mutex<CallQueue>,
    changed: Condvar,
}

#[derive(Default)]
struct CallQueue {
    last_number: u64,
    waiting: Vec<QueuedCall>,
}

struct QueuedCall {
    number: u64,
    /// The paths it will write; `None` until it is planned.
    writes: Option<Vec<PathBuf>>,
}

impl QueuedCall {
    /// Whether a later call that writes `paths` has to wait for this one.
    fn blocks(&self, paths: &[PathBuf]) -> bool {
        let overlaps =
            |own: &PathBuf| paths.iter().any(|path| path.starts_with(own) || own.starts_with(path));
        self.writes.as_ref().is_none_or(|own| own.iter().any(overlaps))
    }
}

/// A call's place in the order. Dropping it lets later calls go on.
pub(crate) struct WriteTurn {
    order: Arc<WriteOrder>,
    number: u64,
}

impl WriteOrder {
    /// Takes the place behind all calls made so far.
    pub(crate) fn enter(self: &Arc<Self>) -> WriteTurn {
        let mut calls = lock(&self.calls);
        calls.last_number += 1;
        let number = calls.last_number;
        calls.waiting.push(QueuedCall { number, writes: None });
        WriteTurn { order: Arc::clone(self), number }
    }

    /// Blocks until every call has ended.
    pub(crate) fn wait_until_idle(&self) {
        let calls = lock(&self.calls);
        drop(self.changed.wait_while(calls, |calls| !calls.waiting.is_empty()));
    }
}

impl WriteTurn {
    /// Declares what the call will write.
    pub(crate) fn set_writes(&self, paths: Vec<PathBuf>) {
        let mut calls = lock(&self.order.calls);
        if let Some(own) = calls.waiting.iter_mut().find(|call| call.number == self.number) {
            own.writes = Some(paths);
        }
        self.order.changed.notify_all();
    }

    /// Blocks until no earlier call writes one of these paths, and returns true; false if cancelled first.
    pub(crate) fn wait(&self, paths: &[PathBuf], cancel: &Cancel) -> bool {
        if paths.is_empty() {
            return !cancel.is_cancelled();
        }
        let order = Arc::clone(&self.order);
        let _listener = cancel.on_cancel(move || {
            // Taking the lock lets a thread that is about to wait do so first, so that it is woken.
            drop(lock(&order.calls));
            order.changed.notify_all();
        });
        let blocked = |calls: &mut CallQueue| {
            let mut earlier = calls.waiting.iter().take_while(|call| call.number < self.number);
            earlier.any(|call| call.blocks(paths)) && !cancel.is_cancelled()
        };
        drop(self.order.changed.wait_while(lock(&self.order.calls), blocked));
        !cancel.is_cancelled()
    }

    /// Lets later calls go on.
    pub(crate) fn leave(&self) {
        lock(&self.order.calls).waiting.retain(|call| call.number != self.number);
        self.order.changed.notify_all();
    }

    /// Blocks until the call has left its place, for at most `limit`; returns whether it has.
    pub(crate) fn has_left_within(&self, limit: Duration) -> bool {
        let is_there = |calls: &mut CallQueue| calls.waiting.iter().any(|call| call.number == self.number);
        let waited = self.order.changed.wait_timeout_while(lock(&self.order.calls), limit, is_there);
        let (_calls, outcome) = waited.unwrap_or_else(PoisonError::into_inner);
        !outcome.timed_out()
    }
}

impl Drop for WriteTurn {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn paths(path: &str) -> Vec<PathBuf> {
        vec![path.into()]
    }

    /// Waits on another thread; the receiver gets the result.
    fn waiting(turn: WriteTurn, path: &'static str, cancel: &Cancel) -> mpsc::Receiver<bool> {
        let (send, receive) = mpsc::channel();
        let cancel = cancel.clone();
        std::thread::spawn(move || {
            turn.set_writes(paths(path));
            send.send(turn.wait(&paths(path), &cancel)).unwrap();
        });
        receive
    }

    #[test]
    fn only_an_overlapping_write_waits() {
        let (order, cancel) = (Arc::new(WriteOrder::default()), Cancel::new());
        let first = order.enter();
        first.set_writes(paths("/w/a"));
        let beside = order.enter();
        beside.set_writes(paths("/w/ab"));
        assert!(beside.wait(&paths("/w/ab"), &cancel), "a name prefix is not a parent");
        let reader = order.enter();
        reader.set_writes(Vec::new());
        assert!(reader.wait(&[], &cancel));
        let below = waiting(order.enter(), "/w/a/b", &cancel);
        assert!(below.try_recv().is_err());
        first.leave();
        assert!(below.recv().unwrap());
    }

    #[test]
    fn writer_waits_for_earlier_call_that_is_not_planned() {
        let (order, cancel) = (Arc::new(WriteOrder::default()), Cancel::new());
        let first = order.enter();
        let second = waiting(order.enter(), "/w/a", &cancel);
        assert!(second.try_recv().is_err());
        first.set_writes(paths("/w/b"));
        assert!(second.recv().unwrap());
    }

    #[test]
    fn cancelled_writer_stops_waiting() {
        let (order, cancel) = (Arc::new(WriteOrder::default()), Cancel::new());
        let first = order.enter();
        first.set_writes(paths("/w"));
        let second = waiting(order.enter(), "/w/a", &cancel);
        cancel.cancel();
        assert!(!second.recv().unwrap());
        assert!(!first.has_left_within(Duration::ZERO));
        first.leave();
        assert!(first.has_left_within(Duration::ZERO));
        order.wait_until_idle();
    }
}
