//! What there is to say about one request, as a stream of events.
//!
//! The new era has one connection for a stream: whoever hangs up takes the request back. In the old one a client may lose
//! the connection, or be asked to hang up, and come back for the rest; so what was sent is kept for a while.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;
use std::time::{Duration, Instant};

use bytes::Bytes;
use haft_tool::Cancel;

use super::reader::Reader;
use crate::serve::peer::{Outbox, lock};
use crate::wire::Message;

/// How much may wait for a client that reads slowly before it misses notifications. Answers it never misses.
const MOST_UNREAD: usize = 4 << 20;
/// How much is kept for a client that comes back.
const MOST_KEPT: usize = 1 << 20;

/// Whether a client that hangs up can come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// It cannot.
    Once,
    /// It can; and it hears at once where to begin, if it understands an event without a message.
    Resumable { primed: bool },
}

/// What there is to say about one request.
pub(super) struct Stream {
    pub(super) number: u64,
    pub(super) manner: Manner,
    /// What the request is stopped by; the stream for news belongs to none.
    cancel: Option<Cancel>,
    state: Mutex<State>,
}

#[derive(Default)]
pub(super) struct State {
    /// What is not written yet, and what is kept of the rest.
    pub(super) events: VecDeque<Event>,
    /// The number of the first of them.
    pub(super) first: u64,
    /// The number of the first that is not written yet.
    pub(super) next: u64,
    /// How large all of them are.
    bytes: usize,
    /// How large those are that are not written yet.
    pub(super) unread: usize,
    /// How many answers are still to come.
    missing: usize,
    /// There will be no more.
    pub(super) ended: bool,
    /// Whoever reads shall come back later.
    pub(super) paused: bool,
    /// Which reader is the one who reads now.
    pub(super) reader: u64,
    /// Since when nobody reads.
    left: Option<Instant>,
    /// Whether the client has seen anything to come back to.
    pub(super) begun: bool,
    pub(super) waker: Option<Waker>,
}

pub(super) struct Event {
    pub(super) data: Bytes,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Told,
    Asked,
    /// The answer, and its code if it is an error.
    Answered(Option<i64>),
}

impl Stream {
    /// A stream that ends with that many answers, and the one who reads it first.
    pub(super) fn new(number: u64, manner: Manner, cancel: Option<Cancel>, answers: usize) -> Arc<Self> {
        let state = State { first: 1, next: 1, missing: answers, ..State::default() };
        Arc::new(Self { number, manner, cancel, state: Mutex::new(state) })
    }

    /// Somebody who reads on from after the event of that number; whoever read until now does not any more.
    pub(super) fn read_from(self: &Arc<Self>, after: u64, heartbeat: Duration) -> Option<Reader> {
        let mut state = self.state();
        if after >= state.first + state.events.len() as u64 || after + 1 < state.first {
            return None;
        }
        state.continue_after(after);
        state.reader += 1;
        (state.left, state.paused) = (None, false);
        state.wake();
        let epoch = state.reader;
        drop(state);
        let greets = after == 0 && self.manner == Manner::Resumable { primed: true };
        Some(Reader::new(Arc::clone(self), epoch, greets, heartbeat))
    }

    /// Nothing more will be said.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        state.wake();
    }

    /// Whether all has been said and written.
    pub(super) fn is_done(&self) -> bool {
        self.state().is_done()
    }

    /// Since when nobody reads it.
    pub(super) fn left(&self) -> Option<Instant> {
        self.state().left
    }

    /// Stops the request, because nobody will come for its answer.
    pub(super) fn abandon(&self) {
        self.end();
        if let Some(cancel) = &self.cancel {
            cancel.cancel();
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn say(&self, message: &Message) -> bool {
        let kind = match message {
            Message::Notification { .. } => Kind::Told,
            Message::Request { .. } => Kind::Asked,
            Message::Response { outcome, .. } => {
                Kind::Answered(outcome.as_ref().err().map(|error| error.code))
            }
        };
        let mut data = message.to_line();
        data.pop();
        let mut state = self.state();
        if state.ended || (kind == Kind::Told && state.unread > MOST_UNREAD) {
            return false;
        }
        state.bytes += data.len();
        state.unread += data.len();
        state.events.push_back(Event { data: data.into(), kind });
        if matches!(kind, Kind::Answered(_)) {
            state.missing = state.missing.saturating_sub(1);
            state.ended |= state.missing == 0;
        }
        while self.manner != Manner::Once && state.bytes > MOST_KEPT && state.first < state.next {
            state.forget_first();
        }
        state.wake();
        true
    }

    /// The reader of that number hangs up.
    pub(super) fn leave(&self, reader: u64) {
        let mut state = self.state();
        if state.reader != reader {
            return;
        }
        state.left = Some(Instant::now());
        state.waker = None;
        let can_come_back = self.manner != Manner::Once && (state.begun || self.cancel.is_none());
        let wanted = !state.is_done();
        drop(state);
        if wanted && !can_come_back {
            self.abandon();
        }
    }
}

impl State {
    fn is_done(&self) -> bool {
        self.ended && self.next == self.first + self.events.len() as u64
    }

    fn continue_after(&mut self, number: u64) {
        self.next = number + 1;
        let written = usize::try_from(self.next - self.first).unwrap_or(usize::MAX);
        self.unread = self.events.iter().skip(written).map(|event| event.data.len()).sum();
    }

    pub(super) fn forget_first(&mut self) {
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

/// Where what is said about a request goes. When it is gone the stream ends.
pub(super) struct Speaker(pub(super) Arc<Stream>);

impl Outbox for Speaker {
    fn send(&self, message: &Message) -> bool {
        self.0.say(message)
    }

    fn pause(&self) {
        if self.0.manner == (Manner::Resumable { primed: true }) {
            let mut state = self.0.state();
            state.paused = true;
            state.wake();
        }
    }
}

impl Drop for Speaker {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Which event of which stream a client has seen last.
pub(super) fn seen(id: &str) -> Option<(u64, u64)> {
    let (stream, number) = id.split_once('-')?;
    Some((stream.parse().ok()?, number.parse().ok()?))
}
