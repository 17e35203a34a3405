//! Server-sent events, parsed from bytes as they arrive.
//!
//! [`SseParser`] takes bytes in pieces of any size and returns whole events. It accepts every kind of line end, skips comments
//! and a byte order mark, and bounds the size of an event.

use memchr::{memchr, memchr2};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Longer event ids are ignored.
const MAX_ID_BYTES: usize = 1024;

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The type; `message` by default.
    pub kind: String,
    /// The lines of data, joined by line feeds.
    pub data: String,
}

/// An event exceeds the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTooLarge;

/// Takes bytes and returns events.
#[derive(Debug)]
pub struct SseParser {
    max_event_bytes: usize,
    received: Vec<u8>,
    /// Up to where no end of a line was found.
    searched: usize,
    kind: String,
    data: Vec<u8>,
    has_data: bool,
    /// Whether the last line ended with a carriage return, whose line feed may still come.
    after_return: bool,
    /// Whether the check for a byte order mark is done.
    has_begun: bool,
    /// The last event id.
    pub last_id: Option<String>,
    /// How long the server wants its client to wait before it reconnects.
    pub retry_ms: Option<u64>,
}

impl SseParser {
    /// Accepts events of at most `max_event_bytes`.
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            max_event_bytes,
            received: Vec::new(),
            searched: 0,
            kind: String::new(),
            data: Vec::new(),
            has_data: false,
            after_return: false,
            has_begun: false,
            last_id: None,
            retry_ms: None,
        }
    }

    /// Begins a new stream; keeps the last id and the retry time.
    pub fn reconnect(&mut self) {
        let (last_id, retry_ms) = (self.last_id.take(), self.retry_ms);
        *self = Self { last_id, retry_ms, ..Self::new(self.max_event_bytes) };
    }

    /// Adds bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
    }

    /// The next event, if all of it has arrived.
    pub fn take(&mut self) -> Result<Option<SseEvent>, EventTooLarge> {
        if !self.has_begun {
            if self.received.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(&self.received) {
                return Ok(None);
            }
            self.has_begun = true;
            if self.received.starts_with(BYTE_ORDER_MARK) {
                self.received.drain(..BYTE_ORDER_MARK.len());
            }
        }
        let mut start = 0;
        let mut event = None;
        while event.is_none() {
            if self.after_return
                && let Some(next) = self.received.get(start)
            {
                self.after_return = false;
                if *next == b'\n' {
                    start += 1;
                }
            }
            let from = start.max(self.searched);
            let Some(at) = self.received.get(from..).and_then(|rest| memchr2(b'\n', b'\r', rest)) else {
                self.searched = self.received.len();
                break;
            };
            let end = from + at;
            self.after_return = self.received.get(end) == Some(&b'\r');
            let line = self.received.get(start..end).unwrap_or_default().to_vec();
            start = end + 1;
            event = self.line(&line)?;
        }
        self.received.drain(..start);
        self.searched = self.searched.saturating_sub(start);
        if self.received.len() > self.max_event_bytes { Err(EventTooLarge) } else { Ok(event) }
    }

    fn line(&mut self, line: &[u8]) -> Result<Option<SseEvent>, EventTooLarge> {
        if line.is_empty() {
            let kind = std::mem::take(&mut self.kind);
            let data = std::mem::take(&mut self.data);
            if !std::mem::take(&mut self.has_data) {
                return Ok(None);
            }
            let kind = if kind.is_empty() { "message".to_owned() } else { kind };
            return Ok(Some(SseEvent { kind, data: String::from_utf8_lossy(&data).into_owned() }));
        }
        let (name, value) = match memchr(b':', line) {
            Some(at) => (line.get(..at).unwrap_or_default(), line.get(at + 1..).unwrap_or_default()),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let text = || String::from_utf8_lossy(value).into_owned();
        match name {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
                if self.data.len() > self.max_event_bytes {
                    return Err(EventTooLarge);
                }
            }
            b"event" => self.kind = text(),
            b"id" if value.len() <= MAX_ID_BYTES && is_visible(value) => self.last_id = Some(text()),
            b"retry" => self.retry_ms = text().parse().ok().or(self.retry_ms),
            _ => {}
        }
        Ok(None)
    }
}

/// Whether a header can contain this value.
fn is_visible(value: &[u8]) -> bool {
    !value.is_empty() && value.iter().all(|byte| matches!(byte, b' '..=b'~'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(events: &mut SseParser) -> Vec<(String, String)> {
        std::iter::from_fn(|| events.take().unwrap()).map(|event| (event.kind, event.data)).collect()
    }

    fn pair(kind: &str, data: &str) -> (String, String) {
        (kind.to_owned(), data.to_owned())
    }

    const STREAM: &str = "\u{feff}: hello\nid: 7\nretry: 500\ndata\n\nevent: endpoint\r\ndata: /a?b\r\n\r\ndata: {\"a\":\rdata:1}\r\rdata: tail";

    #[test]
    fn events_are_parsed_with_every_kind_of_line_end() {
        let mut events = SseParser::new(1000);
        events.push(STREAM.as_bytes());
        assert_eq!(
            all(&mut events),
            [pair("message", ""), pair("endpoint", "/a?b"), pair("message", "{\"a\":\n1}")]
        );
        assert_eq!((events.last_id.as_deref(), events.retry_ms), (Some("7"), Some(500)));
        events.reconnect();
        events.push(b"data: new\n\n");
        assert_eq!(all(&mut events), [pair("message", "new")], "the incomplete event is dropped");
        assert_eq!((events.last_id.as_deref(), events.retry_ms), (Some("7"), Some(500)));
    }

    #[test]
    fn endless_event_exceeds_the_limit() {
        let mut events = SseParser::new(100);
        events.push(&[b'x'; 101]);
        assert_eq!(events.take(), Err(EventTooLarge));
        let mut events = SseParser::new(100);
        for _ in 0..10 {
            events.push(b"data: 0123456789\n");
            if events.take() == Err(EventTooLarge) {
                return;
            }
        }
        assert_eq!(events.take(), Err(EventTooLarge));
    }

    #[test]
    fn id_that_no_header_can_contain_is_ignored() {
        let mut events = SseParser::new(100);
        events.push("id: a\u{1}b\nid: ä\ndata: x\n\n".as_bytes());
        assert_eq!(all(&mut events).len(), 1);
        assert_eq!(events.last_id, None);
    }

    proptest! {
        #[test]
        fn events_do_not_depend_on_how_bytes_arrive(cuts in proptest::collection::vec(0..STREAM.len(), 0..20)) {
            let mut whole = SseParser::new(1000);
            whole.push(STREAM.as_bytes());
            let expected = all(&mut whole);
            let mut cuts = cuts;
            cuts.sort_unstable();
            let (mut pieces, mut from, mut found) = (SseParser::new(1000), 0, Vec::new());
            for cut in cuts.into_iter().chain([STREAM.len()]) {
                pieces.push(&STREAM.as_bytes()[from..cut]);
                found.extend(all(&mut pieces));
                from = cut;
            }
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn any_bytes_are_accepted(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut events = SseParser::new(50);
            events.push(&bytes);
            for _ in 0..400 {
                if !matches!(events.take(), Ok(Some(_))) {
                    break;
                }
            }
        }
    }
}
