//! Requests that wait for a response on a connection that carries all responses in one stream.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use serde_json::Value;

use super::deadline::Deadline;
use super::inbound::Inbound;
use super::{ClientError, lock};
use crate::wire::{RequestId, RpcMessage};

/// `ProgressUpdate` notifications that are queued for one request; beyond, the oldest is dropped.
const MAX_QUEUED_PROGRESS: usize = 32;

/// All requests of one connection that have no response yet.
#[derive(Default)]
pub(super) struct PendingRequests(Mutex<PendingState>);

#[derive(Default)]
struct PendingState {
    waiting: HashMap<RequestId, Arc<ResponseSlot>>,
    /// Why there will be no more responses.
    closed: Option<ClientError>,
}

/// Where one response arrives.
#[derive(Default)]
struct ResponseSlot {
    state: Mutex<Received>,
    changed: Condvar,
}

#[derive(Default)]
struct Received {
    outcome: Option<Result<Value, ClientError>>,
    progress: VecDeque<Value>,
}

impl PendingRequests {
    /// Registers a request, before it is sent.
    pub(super) fn register(&self, id: &RequestId) -> Result<PendingResponse<'_>, ClientError> {
        let mut state = lock(&self.0);
        if let Some(closed) = &state.closed {
            return Err(closed.clone());
        }
        let slot = Arc::new(ResponseSlot::default());
        state.waiting.insert(id.clone(), Arc::clone(&slot));
        Ok(PendingResponse { pending: self, id: id.clone(), slot })
    }

    /// Delivers a response. Returns false if no request with this id waits: it is unknown, or this is the second response.
    pub(super) fn deliver(&self, id: &RequestId, outcome: Result<Value, ClientError>) -> bool {
        let slot = lock(&self.0).waiting.remove(id);
        slot.map(|slot| slot.fill(outcome)).is_some()
    }

    /// Queues a progress notification, whose token is the id of its request.
    pub(super) fn progress(&self, params: Value) {
        let id = params.get("progressToken").and_then(RequestId::read);
        let slot = id.and_then(|id| lock(&self.0).waiting.get(&id).cloned());
        if let Some(slot) = slot {
            let mut received = lock(&slot.state);
            if received.progress.len() == MAX_QUEUED_PROGRESS {
                received.progress.pop_front();
            }
            received.progress.push_back(params);
            slot.changed.notify_all();
        }
    }

    /// Routes a message: responses and progress to their requests, the rest to `inbound`.
    pub(super) fn route(&self, message: RpcMessage, inbound: &Arc<Inbound>) {
        match message {
            RpcMessage::Response { id: Some(id), outcome } => {
                self.deliver(&id, outcome.map_err(ClientError::from));
            }
            RpcMessage::Response { id: None, .. } => {}
            RpcMessage::Notification { method, params } if method == "notifications/progress" => {
                self.progress(params);
            }
            // A stateless server ends a subscription this way; in other versions this is about the server's own requests.
            RpcMessage::Notification { method, params }
                if method == "notifications/cancelled" && !inbound.accepts_requests() =>
            {
                if let Some(id) = params.get("requestId").and_then(RequestId::read) {
                    self.deliver(
                        &id,
                        Err(ClientError::disconnected("the server has ended the subscription")),
                    );
                }
            }
            message => inbound.receive(message),
        }
    }

    /// Fails all requests that wait now; later ones may still succeed.
    pub(super) fn fail_all(&self, error: &ClientError) {
        let waiting = std::mem::take(&mut lock(&self.0).waiting);
        for slot in waiting.values() {
            slot.fill(Err(error.clone()));
        }
    }

    /// Whether there will be no more responses.
    pub(super) fn is_closed(&self) -> bool {
        lock(&self.0).closed.is_some()
    }

    /// Fails all requests, those registered later included. Only the first error is kept.
    pub(super) fn close(&self, error: ClientError) {
        let error = lock(&self.0).closed.get_or_insert(error).clone();
        self.fail_all(&error);
    }
}

impl ResponseSlot {
    fn fill(&self, outcome: Result<Value, ClientError>) {
        lock(&self.state).outcome.get_or_insert(outcome);
        self.changed.notify_all();
    }
}

/// A registered request; dropping it ignores the response.
pub(super) struct PendingResponse<'a> {
    pending: &'a PendingRequests,
    id: RequestId,
    slot: Arc<ResponseSlot>,
}

impl PendingResponse<'_> {
    /// Waits for the response and reports progress until it comes.
    pub(super) fn wait(self, method: &str, deadline: &Deadline<'_>) -> Result<Value, ClientError> {
        let slot = Arc::clone(&self.slot);
        let _guard = deadline.cancel.on_cancel(move || {
            drop(lock(&slot.state));
            slot.changed.notify_all();
        });
        let mut received = lock(&self.slot.state);
        loop {
            let progress = std::mem::take(&mut received.progress);
            if !progress.is_empty() {
                drop(received);
                for params in &progress {
                    deadline.progress(params);
                }
                received = lock(&self.slot.state);
            }
            // ProgressUpdate that came before the response is reported before it.
            if received.progress.is_empty()
                && let Some(outcome) = received.outcome.take()
            {
                return outcome;
            }
            let remaining = deadline.remaining(method)?;
            if received.progress.is_empty() {
                let woken = self.slot.changed.wait_timeout(received, remaining);
                received = woken.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }
}

impl Drop for PendingResponse<'_> {
    fn drop(&mut self) {
        lock(&self.pending.0).waiting.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use haft_tool::Cancel;
    use serde_json::json;

    use super::*;
    use crate::client::McpError;

    const LONG_TIMEOUT: Duration = Duration::from_mins(1);

    fn wait_after(
        pending: &PendingRequests,
        id: i64,
        act: impl FnOnce(&PendingRequests),
    ) -> Result<Value, ClientError> {
        let waiting = pending.register(&RequestId::Number(id))?;
        act(pending);
        waiting.wait("test", &Deadline::after(LONG_TIMEOUT, &Cancel::new()))
    }

    #[test]
    fn first_response_with_the_same_id_and_id_type_is_delivered() {
        let pending = PendingRequests::default();
        let answer = wait_after(&pending, 5, |pending| {
            assert!(!pending.deliver(&RequestId::Text("5".to_owned()), Ok(json!("text"))));
            assert!(!pending.deliver(&RequestId::Number(6), Ok(json!("other"))));
            assert!(pending.deliver(&RequestId::Number(5), Ok(json!("first"))));
            assert!(!pending.deliver(&RequestId::Number(5), Ok(json!("second"))));
        });
        assert_eq!(answer.unwrap(), "first");
    }

    #[test]
    fn requests_fail_with_the_first_error_after_close() {
        let pending = PendingRequests::default();
        drop(pending.register(&RequestId::Number(1)));
        assert!(!pending.deliver(&RequestId::Number(1), Ok(json!("late"))));
        let garbled = ClientError::invalid_message("?");
        assert_eq!(wait_after(&pending, 2, |pending| pending.fail_all(&garbled)), Err(garbled));
        assert_eq!(
            wait_after(&pending, 3, |pending| assert!(pending.deliver(&RequestId::Number(3), Ok(json!(3))))),
            Ok(json!(3))
        );
        let ended = ClientError::new(McpError::Disconnected, "first");
        let end = |pending: &PendingRequests| {
            pending.close(ended.clone());
            pending.close(ClientError::new(McpError::Closed, "second"));
        };
        assert_eq!(wait_after(&pending, 4, end), Err(ended.clone()));
        assert_eq!(wait_after(&pending, 5, |_| ()), Err(ended));
    }

    #[test]
    fn progress_is_reported_in_order_before_the_response_and_bounded() {
        let pending = PendingRequests::default();
        let reported = RefCell::new(Vec::new());
        let waiting = pending.register(&RequestId::Number(1)).unwrap();
        for step in [1.0, 3.0, 2.0, 4.0] {
            pending.progress(json!({"progressToken": 1, "progress": step}));
        }
        pending.progress(json!({"progressToken": "1", "progress": 9}));
        pending.progress(json!({"progressToken": 1, "progress": "half"}));
        pending.deliver(&RequestId::Number(1), Ok(json!({})));
        let cancel = Cancel::new();
        let report = |progress: &crate::client::ProgressUpdate| reported.borrow_mut().push(progress.progress);
        waiting.wait("test", &Deadline::with_progress(LONG_TIMEOUT, LONG_TIMEOUT, &cancel, &report)).unwrap();
        assert_eq!(*reported.borrow(), [1.0, 3.0, 4.0]);
        let _waiting = pending.register(&RequestId::Number(2)).unwrap();
        for step in 0..1000 {
            pending.progress(json!({"progressToken": 2, "progress": step}));
        }
        assert_eq!(
            lock(&lock(&pending.0).waiting[&RequestId::Number(2)].state).progress.len(),
            MAX_QUEUED_PROGRESS
        );
    }

    #[test]
    fn flood_of_progress_does_not_extend_the_total_timeout() {
        let (pending, stop) = (PendingRequests::default(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let waiting = pending.register(&RequestId::Number(1)).unwrap();
            scope.spawn(|| {
                for step in 0_u64.. {
                    if stop.load(Ordering::SeqCst) {
                        return;
                    }
                    pending.progress(json!({"progressToken": 1, "progress": step}));
                }
            });
            let (cancel, limit) = (Cancel::new(), Duration::from_millis(50));
            let late = waiting.wait("test", &Deadline::with_progress(limit, limit, &cancel, &|_| {}));
            stop.store(true, Ordering::SeqCst);
            assert_eq!(late.unwrap_err().kind, McpError::TimedOut);
        });
    }

    #[test]
    fn wait_ends_on_timeout_and_on_cancellation() {
        let pending = PendingRequests::default();
        let cancel = Cancel::new();
        let waiting = pending.register(&RequestId::Number(1)).unwrap();
        let late = waiting.wait("test", &Deadline::after(Duration::from_millis(5), &cancel));
        assert_eq!(late.unwrap_err().kind, McpError::TimedOut);
        let waiting = pending.register(&RequestId::Number(2)).unwrap();
        let other = cancel.clone();
        let canceller = std::thread::spawn(move || other.cancel());
        assert_eq!(
            waiting.wait("test", &Deadline::after(LONG_TIMEOUT, &cancel)).unwrap_err().kind,
            McpError::Cancelled
        );
        canceller.join().unwrap();
    }
}
