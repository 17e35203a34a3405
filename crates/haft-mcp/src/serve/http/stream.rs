//! What there is to say about one request, as a stream of events.
//!
//! The new era has one connection for a stream: whoever hangs up takes the request back. In the old one a client may lose
//! the connection, or be asked to hang up, and come back for the rest; so what was sent is kept for a while.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use haft_tool::Cancel;
use tokio::time::{Interval, MissedTickBehavior, interval_at};

use crate::serve::peer::{Outbox, lock};
use crate::wire::Message;

/// How much may wait for a client that reads slowly before it misses notifications. Answers it never misses.
const MOST_UNREAD: usize = 4 << 20;
/// How much is kept for a client that comes back.
const MOST_KEPT: usize = 1 << 20;
/// After how many milliseconds a client that was asked to come back may do so.
const RETRY: u64 = 500;

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
    number: u64,
    manner: Manner,
    /// What the request is stopped by; the stream for news belongs to none.
    cancel: Option<Cancel>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What is not written yet, and what is kept of the rest.
    events: VecDeque<Event>,
    /// The number of the first of them.
    first: u64,
    /// The number of the first that is not written yet.
    next: u64,
    /// How large all of them are.
    bytes: usize,
    /// How large those are that are not written yet.
    unread: usize,
    /// How many answers are still to come.
    missing: usize,
    /// There will be no more.
    ended: bool,
    /// Whoever reads shall come back later.
    paused: bool,
    /// Which reader is the one who reads now.
    reader: u64,
    /// Since when nobody reads.
    left: Option<Instant>,
    /// Whether the client has seen anything to come back to.
    begun: bool,
    waker: Option<Waker>,
}

struct Event {
    data: Bytes,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Told,
    Asked,
    /// The answer, and its code if it is an error.
    Answered(Option<i64>),
}

/// How the response to a request begins.
pub(super) enum Opening {
    /// With the answer, which is all there is: its bytes, and its code if it is an error.
    Answer(Bytes, Option<i64>),
    /// With something else, or later.
    Events,
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
        if after + 1 < state.first || after >= state.first + state.events.len() as u64 {
            return None;
        }
        state.continue_after(after);
        state.reader += 1;
        (state.left, state.paused) = (None, false);
        state.wake();
        let epoch = state.reader;
        drop(state);
        let greets = after == 0 && self.manner == Manner::Resumable { primed: true };
        let mut beat = interval_at(tokio::time::Instant::now() + heartbeat, heartbeat);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Some(Reader { stream: Arc::clone(self), epoch, greets, beat })
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

    fn state(&self) -> MutexGuard<'_, State> {
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
    fn leave(&self, reader: u64) {
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

    fn forget_first(&mut self) {
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

/// Somebody who reads a stream; dropping it is hanging up.
pub(super) struct Reader {
    stream: Arc<Stream>,
    epoch: u64,
    /// Whether it begins with an event that says nothing but where to come back to.
    greets: bool,
    beat: Interval,
}

impl Reader {
    /// Waits for the first there is to say, for as long as that.
    pub(super) async fn opening(&mut self, patience: Duration) -> Opening {
        let first = std::future::poll_fn(|context| self.poll_opening(context));
        tokio::time::timeout(patience, first).await.unwrap_or(Opening::Events)
    }

    fn poll_opening(&mut self, context: &mut Context<'_>) -> Poll<Opening> {
        let mut state = self.stream.state();
        if let (true, [Event { data, kind: Kind::Answered(code) }]) =
            (state.ended, state.events.make_contiguous())
        {
            let opening = Opening::Answer(data.clone(), *code);
            state.next += 1;
            return Poll::Ready(opening);
        }
        if state.ended || state.paused || !state.events.is_empty() {
            return Poll::Ready(Opening::Events);
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }

    /// The next piece of the stream; none when it is over for this reader.
    pub(super) fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut state = self.stream.state();
        if state.reader != self.epoch {
            return Poll::Ready(None);
        }
        if std::mem::take(&mut self.greets) {
            state.begun = true;
            let greeting = format!("id: {}-0\nretry: {RETRY}\ndata: \n\n", self.stream.number);
            return Poll::Ready(Some(greeting.into()));
        }
        let index = usize::try_from(state.next - state.first).unwrap_or(usize::MAX);
        if let Some(event) = state.events.get(index) {
            let data = event.data.clone();
            let piece = match self.stream.manner {
                Manner::Once => event_of(None, &data),
                Manner::Resumable { .. } => event_of(Some((self.stream.number, state.next)), &data),
            };
            state.next += 1;
            state.unread -= data.len();
            state.begun = true;
            if self.stream.manner == Manner::Once {
                state.forget_first();
            }
            return Poll::Ready(Some(piece));
        }
        if state.ended || std::mem::take(&mut state.paused) {
            return Poll::Ready(None);
        }
        state.waker = Some(context.waker().clone());
        drop(state);
        Pin::new(&mut self.beat).poll_tick(context).map(|_| Some(Bytes::from_static(b":\n\n")))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.stream.leave(self.epoch);
    }
}

fn event_of(id: Option<(u64, u64)>, data: &Bytes) -> Bytes {
    let mut event = Vec::with_capacity(data.len() + 48);
    if let Some((stream, number)) = id {
        event.extend_from_slice(format!("id: {stream}-{number}\n").as_bytes());
    }
    event.extend_from_slice(b"data: ");
    event.extend_from_slice(data);
    event.extend_from_slice(b"\n\n");
    event.into()
}

/// Which event of which stream a client has seen last.
pub(super) fn seen(id: &str) -> Option<(u64, u64)> {
    let (stream, number) = id.split_once('-')?;
    Some((stream.parse().ok()?, number.parse().ok()?))
}
