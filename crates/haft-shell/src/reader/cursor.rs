//! The position in the source, and why reading stops.

use crate::script::UnclearReason;

/// Reading cannot go on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stop {
    pub(super) reason: UnclearReason,
    pub(super) at: usize,
}

/// A position in the source that counts its steps. Line continuations (a backslash before a newline) are skipped, except by
/// the functions whose name ends with `raw`.
pub(super) struct SourceCursor<'a> {
    text: &'a str,
    position: usize,
    steps_left: usize,
}

impl<'a> SourceCursor<'a> {
    pub(super) fn new(text: &'a str, max_steps: usize) -> Self {
        Self { text, position: 0, steps_left: max_steps }
    }

    pub(super) fn position(&self) -> usize {
        self.position
    }

    pub(super) fn return_to(&mut self, position: usize) {
        self.position = position;
    }

    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    /// The text from `from` to here.
    pub(super) fn since(&self, from: usize) -> &'a str {
        self.text.get(from..self.position).unwrap_or_default()
    }

    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    fn after_continuations(&self, mut position: usize) -> usize {
        while self.bytes().get(position..).is_some_and(|rest| rest.starts_with(b"\\\n")) {
            position += 2;
        }
        position
    }

    pub(super) fn is_at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    pub(super) fn peek(&mut self) -> Option<u8> {
        self.position = self.after_continuations(self.position);
        self.peek_raw()
    }

    pub(super) fn peek_raw(&self) -> Option<u8> {
        self.bytes().get(self.position).copied()
    }

    /// The byte after the next one.
    pub(super) fn peek_second(&mut self) -> Option<u8> {
        self.peek();
        self.bytes().get(self.after_continuations(self.position + 1)).copied()
    }

    /// Whether the next bytes are these.
    pub(super) fn is_ahead(&mut self, expected: &[u8]) -> bool {
        let mut position = self.position;
        for byte in expected {
            position = self.after_continuations(position);
            if self.bytes().get(position) != Some(byte) {
                return false;
            }
            position += 1;
        }
        true
    }

    /// The next bytes up to one that `ends` the run, if there are at most `max`.
    pub(super) fn run_ahead(&mut self, max: usize, ends: impl Fn(u8) -> bool) -> Option<Vec<u8>> {
        let mut run = Vec::new();
        let mut position = self.position;
        loop {
            position = self.after_continuations(position);
            match self.bytes().get(position) {
                Some(byte) if !ends(*byte) => run.push(*byte),
                _ => return Some(run),
            }
            if run.len() > max {
                return None;
            }
            position += 1;
        }
    }

    /// Consumes one byte.
    pub(super) fn bump(&mut self) -> Result<(), Stop> {
        self.peek();
        self.bump_raw()
    }

    pub(super) fn bump_raw(&mut self) -> Result<(), Stop> {
        self.spend(1)?;
        self.position = (self.position + 1).min(self.text.len());
        Ok(())
    }

    /// Consumes these bytes if they are next.
    pub(super) fn eat(&mut self, expected: &[u8]) -> Result<bool, Stop> {
        let is_next = self.is_ahead(expected);
        if is_next {
            for _ in expected {
                self.bump()?;
            }
        }
        Ok(is_next)
    }

    pub(super) fn spend(&mut self, steps: usize) -> Result<(), Stop> {
        match self.steps_left.checked_sub(steps) {
            Some(left) => {
                self.steps_left = left;
                Ok(())
            }
            None => Err(self.stop(UnclearReason::TooMuchWork)),
        }
    }

    pub(super) fn stop(&self, reason: UnclearReason) -> Stop {
        Stop { reason, at: self.position.min(self.text.len()) }
    }

    pub(super) fn syntax(&self) -> Stop {
        self.stop(UnclearReason::Syntax)
    }

    /// At the end of the text: something begun at `from` does not end.
    pub(super) fn unterminated(from: usize) -> Stop {
        Stop { reason: UnclearReason::Unterminated, at: from }
    }
}

/// Whether a byte ends an unquoted word.
pub(super) fn is_metacharacter(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')')
}

pub(super) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether text is a variable's name.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.starts_with(|c: char| c.is_ascii_digit()) && text.bytes().all(is_name_byte)
}
