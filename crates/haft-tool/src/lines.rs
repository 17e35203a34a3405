//! Splits a byte stream into lines of bounded length.

use std::io::{self, Read};

use memchr::memchr;

const READ_BUFFER_BYTES: usize = 64 << 10;
/// The capacity that is kept between lines.
const MAX_KEPT_BYTES: usize = 4 * READ_BUFFER_BYTES;

/// Takes bytes as they arrive and returns lines.
#[derive(Debug)]
pub struct LineSplitter {
    max_line_bytes: usize,
    received: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// Up to where no line feed was found.
    searched: usize,
    /// Whether the current line is too long and being discarded up to its end.
    skipping: bool,
    /// Allocated once: zeroing it for every read would cost more than most reads.
    buffer: Vec<u8>,
}

/// One item of a [`LineSplitter`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputLine {
    /// A line that is not blank, without its end.
    Whole(Vec<u8>),
    /// A line that exceeded the limit and was discarded; the following lines are intact.
    TooLong,
}

impl LineSplitter {
    /// Accepts lines of at most `max_line_bytes`.
    pub fn new(max_line_bytes: usize) -> Self {
        let (received, buffer) = (Vec::new(), Vec::new());
        Self { max_line_bytes, received, start: 0, searched: 0, skipping: false, buffer }
    }

    /// The next line, if all of it has arrived.
    pub fn take(&mut self) -> Option<InputLine> {
        loop {
            let Some(at) = memchr(b'\n', self.received.get(self.searched..)?) else {
                self.searched = self.received.len();
                return self.check_unfinished();
            };
            let end = self.searched + at;
            let line = self.received.get(self.start..end)?;
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let was_reported = std::mem::take(&mut self.skipping);
            let item = match line {
                _ if was_reported => None,
                line if line.len() > self.max_line_bytes => Some(InputLine::TooLong),
                line if line.iter().all(u8::is_ascii_whitespace) => None,
                line => Some(InputLine::Whole(line.to_vec())),
            };
            self.start = end + 1;
            self.searched = self.start;
            if self.start == self.received.len() {
                self.received.clear();
                // Does not keep the memory of a long line for the short ones after it.
                self.received.shrink_to(MAX_KEPT_BYTES);
                (self.start, self.searched) = (0, 0);
            }
            if item.is_some() {
                return item;
            }
        }
    }

    /// Discards an unfinished line that is too long already; reports it once.
    fn check_unfinished(&mut self) -> Option<InputLine> {
        // A carriage return may be part of the line's end.
        let length = self.received.len() - self.start - usize::from(self.received.ends_with(b"\r"));
        let is_long = length > self.max_line_bytes && self.received.len() > self.start;
        if is_long || self.skipping {
            self.received = Vec::new();
            (self.start, self.searched) = (0, 0);
        }
        let was_reported = self.skipping;
        self.skipping |= is_long;
        (is_long && !was_reported).then_some(InputLine::TooLong)
    }

    /// Adds bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.discard_taken();
        self.received.extend_from_slice(bytes);
    }

    /// Reads once from `from` and adds what it gives; returns the number of bytes.
    pub fn read_from(&mut self, from: &mut impl Read) -> io::Result<usize> {
        self.buffer.resize(READ_BUFFER_BYTES, 0);
        let count = from.read(&mut self.buffer)?;
        self.discard_taken();
        self.received.extend_from_slice(self.buffer.get(..count).unwrap_or_default());
        Ok(count)
    }

    /// At EOF: an unterminated last line.
    pub fn rest(&mut self) -> Option<InputLine> {
        let rest = self.received.split_off(self.start);
        let is_nothing = self.skipping || rest.iter().all(u8::is_ascii_whitespace);
        *self = Self::new(self.max_line_bytes);
        (!is_nothing).then_some(InputLine::Whole(rest))
    }

    fn discard_taken(&mut self) {
        if self.start > 0 {
            self.received.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> InputLine {
        InputLine::Whole(text.as_bytes().to_vec())
    }

    #[test]
    fn lines_are_whole_however_the_bytes_arrive() {
        let mut lines = LineSplitter::new(10);
        for piece in ["a", "b\r", "\n\n  \ncd\nef"] {
            assert_eq!(lines.take(), None);
            lines.push(piece.as_bytes());
        }
        assert_eq!(lines.take(), Some(whole("ab")));
        assert_eq!(lines.take(), Some(whole("cd")));
        assert_eq!(lines.take(), None);
        assert_eq!(lines.rest(), Some(whole("ef")));
        assert_eq!(lines.rest(), None);
    }

    #[test]
    fn overlong_line_is_reported_once_and_takes_no_memory() {
        let mut lines = LineSplitter::new(10);
        lines.push(&[b'x'; 11]);
        assert_eq!(lines.take(), Some(InputLine::TooLong));
        for _ in 0..1000 {
            lines.push(&[b'x'; 1000]);
            assert_eq!(lines.take(), None);
            assert!(lines.received.capacity() < 100_000);
        }
        lines.push(b"\nab\n");
        assert_eq!(lines.take(), Some(whole("ab")));
        let mut long = LineSplitter::new(10 << 20);
        long.push(&vec![b'x'; 9 << 20]);
        long.push(b"\n");
        assert!(long.take().is_some() && long.received.capacity() <= MAX_KEPT_BYTES);
        lines.push(&[b'x'; 11]);
        assert_eq!(lines.take(), Some(InputLine::TooLong));
        lines.push(b"and more");
        assert_eq!(lines.rest(), None);
        lines.push(b"0123456789a\nok\n");
        assert_eq!(lines.take(), Some(InputLine::TooLong));
        assert_eq!(lines.take(), Some(whole("ok")));
        assert_eq!(lines.take(), None);
    }
}
