//! The messages about one request, as a stream of events.
//!
//! A stateless stream has one connection: closing it cancels the request. A legacy client may lose the connection and
//! resume the stream, so sent events are kept for a while.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;
use std::time::{Duration, Instant};

use bytes::Bytes;
use haft_tool::Cancel;

use super::event_reader::EventReader;
use crate::serve::peer::{MessageSink, lock};
use crate::wire::RpcMessage;

/// Unsent bytes beyond which notifications are dropped; requests and responses never are.
const MAX_UNSENT_BYTES: usize = 4 << 20;
/// Bytes of sent events that are kept for a client that resumes.
const MAX_KEPT_BYTES: usize = 1 << 20;

/// Whether a client can resume a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamMode {
    /// It cannot.
    Single,
    /// It can. With `priming`, the stream begins with an empty event that has an id, for clients that understand it.
    Resumable { priming: bool },
}

/// The messages about one request.
pub(super) struct EventStream {
    pub(super) number: u64,
    pub(super) mode: StreamMode,
    /// Cancels the request; `None` for the stream that belongs to no request.
    cancel: Option<Cancel>,
    state: Mutex<StreamState>,
}

#[derive(Default)]
pub(super) struct StreamState {
    /// Unsent events, preceded by the sent ones that are kept.
    pub(super) events: VecDeque<StreamEvent>,
    /// The number of the first of `events`.
    pub(super) first: u64,
    /// The number of the first unsent event.
    pub(super) next: u64,
    /// The size of all `events`.
    bytes: usize,
    /// The size of the unsent events.
    pub(super) unsent_bytes: usize,
    /// Responses that are still to come.
    missing_responses: usize,
    /// There will be no more events.
    pub(super) ended: bool,
    /// The reader shall disconnect and resume later.
    pub(super) disconnecting: bool,
    /// The number of the current reader.
    pub(super) reader: u64,
    /// When the last reader disconnected, if there is none.
    disconnected_at: Option<Instant>,
    /// Whether the client has received an event id that it can resume from.
    pub(super) can_resume: bool,
    pub(super) waker: Option<Waker>,
}

pub(super) struct StreamEvent {
    pub(super) data: Bytes,
    pub(super) kind: EventKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EventKind {
    Notification,
    Request,
    /// A response, with the code of its error.
    Response(Option<i64>),
}

impl EventStream {
    /// A stream that ends after `responses`.
    pub(super) fn new(number: u64, mode: StreamMode, cancel: Option<Cancel>, responses: usize) -> Arc<Self> {
        let state = StreamState { first: 1, next: 1, missing_responses: responses, ..StreamState::default() };
        Arc::new(Self { number, mode, cancel, state: Mutex::new(state) })
    }

    /// A reader that begins after the event of that number, and replaces the current reader. `None` if the events are
    /// no longer kept.
    pub(super) fn read_after(self: &Arc<Self>, number: u64, heartbeat: Duration) -> Option<EventReader> {
        let mut state = self.state();
        if number >= state.first + state.events.len() as u64 || number + 1 < state.first {
            return None;
        }
        state.rewind(number + 1);
        state.reader += 1;
        (state.disconnected_at, state.disconnecting) = (None, false);
        state.wake();
        let reader = state.reader;
        drop(state);
        let is_primed = number == 0 && self.mode == StreamMode::Resumable { priming: true };
        Some(EventReader::new(Arc::clone(self), reader, is_primed, heartbeat))
    }

    /// No more events will come.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        state.wake();
    }

    /// Whether the stream has ended and all events were sent.
    pub(super) fn is_finished(&self) -> bool {
        self.state().is_finished()
    }

    /// When the last reader disconnected, if there is none.
    pub(super) fn disconnected_at(&self) -> Option<Instant> {
        self.state().disconnected_at
    }

    /// Ends the stream and cancels its request.
    pub(super) fn abandon(&self) {
        self.end();
        if let Some(cancel) = &self.cancel {
            cancel.cancel();
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, StreamState> {
        lock(&self.state)
    }

    fn push(&self, message: &RpcMessage) -> bool {
        let kind = match message {
            RpcMessage::Notification { .. } => EventKind::Notification,
            RpcMessage::Request { .. } => EventKind::Request,
            RpcMessage::Response { outcome, .. } => {
                EventKind::Response(outcome.as_ref().err().map(|error| error.code))
            }
        };
        let mut data = message.to_line();
        data.pop();
        let mut state = self.state();
        if state.ended || (kind == EventKind::Notification && state.unsent_bytes > MAX_UNSENT_BYTES) {
            return false;
        }
        state.bytes += data.len();
        state.unsent_bytes += data.len();
        state.events.push_back(StreamEvent { data: data.into(), kind });
        if matches!(kind, EventKind::Response(_)) {
            state.missing_responses = state.missing_responses.saturating_sub(1);
            state.ended |= state.missing_responses == 0;
        }
        while self.mode != StreamMode::Single && state.bytes > MAX_KEPT_BYTES && state.first < state.next {
            state.drop_first();
        }
        state.wake();
        true
    }

    /// Called when the reader of that number disconnects.
    pub(super) fn reader_dropped(&self, reader: u64) {
        let mut state = self.state();
        if state.reader != reader {
            return;
        }
        state.disconnected_at = Some(Instant::now());
        state.waker = None;
        let can_resume = self.mode != StreamMode::Single && (state.can_resume || self.cancel.is_none());
        let is_finished = state.is_finished();
        drop(state);
        if !is_finished && !can_resume {
            self.abandon();
        }
    }
}

impl StreamState {
    fn is_finished(&self) -> bool {
        self.ended && self.next == self.first + self.events.len() as u64
    }

    fn rewind(&mut self, next: u64) {
        self.next = next;
        let sent = usize::try_from(self.next - self.first).unwrap_or(usize::MAX);
        self.unsent_bytes = self.events.iter().skip(sent).map(|event| event.data.len()).sum();
    }

    pub(super) fn drop_first(&mut self) {
        if let Some(event) = self.events.pop_front() {
            self.bytes -= event.data.len();
            self.first += 1;
        }
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// Sends messages to a stream; dropping it ends the stream.
pub(super) struct EventSink(pub(super) Arc<EventStream>);

impl MessageSink for EventSink {
    fn send(&self, message: &RpcMessage) -> bool {
        self.0.push(message)
    }

    fn disconnect(&self) {
        if self.0.mode == (StreamMode::Resumable { priming: true }) {
            let mut state = self.0.state();
            state.disconnecting = true;
            state.wake();
        }
    }
}

impl Drop for EventSink {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The stream and the event that an event id names.
pub(super) fn parse_event_id(id: &str) -> Option<(u64, u64)> {
    let (stream, number) = id.split_once('-')?;
    Some((stream.parse().ok()?, number.parse().ok()?))
}
