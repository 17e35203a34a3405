//! Reads an event stream for one connection.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Interval, MissedTickBehavior, interval_at};

use super::event_stream::{EventKind, EventStream, StreamEvent, StreamMode};

/// How long a client that was disconnected waits before it resumes.
const RETRY_MS: u64 = 500;
/// Room for the fields around the data of an event.
const EVENT_OVERHEAD_BYTES: usize = 48;

/// How the response to a request begins.
pub(super) enum FirstReply {
    /// With the response, before anything else: its JSON, and its code if it is an error.
    Response(Bytes, Option<i64>),
    /// With something else, or too late: as a stream.
    Stream,
}

/// Reads a stream; dropping it disconnects.
pub(super) struct EventReader {
    stream: Arc<EventStream>,
    number: u64,
    /// Whether the priming event is to be sent.
    is_primed: bool,
    heartbeat: Interval,
}

impl EventReader {
    pub(super) fn new(stream: Arc<EventStream>, number: u64, is_primed: bool, interval: Duration) -> Self {
        let mut heartbeat = interval_at(tokio::time::Instant::now() + interval, interval);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { stream, number, is_primed, heartbeat }
    }

    /// Waits for the first event, at most for `timeout`.
    pub(super) async fn first_reply(&mut self, timeout: Duration) -> FirstReply {
        let first = std::future::poll_fn(|context| self.poll_first_reply(context));
        tokio::time::timeout(timeout, first).await.unwrap_or(FirstReply::Stream)
    }

    fn poll_first_reply(&mut self, context: &mut Context<'_>) -> Poll<FirstReply> {
        let mut state = self.stream.state();
        if let (true, [StreamEvent { data, kind: EventKind::Response(code) }]) =
            (state.ended, state.events.make_contiguous())
        {
            let reply = FirstReply::Response(data.clone(), *code);
            state.next += 1;
            return Poll::Ready(reply);
        }
        if state.ended || state.disconnecting || !state.events.is_empty() {
            return Poll::Ready(FirstReply::Stream);
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }

    /// The next event or heartbeat; `None` when the stream is over for this reader.
    pub(super) fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut state = self.stream.state();
        if state.reader != self.number {
            return Poll::Ready(None);
        }
        if std::mem::take(&mut self.is_primed) {
            state.can_resume = true;
            let event = format!("id: {}-0\nretry: {RETRY_MS}\ndata: \n\n", self.stream.number);
            return Poll::Ready(Some(event.into()));
        }
        let index = usize::try_from(state.next - state.first).unwrap_or(usize::MAX);
        if let Some(event) = state.events.get(index) {
            let data = event.data.clone();
            let chunk = match self.stream.mode {
                StreamMode::Single => format_event(None, &data),
                StreamMode::Resumable { .. } => format_event(Some((self.stream.number, state.next)), &data),
            };
            state.next += 1;
            state.unsent_bytes -= data.len();
            state.can_resume = true;
            if self.stream.mode == StreamMode::Single {
                state.drop_first();
            }
            return Poll::Ready(Some(chunk));
        }
        if state.ended || std::mem::take(&mut state.disconnecting) {
            return Poll::Ready(None);
        }
        state.waker = Some(context.waker().clone());
        drop(state);
        Pin::new(&mut self.heartbeat).poll_tick(context).map(|_| Some(Bytes::from_static(b":\n\n")))
    }
}

impl Drop for EventReader {
    fn drop(&mut self) {
        self.stream.reader_dropped(self.number);
    }
}

fn format_event(id: Option<(u64, u64)>, data: &Bytes) -> Bytes {
    let mut event = Vec::with_capacity(data.len() + EVENT_OVERHEAD_BYTES);
    if let Some((stream, number)) = id {
        event.extend_from_slice(format!("id: {stream}-{number}\n").as_bytes());
    }
    event.extend_from_slice(b"data: ");
    event.extend_from_slice(data);
    event.extend_from_slice(b"\n\n");
    event.into()
}
