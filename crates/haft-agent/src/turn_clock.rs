//! The time of a turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use haft_tool::{Cancel, CancelGuard};

use crate::RunStop;

/// The cancellation of a turn, by the user or by its time limit.
pub(crate) struct TurnClock {
    pub(crate) cancel: Cancel,
    pub(crate) start: Instant,
    limit: Option<Duration>,
    has_timed_out: Arc<AtomicBool>,
    /// Ends the thread that waits for the limit.
    done: Cancel,
    _link: CancelGuard,
}

impl TurnClock {
    pub(crate) fn start(limit: Option<Duration>, by_user: &Cancel) -> Self {
        let (cancel, done, has_timed_out) = (Cancel::new(), Cancel::new(), Arc::<AtomicBool>::default());
        let linked = cancel.clone();
        let link = by_user.on_cancel(move || linked.cancel());
        if let Some(limit) = limit {
            let (cancel, done, has_timed_out) = (cancel.clone(), done.clone(), Arc::clone(&has_timed_out));
            std::thread::spawn(move || {
                if !done.wait(limit) {
                    has_timed_out.store(true, Ordering::SeqCst);
                    cancel.cancel();
                }
            });
        }
        Self { cancel, start: Instant::now(), limit, has_timed_out, done, _link: link }
    }

    /// Why the turn has to end, if it was cancelled.
    pub(crate) fn stop(&self) -> Option<RunStop> {
        if !self.cancel.is_cancelled() {
            return None;
        }
        let limit = self.limit.filter(|_| self.has_timed_out.load(Ordering::SeqCst));
        let milliseconds = |limit: Duration| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        Some(limit.map_or(RunStop::Interrupted, |limit| RunStop::Timeout { limit_ms: milliseconds(limit) }))
    }
}

impl Drop for TurnClock {
    fn drop(&mut self) {
        self.done.cancel();
    }
}
