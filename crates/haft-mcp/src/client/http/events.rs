//! Server-sent events out of bytes as they come.

use memchr::{memchr, memchr2};

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Event {
    /// Its kind; `message` if it does not say.
    pub(super) kind: String,
    pub(super) data: String,
}

/// An event, or what else matters, is longer than the limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// Takes bytes and gives events.
pub(super) struct Events {
    most: usize,
    held: Vec<u8>,
    /// Up to where there is no end of a line.
    searched: usize,
    kind: String,
    data: Vec<u8>,
    any_data: bool,
    /// Whether the last byte taken was a carriage return, whose line feed may still come.
    after_return: bool,
    begun: bool,
    /// The last id that an event had, to go on behind it.
    pub(super) last_id: Option<String>,
    /// How many milliseconds the server wants its client to wait before it comes again.
    pub(super) retry: Option<u64>,
}

impl Events {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            held: Vec::new(),
            searched: 0,
            kind: String::new(),
            data: Vec::new(),
            any_data: false,
            after_return: false,
            begun: false,
            last_id: None,
            retry: None,
        }
    }

    /// A new stream begins, behind the last event of this one.
    pub(super) fn reconnected(&mut self) {
        let (last_id, retry) = (self.last_id.take(), self.retry);
        *self = Self { last_id, retry, ..Self::new(self.most) };
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    /// The next event, if all of it is here.
    pub(super) fn take(&mut self) -> Result<Option<Event>, TooLong> {
        if !self.begun {
            if self.held.len() < 3 && b"\xef\xbb\xbf".starts_with(&self.held) {
                return Ok(None);
            }
            self.begun = true;
            if self.held.starts_with(b"\xef\xbb\xbf") {
                self.held.drain(..3);
            }
        }
        let mut start = 0;
        let mut event = None;
        while event.is_none() {
            if self.after_return
                && let Some(next) = self.held.get(start)
            {
                self.after_return = false;
                if *next == b'\n' {
                    start += 1;
                }
            }
            let from = start.max(self.searched);
            let Some(at) = self.held.get(from..).and_then(|rest| memchr2(b'\n', b'\r', rest)) else {
                self.searched = self.held.len();
                break;
            };
            let end = from + at;
            self.after_return = self.held.get(end) == Some(&b'\r');
            let line = self.held.get(start..end).unwrap_or_default().to_vec();
            start = end + 1;
            event = self.line(&line)?;
        }
        self.held.drain(..start);
        self.searched = self.searched.saturating_sub(start);
        if self.held.len() > self.most { Err(TooLong) } else { Ok(event) }
    }

    fn line(&mut self, line: &[u8]) -> Result<Option<Event>, TooLong> {
        if line.is_empty() {
            let kind = std::mem::take(&mut self.kind);
            let data = std::mem::take(&mut self.data);
            if !std::mem::take(&mut self.any_data) {
                return Ok(None);
            }
            let kind = if kind.is_empty() { "message".to_owned() } else { kind };
            return Ok(Some(Event { kind, data: String::from_utf8_lossy(&data).into_owned() }));
        }
        let (name, value) = match memchr(b':', line) {
            Some(at) => (line.get(..at).unwrap_or_default(), line.get(at + 1..).unwrap_or_default()),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let text = || String::from_utf8_lossy(value).into_owned();
        match name {
            b"data" => {
                if std::mem::replace(&mut self.any_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
                if self.data.len() > self.most {
                    return Err(TooLong);
                }
            }
            b"event" => self.kind = text(),
            b"id" if value.len() <= 1024 && is_visible(value) => self.last_id = Some(text()),
            b"retry" => self.retry = text().parse().ok().or(self.retry),
            _ => {}
        }
        Ok(None)
    }
}

/// Whether it can be sent back in a header.
fn is_visible(value: &[u8]) -> bool {
    !value.is_empty() && value.iter().all(|byte| matches!(byte, b' '..=b'~'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(events: &mut Events) -> Vec<(String, String)> {
        std::iter::from_fn(|| events.take().unwrap()).map(|event| (event.kind, event.data)).collect()
    }

    fn pair(kind: &str, data: &str) -> (String, String) {
        (kind.to_owned(), data.to_owned())
    }

    const STREAM: &str = "\u{feff}: hello\nid: 7\nretry: 500\ndata\n\nevent: endpoint\r\ndata: /a?b\r\n\r\ndata: {\"a\":\rdata:1}\r\rdata: tail";

    #[test]
    fn events_come_whole_with_every_kind_of_line_end() {
        let mut events = Events::new(1000);
        events.push(STREAM.as_bytes());
        assert_eq!(
            all(&mut events),
            [pair("message", ""), pair("endpoint", "/a?b"), pair("message", "{\"a\":\n1}")]
        );
        assert_eq!((events.last_id.as_deref(), events.retry), (Some("7"), Some(500)));
        events.reconnected();
        events.push(b"data: new\n\n");
        assert_eq!(all(&mut events), [pair("message", "new")], "what was cut off is forgotten");
        assert_eq!((events.last_id.as_deref(), events.retry), (Some("7"), Some(500)));
    }

    #[test]
    fn an_event_without_an_end_is_not_kept_for_ever() {
        let mut events = Events::new(100);
        events.push(&[b'x'; 101]);
        assert_eq!(events.take(), Err(TooLong));
        let mut events = Events::new(100);
        for _ in 0..10 {
            events.push(b"data: 0123456789\n");
            if events.take() == Err(TooLong) {
                return;
            }
        }
        assert_eq!(events.take(), Err(TooLong));
    }

    #[test]
    fn an_id_that_no_header_can_hold_is_none() {
        let mut events = Events::new(100);
        events.push("id: a\u{1}b\nid: ä\ndata: x\n\n".as_bytes());
        assert_eq!(all(&mut events).len(), 1);
        assert_eq!(events.last_id, None);
    }

    proptest! {
        #[test]
        fn how_the_bytes_arrive_makes_no_difference(cuts in proptest::collection::vec(0..STREAM.len(), 0..20)) {
            let mut whole = Events::new(1000);
            whole.push(STREAM.as_bytes());
            let expected = all(&mut whole);
            let mut cuts = cuts;
            cuts.sort_unstable();
            let (mut pieces, mut from, mut found) = (Events::new(1000), 0, Vec::new());
            for cut in cuts.into_iter().chain([STREAM.len()]) {
                pieces.push(&STREAM.as_bytes()[from..cut]);
                found.extend(all(&mut pieces));
                from = cut;
            }
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn no_bytes_break_it(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut events = Events::new(50);
            events.push(&bytes);
            for _ in 0..400 {
                if !matches!(events.take(), Ok(Some(_))) {
                    break;
                }
            }
        }
    }
}
