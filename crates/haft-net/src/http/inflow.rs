//! An answer on its way from the runtime that reads it to the thread that wants it.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haft_tool::{Cancel, ErrorKind, ToolError, lock};
use tokio::sync::Notify;

/// How much may wait to be taken before no more is read.
const MOST_WAITING: usize = 256 << 10;

/// The head of an answer.
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
}

/// Where one side puts what comes and the other waits for it.
#[derive(Default)]
pub(super) struct Inflow {
    state: Mutex<State>,
    changed: Condvar,
    taken: Notify,
}

#[derive(Default)]
struct State {
    head: Option<Head>,
    chunks: VecDeque<Vec<u8>>,
    waiting: usize,
    end: Option<Result<(), ToolError>>,
}

impl Inflow {
    pub(super) fn put_head(&self, head: Head) {
        self.lock().head = Some(head);
        self.changed.notify_all();
    }

    pub(super) fn put(&self, chunk: Vec<u8>) {
        let mut state = self.lock();
        state.waiting += chunk.len();
        state.chunks.push_back(chunk);
        self.changed.notify_all();
    }

    /// Nothing more will come. Only the first end counts.
    pub(super) fn end(&self, how: Result<(), ToolError>) {
        self.lock().end.get_or_insert(how);
        self.changed.notify_all();
    }

    /// Waits until more may be read.
    pub(super) async fn room(&self) {
        loop {
            let taken = self.taken.notified();
            if self.lock().waiting < MOST_WAITING {
                return;
            }
            taken.await;
        }
    }

    pub(super) fn head(
        self: &Arc<Self>,
        place: &str,
        limit: Duration,
        cancel: &Cancel,
    ) -> Result<Head, ToolError> {
        self.wait(place, limit, cancel, |state| match (state.head.take(), &state.end) {
            (Some(head), _) => Some(Ok(head)),
            (None, Some(Err(error))) => Some(Err(error.clone())),
            (None, Some(Ok(()))) => Some(Err(ToolError::internal("an answer without a head"))),
            (None, None) => None,
        })
    }

    pub(super) fn next(
        self: &Arc<Self>,
        place: &str,
        limit: Duration,
        cancel: &Cancel,
    ) -> Result<Option<Vec<u8>>, ToolError> {
        let next = self.wait(place, limit, cancel, |state| {
            let Some(chunk) = state.chunks.pop_front() else {
                return state.end.clone().map(|end| end.map(|()| None));
            };
            state.waiting -= chunk.len();
            Some(Ok(Some(chunk)))
        });
        self.taken.notify_one();
        next
    }

    fn wait<T>(
        self: &Arc<Self>,
        place: &str,
        limit: Duration,
        cancel: &Cancel,
        mut pick: impl FnMut(&mut State) -> Option<Result<T, ToolError>>,
    ) -> Result<T, ToolError> {
        let mut state = self.lock();
        if let Some(picked) = pick(&mut state) {
            return picked;
        }
        drop(state);
        let own = Arc::clone(self);
        let _guard = cancel.on_cancel(move || {
            drop(own.lock());
            own.changed.notify_all();
        });
        let start = Instant::now();
        let mut state = self.lock();
        loop {
            if let Some(picked) = pick(&mut state) {
                return picked;
            }
            if cancel.is_cancelled() {
                let why = format!("the request to {place} was cancelled");
                return Err(ToolError::new(ErrorKind::Interrupted, why));
            }
            let left = limit.saturating_sub(start.elapsed());
            if left.is_zero() {
                let why = format!("nothing came from {place} for {} s", limit.as_secs_f64());
                return Err(ToolError::new(ErrorKind::Timeout, why));
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}
