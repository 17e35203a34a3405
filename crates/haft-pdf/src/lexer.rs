//! Tokens and values, for files and for content streams.

use std::rc::Rc;

use crate::object::{Dict, Object, ObjectId};

/// Nesting of arrays and dictionaries.
const MAX_DEPTH: u32 = 48;
/// Values inside one top-level value of a file.
const MAX_NESTED_VALUES: u32 = 400_000;
/// Values inside one operand of a content stream.
const MAX_OPERAND_VALUES: u32 = 50_000;
/// Longer names are cut.
const MAX_NAME_BYTES: usize = 512;
/// Numbers of more digits are not taken for offsets or counts.
const MAX_INTEGER_DIGITS: usize = 15;

#[derive(Debug)]
pub(crate) enum Token<'a> {
    Value(Object),
    /// An operator or delimiter: `obj`, `Tj`, `]`, `>>`.
    Keyword(&'a [u8]),
    End,
}

pub(crate) struct Lexer<'a> {
    bytes: &'a [u8],
    pub(crate) position: usize,
    values_left: u32,
    is_content: bool,
}

impl<'a> Lexer<'a> {
    pub(crate) fn for_file(bytes: &'a [u8], position: usize) -> Self {
        Self { bytes, position: position.min(bytes.len()), values_left: 0, is_content: false }
    }

    pub(crate) fn for_content(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0, values_left: 0, is_content: true }
    }

    pub(crate) fn next(&mut self) -> Token<'a> {
        self.values_left = if self.is_content { MAX_OPERAND_VALUES } else { MAX_NESTED_VALUES };
        self.token(0)
    }

    /// Reads the next value; `None` if a keyword or the end comes instead.
    pub(crate) fn value(&mut self) -> Option<Object> {
        match self.next() {
            Token::Value(value) => Some(value),
            _ => None,
        }
    }

    /// Skips white space, and `keyword` if it follows. Returns whether it did.
    pub(crate) fn skip_keyword(&mut self, keyword: &[u8]) -> bool {
        self.skip_space();
        let found = match self.bytes[self.position..].strip_prefix(keyword) {
            Some(rest) => rest.first().is_none_or(|byte| !is_regular(*byte)),
            None => false,
        };
        if found {
            self.position += keyword.len();
        }
        found
    }

    /// Skips white space, and reads an unsigned integer if one follows.
    pub(crate) fn integer(&mut self) -> Option<usize> {
        self.skip_space();
        let rest = &self.bytes[self.position..];
        let digits = rest.iter().take(MAX_INTEGER_DIGITS + 1).take_while(|byte| byte.is_ascii_digit());
        let length = digits.clone().count();
        if length == 0 || length > MAX_INTEGER_DIGITS {
            return None;
        }
        self.position += length;
        Some(digits.fold(0, |number, digit| number * 10 + usize::from(digit - b'0')))
    }

    /// Returns the offset of a stream's bytes if the keyword `stream` comes next.
    pub(crate) fn stream_start(&mut self) -> Option<usize> {
        if !self.skip_keyword(b"stream") {
            return None;
        }
        let line_end = match &self.bytes[self.position..] {
            [b'\r', b'\n', ..] => 2,
            [b'\n' | b'\r', ..] => 1,
            _ => 0,
        };
        Some(self.position + line_end)
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.position).copied()
    }

    /// Skips white space and comments.
    fn skip_space(&mut self) {
        while let Some(byte) = self.peek() {
            if is_space(byte) {
                self.position += 1;
            } else if byte == b'%' {
                let rest = &self.bytes[self.position..];
                self.position += memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
            } else {
                return;
            }
        }
    }

    fn token(&mut self, depth: u32) -> Token<'a> {
        self.skip_space();
        let Some(byte) = self.peek() else { return Token::End };
        let Some(values_left) = self.values_left.checked_sub(1) else {
            self.position = self.bytes.len();
            return Token::End;
        };
        self.values_left = values_left;
        let start = self.position;
        let next = self.bytes.get(start + 1).copied();
        match byte {
            b'/' => Token::Value(Object::Name(self.name())),
            b'(' => Token::Value(Object::String(self.literal_string().into())),
            b'<' if next == Some(b'<') && depth < MAX_DEPTH => {
                self.position += 2;
                Token::Value(Object::Dict(Rc::new(self.dict(depth + 1))))
            }
            b'<' if next != Some(b'<') => Token::Value(Object::String(self.hex_string().into())),
            b'[' if depth < MAX_DEPTH => {
                self.position += 1;
                Token::Value(self.array(depth + 1))
            }
            b'<' | b'>' if next == Some(byte) => self.delimiter(2),
            b'0'..=b'9' | b'+' | b'-' | b'.' => self.number(),
            b'[' | b']' | b'>' | b'{' | b'}' | b')' => self.delimiter(1),
            _ => {
                while self.peek().is_some_and(is_regular) {
                    self.position += 1;
                }
                match &self.bytes[start..self.position] {
                    b"true" => Token::Value(Object::Bool(true)),
                    b"false" => Token::Value(Object::Bool(false)),
                    b"null" => Token::Value(Object::Null),
                    keyword => Token::Keyword(keyword),
                }
            }
        }
    }

    fn delimiter(&mut self, length: usize) -> Token<'a> {
        let start = self.position;
        self.position += length;
        Token::Keyword(&self.bytes[start..self.position])
    }

    fn array(&mut self, depth: u32) -> Object {
        let mut items = Vec::new();
        loop {
            let before = self.position;
            match self.token(depth) {
                Token::Value(value) => items.push(value),
                Token::Keyword(b"]") | Token::End => break,
                Token::Keyword(keyword) if ends_object(keyword) => {
                    self.position = before;
                    break;
                }
                Token::Keyword(_) => {}
            }
        }
        Object::Array(items.into())
    }

    fn dict(&mut self, depth: u32) -> Dict {
        let mut dict = Dict::default();
        let mut key = None;
        loop {
            let before = self.position;
            match (self.token(depth), key.take()) {
                (Token::Value(value), Some(key)) => drop(dict.0.insert(key, value)),
                (Token::Value(Object::Name(name)), None) => key = Some(name),
                (Token::Keyword(b">>") | Token::End, _) => break,
                (Token::Keyword(keyword), _) if ends_object(keyword) => {
                    self.position = before;
                    break;
                }
                _ => {}
            }
        }
        dict
    }

    /// Reads a number or, outside of content streams, a reference such as `12 0 R`.
    fn number(&mut self) -> Token<'a> {
        let start = self.position;
        self.position += 1;
        while self.peek().is_some_and(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-')) {
            self.position += 1;
        }
        let number = parse_number(&self.bytes[start..self.position]);
        if !self.is_content && self.bytes[start].is_ascii_digit() && number.fract() == 0.0 {
            let after = self.position;
            if self.integer().is_some() && self.peek().is_some_and(is_space) {
                self.skip_space();
                let ends = self.bytes.get(self.position + 1).is_none_or(|byte| !is_regular(*byte));
                if self.peek() == Some(b'R') && ends {
                    self.position += 1;
                    return Token::Value(Object::Reference(number as ObjectId));
                }
            }
            self.position = after;
        }
        Token::Value(Object::Number(number))
    }

    fn name(&mut self) -> Rc<str> {
        self.position += 1;
        let mut name = Vec::new();
        while let Some(byte) = self.peek().filter(|byte| is_regular(*byte)) {
            self.position += 1;
            let escaped = match (byte, &self.bytes[self.position..]) {
                (b'#', [high, low, ..]) => hex_digit(*high).zip(hex_digit(*low)),
                _ => None,
            };
            if name.len() < MAX_NAME_BYTES {
                name.push(escaped.map_or(byte, |(high, low)| high << 4 | low));
            }
            if escaped.is_some() {
                self.position += 2;
            }
        }
        String::from_utf8_lossy(&name).into()
    }

    fn literal_string(&mut self) -> Vec<u8> {
        self.position += 1;
        let mut string = Vec::new();
        let mut open_parentheses = 1_u32;
        while let Some(byte) = self.peek() {
            self.position += 1;
            match byte {
                b'(' => open_parentheses += 1,
                b')' => {
                    open_parentheses -= 1;
                    if open_parentheses == 0 {
                        break;
                    }
                }
                b'\\' => {
                    self.escape(&mut string);
                    continue;
                }
                _ => {}
            }
            string.push(byte);
        }
        string
    }

    fn escape(&mut self, string: &mut Vec<u8>) {
        let Some(byte) = self.peek() else { return };
        self.position += 1;
        match byte {
            b'n' => string.push(b'\n'),
            b'r' => string.push(b'\r'),
            b't' => string.push(b'\t'),
            b'b' => string.push(8),
            b'f' => string.push(12),
            // A line end after a backslash continues the string.
            b'\r' if self.peek() == Some(b'\n') => self.position += 1,
            b'\r' | b'\n' => {}
            b'0'..=b'7' => {
                let mut code = u32::from(byte - b'0');
                for _ in 0..2 {
                    let Some(digit @ b'0'..=b'7') = self.peek() else { break };
                    code = code * 8 + u32::from(digit - b'0');
                    self.position += 1;
                }
                string.push((code & 0xff) as u8);
            }
            other => string.push(other),
        }
    }

    fn hex_string(&mut self) -> Vec<u8> {
        let digits = &self.bytes[self.position + 1..];
        let length = memchr::memchr(b'>', digits).unwrap_or(digits.len());
        self.position = (self.position + length + 2).min(self.bytes.len());
        decode_hex(&digits[..length])
    }
}

/// Decodes hexadecimal digits. Other bytes are skipped; a single last digit counts as `x0`.
pub(crate) fn decode_hex(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let mut digits = text.iter().filter_map(|byte| hex_digit(*byte));
    while let Some(high) = digits.next() {
        bytes.push(high << 4 | digits.next().unwrap_or(0));
    }
    bytes
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

/// Parses a number up to the first byte that is malformed.
fn parse_number(text: &[u8]) -> f64 {
    let (mut value, mut place, mut negative) = (0.0_f64, 0.0_f64, false);
    for (index, byte) in text.iter().enumerate() {
        match byte {
            b'-' if index == 0 => negative = true,
            b'+' => {}
            b'.' if place == 0.0 => place = 1.0,
            b'0'..=b'9' if place == 0.0 => value = value * 10.0 + f64::from(byte - b'0'),
            b'0'..=b'9' => {
                place /= 10.0;
                value += f64::from(byte - b'0') * place;
            }
            _ => break,
        }
    }
    if negative { -value } else { value }
}

/// Whether an unfinished array or dictionary ends before this keyword.
fn ends_object(keyword: &[u8]) -> bool {
    matches!(keyword, b"endobj" | b"obj" | b"stream" | b"endstream" | b"xref" | b"trailer" | b"startxref")
}

pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, 0 | 9 | 10 | 12 | 13 | 32)
}

fn is_regular(byte: u8) -> bool {
    !is_space(byte) && !matches!(byte, b'(' | b')' | b'<' | b'>' | b'[' | b']' | b'{' | b'}' | b'/' | b'%')
}
