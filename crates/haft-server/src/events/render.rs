//! Renders entries of the ledger's feed as events.

use std::collections::HashMap;

use bytes::Bytes;
use haft_ledger::{EventLog as _, FeedEntry, FeedItem, Ledger, ReceiptQuery};
use haft_tool::{ErrorKind, ToolError, Value, json};
use serde::Serialize;

use crate::api;

/// Bytes of events rendered at a time; the next ones are rendered after these were sent.
const MAX_RENDERED_BYTES: usize = 64 << 10;

/// An event with its position in the feed.
#[derive(Debug, Clone)]
pub(super) struct EventFrame {
    pub(super) position: u64,
    pub(super) bytes: Bytes,
}

/// An event without a position.
pub(super) fn transient(name: &str, data: &impl Serialize) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {}\n\n", to_line(data)))
}

fn with_id(position: u64, name: &str, data: &impl Serialize) -> EventFrame {
    let bytes = Bytes::from(format!("id: {position}\nevent: {name}\ndata: {}\n\n", to_line(data)));
    EventFrame { position, bytes }
}

/// Compact JSON has no line breaks, which would end the event's data.
fn to_line(data: &impl Serialize) -> String {
    serde_json::to_string(data).unwrap_or_default()
}

/// Renders entries up to a size limit: their events, and the position that these reach. Of several entries about one thing only the
/// last is rendered, because each event has the thing's current state.
pub(super) fn frames(
    ledger: &Ledger,
    entries: &[FeedEntry],
    after: u64,
) -> Result<(Vec<EventFrame>, u64), ToolError> {
    let mut last: HashMap<(&str, &FeedItem), u64> = HashMap::new();
    for entry in entries {
        last.insert((&entry.session, &entry.item), entry.position);
    }
    let driven: Vec<String> = ledger.driven_runs()?.into_iter().map(|run| run.session).collect();
    let (mut frames, mut bytes) = (Vec::new(), 0);
    for entry in entries
        .iter()
        .filter(|entry| last.get(&(entry.session.as_str(), &entry.item)) == Some(&entry.position))
    {
        // What was deleted meanwhile or cannot be read has no event. A locked ledger can be read later.
        match frame(ledger, entry, &driven) {
            Ok(frame) => {
                bytes += frame.as_ref().map_or(0, |frame| frame.bytes.len());
                frames.extend(frame);
                if bytes > MAX_RENDERED_BYTES {
                    return Ok((frames, entry.position));
                }
            }
            Err(error) if error.kind == ErrorKind::Timeout => return Err(error),
            Err(error) => tracing::debug!(%error, position = entry.position, "an event is left out"),
        }
    }
    Ok((frames, entries.last().map_or(after, |last| last.position)))
}

fn frame(ledger: &Ledger, entry: &FeedEntry, driven: &[String]) -> Result<Option<EventFrame>, ToolError> {
    let FeedEntry { position, session, item } = entry;
    Ok(match item {
        FeedItem::Session => {
            let session = api::of_session(ledger, &ledger.session_with_id(session)?, driven)?;
            Some(with_id(*position, "session", &session))
        }
        FeedItem::Call(id) => {
            let query =
                ReceiptQuery { before: Some(id.saturating_add(1)), limit: 1, ..ReceiptQuery::default() };
            let newest = ledger.summaries(&query)?.pop().filter(|found| found.receipt.id == *id);
            newest.map(|found| with_id(*position, "call", &api::of_summary(&found)))
        }
        FeedItem::Event(seq) => {
            let event = ledger.read(session, *seq, 1)?.pop().filter(|event| event.seq == *seq);
            let message = event.as_ref().and_then(api::listed_message);
            message.map(|message| {
                let data: Value = json!({ "session": session, "message": message });
                with_id(*position, "message", &data)
            })
        }
        FeedItem::Driver => {
            let data = json!({ "session": session, "is_driven": driven.contains(session) });
            Some(with_id(*position, "driver", &data))
        }
        FeedItem::Question(id) => {
            Some(with_id(*position, "question", &api::listed_question(ledger, &ledger.question(*id)?)))
        }
        _ => None,
    })
}
