//! Messages as lines: one each, none longer than the limit.

use std::io::{self, Read};

use memchr::memchr;

/// How much is read at once.
const STEP: usize = 64 << 10;

/// Takes bytes as they come and gives lines.
#[derive(Debug)]
pub struct Lines {
    most: usize,
    held: Vec<u8>,
    /// Where the first byte is that nobody has had yet.
    start: usize,
    /// Up to where there is no end of a line.
    searched: usize,
    /// Whether the line under way is too long, and is being thrown away to its end.
    skipping: bool,
    /// Where reads go first; made once, because clearing it would cost more than most reads.
    buffer: Vec<u8>,
}

/// What a stream of lines gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A line without its end, and not empty.
    Whole(Vec<u8>),
    /// A line was longer than the limit; what follows it is fine.
    TooLong,
}

impl Lines {
    /// Lines of at most `most` bytes.
    pub fn new(most: usize) -> Self {
        Self { most, held: Vec::new(), start: 0, searched: 0, skipping: false, buffer: Vec::new() }
    }

    /// The next line, if all of it is here already.
    pub fn take(&mut self) -> Option<Line> {
        loop {
            let Some(at) = memchr(b'\n', self.held.get(self.searched..)?) else {
                self.searched = self.held.len();
                return self.unfinished();
            };
            let end = self.searched + at;
            let line = self.held.get(self.start..end)?;
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let told = std::mem::take(&mut self.skipping);
            let given = match line {
                _ if told => None,
                line if line.len() > self.most => Some(Line::TooLong),
                line if line.iter().all(u8::is_ascii_whitespace) => None,
                line => Some(Line::Whole(line.to_vec())),
            };
            self.start = end + 1;
            self.searched = self.start;
            if self.start == self.held.len() {
                self.held.clear();
                (self.start, self.searched) = (0, 0);
            }
            if given.is_some() {
                return given;
            }
        }
    }

    /// What a line without an end so far amounts to: nothing, or too much.
    fn unfinished(&mut self) -> Option<Line> {
        // A carriage return may turn out to belong to the end.
        let length = self.held.len() - self.start - usize::from(self.held.ends_with(b"\r"));
        let long = length > self.most && self.held.len() > self.start;
        if long || self.skipping {
            self.held = Vec::new();
            (self.start, self.searched) = (0, 0);
        }
        let told = self.skipping;
        self.skipping |= long;
        (long && !told).then_some(Line::TooLong)
    }

    /// How many bytes are here that nobody has had yet.
    pub fn waiting(&self) -> usize {
        self.held.len() - self.start
    }

    /// Takes bytes that have come.
    pub fn push(&mut self, bytes: &[u8]) {
        self.make_room();
        self.held.extend_from_slice(bytes);
    }

    /// Takes whatever `from` has now, waiting for the first byte; how much that was.
    pub fn read_from(&mut self, from: &mut impl Read) -> io::Result<usize> {
        self.buffer.resize(STEP, 0);
        let read = from.read(&mut self.buffer)?;
        self.make_room();
        self.held.extend_from_slice(self.buffer.get(..read).unwrap_or_default());
        Ok(read)
    }

    /// What is left when the stream has ended: a last line without an end.
    pub fn rest(&mut self) -> Option<Line> {
        let rest = self.held.split_off(self.start);
        // Of a line that was too long this is only the end, and that was told already.
        let nothing = self.skipping || rest.iter().all(u8::is_ascii_whitespace);
        *self = Self::new(self.most);
        (!nothing).then_some(Line::Whole(rest))
    }

    fn make_room(&mut self) {
        if self.start > 0 {
            self.held.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Line {
        Line::Whole(text.as_bytes().to_vec())
    }

    #[test]
    fn lines_come_whole_however_they_arrive() {
        let mut lines = Lines::new(10);
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
    fn a_line_that_is_too_long_is_told_once_and_takes_no_memory() {
        let mut lines = Lines::new(10);
        lines.push(&[b'x'; 11]);
        assert_eq!(lines.take(), Some(Line::TooLong));
        for _ in 0..1000 {
            lines.push(&[b'x'; 1000]);
            assert_eq!(lines.take(), None);
            assert!(lines.held.capacity() < 100_000);
        }
        lines.push(b"\nab\n");
        assert_eq!(lines.take(), Some(whole("ab")));
        lines.push(&[b'x'; 11]);
        assert_eq!(lines.take(), Some(Line::TooLong));
        lines.push(b"and more");
        assert_eq!(lines.rest(), None);
        lines.push(b"0123456789a\nok\n");
        assert_eq!(lines.take(), Some(Line::TooLong));
        assert_eq!(lines.take(), Some(whole("ok")));
        assert_eq!(lines.take(), None);
    }
}
