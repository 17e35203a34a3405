//! The same text as strict JSON: comments and trailing commas are blanked out, so that every byte keeps its place.

use std::ops::Range;

use haft_tool::Value;

/// A text and its strict form.
pub(super) struct Plain {
    /// As long as the text itself.
    bytes: Vec<u8>,
    /// Where the trailing commas were.
    trailing: Vec<usize>,
    /// What it says; nothing if it says nothing.
    pub(super) value: Option<Value>,
}

/// An object: where its braces are, and its members.
pub(super) struct Object {
    pub(super) open: usize,
    pub(super) close: usize,
    pub(super) members: Vec<Member>,
}

/// One member of an object.
pub(super) struct Member {
    pub(super) name: String,
    pub(super) start: usize,
    pub(super) value: Range<usize>,
    /// The comma behind it, a trailing one too.
    pub(super) comma: Option<usize>,
}

impl Plain {
    pub(super) fn of(text: &str) -> Result<Self, String> {
        let (bytes, trailing) = blanked(text)?;
        let value = if bytes.iter().all(u8::is_ascii_whitespace) {
            None
        } else {
            Some(serde_json::from_slice(&bytes).map_err(|error| error.to_string())?)
        };
        Ok(Self { bytes, trailing, value })
    }

    /// Where the one value of the text begins.
    pub(super) fn root(&self) -> Option<usize> {
        self.value.as_ref().map(|_| self.skip_spaces(0))
    }

    pub(super) fn is_object(&self, at: usize) -> bool {
        self.bytes.get(at) == Some(&b'{')
    }

    /// Whether a line ends between the two places.
    pub(super) fn breaks(&self, range: Range<usize>) -> bool {
        self.bytes[range].contains(&b'\n')
    }

    /// The object whose brace is at `open`. The text has been read, so it is known to be well formed.
    pub(super) fn object(&self, open: usize) -> Object {
        let mut members: Vec<Member> = Vec::new();
        let mut at = self.skip_spaces(open + 1);
        while self.bytes.get(at).is_some_and(|byte| *byte == b'"') {
            let start = at;
            let end = self.string_end(start);
            let name = serde_json::from_slice(&self.bytes[start..end]).unwrap_or_default();
            let colon = self.skip_spaces(end);
            let from = self.skip_spaces(colon + 1);
            let value = from..self.value_end(from);
            at = self.skip_spaces(value.end);
            let comma = (self.bytes.get(at) == Some(&b',')).then_some(at);
            if comma.is_some() {
                at = self.skip_spaces(at + 1);
            }
            members.push(Member { name, start, value, comma });
        }
        if let Some(last) = members.last_mut() {
            let mut behind = self.trailing.iter().filter(|comma| (last.value.end..at).contains(*comma));
            last.comma = behind.next().copied();
        }
        Object { open, close: at, members }
    }

    fn skip_spaces(&self, at: usize) -> usize {
        let spaces = self.bytes[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        at + spaces
    }

    fn string_end(&self, start: usize) -> usize {
        string_end(&self.bytes, start).unwrap_or(self.bytes.len())
    }

    fn value_end(&self, start: usize) -> usize {
        match self.bytes.get(start) {
            Some(b'"') => self.string_end(start),
            Some(b'{' | b'[') => {
                let (mut at, mut depth) = (start, 0_usize);
                while let Some(byte) = self.bytes.get(at) {
                    match byte {
                        b'"' => {
                            at = self.string_end(at);
                            continue;
                        }
                        b'{' | b'[' => depth += 1,
                        b'}' | b']' => depth -= 1,
                        _ => {}
                    }
                    at += 1;
                    if depth == 0 {
                        break;
                    }
                }
                at
            }
            _ => {
                let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
                let length = self.bytes[start..].iter().position(ends);
                length.map_or(self.bytes.len(), |length| start + length)
            }
        }
    }
}

/// Behind the closing quote of the string that opens at `start`.
fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

fn blanked(text: &str) -> Result<(Vec<u8>, Vec<usize>), String> {
    let mut bytes = text.as_bytes().to_vec();
    let mut trailing = Vec::new();
    // The last two bytes that mean something, and where the last one is.
    let (mut before, mut last, mut last_at) = (b'{', b'{', 0);
    let mut at = 0;
    if text.starts_with('\u{feff}') {
        at = '\u{feff}'.len_utf8();
        bytes[..at].fill(b' ');
    }
    while at < bytes.len() {
        let byte = bytes[at];
        let end = match (byte, bytes.get(at + 1)) {
            (b'/', Some(b'/')) => {
                let length = bytes[at..].iter().position(|byte| *byte == b'\n');
                Some(length.map_or(bytes.len(), |length| at + length))
            }
            (b'/', Some(b'*')) => {
                let close = text[at + 2..].find("*/").ok_or("a comment in it has no end")?;
                Some(at + 2 + close + 2)
            }
            _ => None,
        };
        if let Some(end) = end {
            for blank in &mut bytes[at..end] {
                *blank = if *blank == b'\n' { b'\n' } else { b' ' };
            }
            at = end;
            continue;
        }
        if byte.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        if matches!(byte, b'}' | b']') && last == b',' && !matches!(before, b'{' | b'[' | b',' | b':') {
            bytes[last_at] = b' ';
            trailing.push(last_at);
        }
        (before, last, last_at) = (last, byte, at);
        at = if byte == b'"' { string_end(&bytes, at).unwrap_or(bytes.len()) } else { at + 1 };
    }
    Ok((bytes, trailing))
}
