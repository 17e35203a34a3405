//! The stream on which a legacy server sends messages that belong to no request.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use haft_tool::sse::SseParser;

use super::super::deadline::Deadline;
use super::super::{ClientError, McpError};
use super::StreamableShared;
use super::endpoint_client::next_chunk;
use crate::wire::RpcInput;

/// How long the first stream is waited for: messages before it are lost.
const START_TIMEOUT: Duration = Duration::from_secs(1);
/// How long one attempt may take to open the stream.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
/// The shortest and the longest pause between two attempts.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(500);
const MAX_RETRY_DELAY: Duration = Duration::from_mins(1);
/// Failed attempts in a row, after which listening ends.
const MAX_FAILURES: u32 = 8;

/// Starts to listen; returns when the stream is open, or after a short time.
pub(super) fn start(shared: &Arc<StreamableShared>) {
    let (opened, is_open) = channel();
    let shared = Arc::clone(shared);
    let listen = move || listen(&shared, opened);
    if std::thread::Builder::new().name("mcp-listener".to_owned()).spawn(listen).is_ok() {
        // Ends when the sender is dropped.
        let _ = is_open.recv_timeout(START_TIMEOUT);
    }
}

fn listen(shared: &Arc<StreamableShared>, opened: Sender<()>) {
    let mut opened = Some(opened);
    let mut events = SseParser::new(shared.client.limits.max_message_bytes);
    let mut failures = 0;
    while failures < MAX_FAILURES && !shared.closed.is_cancelled() {
        let outcome = read_stream(shared, &mut events, &mut opened);
        drop(opened.take());
        match outcome.map_err(|error| error.kind) {
            Ok(()) => failures = 0,
            // The server does not offer this, or the connection is closed.
            Err(McpError::HttpStatus(_) | McpError::Cancelled | McpError::Unauthorized) => return,
            Err(_) => failures += 1,
        }
        let delay = events.retry_ms.map_or(MIN_RETRY_DELAY * (1 << failures), Duration::from_millis);
        if shared.closed.wait(delay.clamp(MIN_RETRY_DELAY, MAX_RETRY_DELAY)) {
            return;
        }
        events.reconnect();
    }
}

/// Reads one stream to its end. A stream without any event is a failure.
fn read_stream(
    shared: &Arc<StreamableShared>,
    events: &mut SseParser,
    opened: &mut Option<Sender<()>>,
) -> Result<(), ClientError> {
    let what = "the stream of notifications";
    let last_id = events.last_id.clone().unwrap_or_default();
    let mut stream = shared.resume(&last_id, what, &Deadline::after(OPEN_TIMEOUT, &shared.closed))?;
    drop(opened.take());
    let deadline = Deadline::unlimited(&shared.closed);
    let mut has_events = false;
    loop {
        while let Some(event) = events.take().map_err(|_| shared.client.event_too_large())? {
            has_events = true;
            if event.kind == "message"
                && let Ok(input) = RpcInput::read(event.data.as_bytes())
            {
                input.into_messages().for_each(|message| shared.inbound.receive(message));
            }
        }
        match next_chunk(&mut stream, what, &deadline)? {
            Some(chunk) => events.push(&chunk),
            None if has_events => return Ok(()),
            None => return Err(ClientError::disconnected("the stream of notifications ended")),
        }
    }
}
