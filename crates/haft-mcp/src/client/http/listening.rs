//! The stream on which a server of the old era says what belongs to no request.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use super::super::patience::Patience;
use super::super::{ClientError, McpError};
use super::Inner;
use super::door::next;
use super::events::Events;
use crate::wire::{RpcInput, RpcMessage};

/// How long the first stream is waited for: a question that comes before it is there would be lost.
const BEGIN: Duration = Duration::from_secs(1);
/// How long one attempt may take to begin.
const OPEN: Duration = Duration::from_secs(30);
/// The shortest and the longest pause between two attempts.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_mins(1));
/// How many attempts in a row may fail.
const MOST_FAILURES: u32 = 8;

/// Begins to listen; returns when the server listens too, or after a moment.
pub(super) fn start(inner: &Arc<Inner>) {
    let (begun, beginning) = channel();
    let inner = Arc::clone(inner);
    let listen = move || listen(&inner, begun);
    if std::thread::Builder::new().name("mcp-listener".to_owned()).spawn(listen).is_ok() {
        // Whether it came or did not makes no difference to who waits.
        let _ = beginning.recv_timeout(BEGIN);
    }
}

fn listen(inner: &Inner, begun: Sender<()>) {
    let mut begun = Some(begun);
    let mut events = Events::new(inner.door.limits.max_message_bytes);
    let mut failures = 0;
    while failures < MOST_FAILURES && !inner.closed.is_cancelled() {
        let heard = once(inner, &mut events, &mut begun);
        drop(begun.take());
        match heard {
            Ok(()) => failures = 0,
            // It does not offer this, or nobody wants it any more.
            Err(error)
                if matches!(
                    error.kind,
                    McpError::HttpStatus(_) | McpError::Cancelled | McpError::Unauthorized
                ) =>
            {
                return;
            }
            Err(_) => failures += 1,
        }
        let pause = events.retry.map_or(PAUSES.0 * (1 << failures.min(7)), Duration::from_millis);
        if inner.closed.wait(pause.clamp(PAUSES.0, PAUSES.1)) {
            return;
        }
        events.reconnected();
    }
}

/// Listens to one stream, to its end.
fn once(inner: &Inner, events: &mut Events, begun: &mut Option<Sender<()>>) -> Result<(), ClientError> {
    let what = "the stream of news";
    let last = events.last_id.clone().unwrap_or_default();
    let mut stream = inner.again(&last, what, &Patience::of(OPEN, &inner.closed))?;
    drop(begun.take());
    let patience = Patience::without_end(&inner.closed);
    let mut heard_anything = false;
    loop {
        while let Some(event) = events.take().map_err(|_| inner.too_long())? {
            heard_anything = true;
            if event.kind == "message"
                && let Ok(incoming) = RpcInput::read(event.data.as_bytes())
            {
                hear(inner, incoming);
            }
        }
        match next(&mut stream, what, &patience)? {
            Some(chunk) => events.push(&chunk),
            None if heard_anything => return Ok(()),
            // A stream that ends at once, again and again, is a failure.
            None => return Err(ClientError::new(McpError::Disconnected, "the stream of news ended")),
        }
    }
}

fn hear(inner: &Inner, incoming: RpcInput) {
    let all = match incoming {
        RpcInput::Single(message) => vec![Ok(message)],
        RpcInput::Batch(all) => all,
    };
    for message in all.into_iter().flatten() {
        match message {
            RpcMessage::Notification { method, params } => inner.ear.note(&method, &params),
            RpcMessage::Request { id, method, params } => inner.ear.request(id, method, params),
            RpcMessage::Response { .. } => {}
        }
    }
}
