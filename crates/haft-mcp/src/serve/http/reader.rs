//! Whoever reads a stream: one connection.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Interval, MissedTickBehavior, interval_at};

use super::stream::{Event, Kind, Manner, Stream};

/// After how many milliseconds a client that was asked to come back may do so.
const RETRY: u64 = 500;

/// How the response to a request begins.
pub(super) enum Opening {
    /// With the answer, which is all there is: its bytes, and its code if it is an error.
    Answer(Bytes, Option<i64>),
    /// With something else, or later.
    Events,
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
    pub(super) fn new(stream: Arc<Stream>, epoch: u64, greets: bool, heartbeat: Duration) -> Self {
        let mut beat = interval_at(tokio::time::Instant::now() + heartbeat, heartbeat);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { stream, epoch, greets, beat }
    }

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
