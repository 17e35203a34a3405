//! From bytes to values, for files and for content streams alike.

use std::rc::Rc;

use crate::object::{Dict, Object};

/// How deep arrays and dictionaries may lie in each other.
const MOST_DEPTH: u32 = 48;
/// How many values one top-level value may hold.
const MOST_NODES: u32 = 400_000;
const MOST_NAME: usize = 512;

/// What comes next.
#[derive(Debug)]
pub(crate) enum Token<'a> {
    Value(Object),
    /// A word or sign that is no value: `obj`, `Tj`, `]`, `>>`.
    Word(&'a [u8]),
    End,
}

pub(crate) struct Lexer<'a> {
    bytes: &'a [u8],
    pub(crate) at: usize,
    nodes: u32,
    /// Whether `1 0 R` is a reference; in a content stream it is not.
    refs: bool,
}

impl<'a> Lexer<'a> {
    pub(crate) fn file(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at: at.min(bytes.len()), nodes: 0, refs: true }
    }

    pub(crate) fn content(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, nodes: 0, refs: false }
    }

    pub(crate) fn next(&mut self) -> Token<'a> {
        self.nodes = MOST_NODES;
        self.token(0)
    }

    /// The next value; `None` if a word or the end comes instead.
    pub(crate) fn value(&mut self) -> Option<Object> {
        match self.next() {
            Token::Value(value) => Some(value),
            _ => None,
        }
    }

    /// Whether the next word is `word`; it is then passed.
    pub(crate) fn word(&mut self, word: &[u8]) -> bool {
        let at = self.at;
        self.nodes = MOST_NODES;
        if matches!(self.token(MOST_DEPTH), Token::Word(found) if found == word) {
            return true;
        }
        self.at = at;
        false
    }

    /// The next value if it is a whole number.
    pub(crate) fn whole(&mut self) -> Option<usize> {
        self.space();
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        let digits = &self.bytes[start..self.at];
        if digits.is_empty() || digits.len() > 15 {
            self.at = start;
            return None;
        }
        Some(digits.iter().fold(0, |number, digit| number * 10 + usize::from(digit - b'0')))
    }

    /// Where the bytes of a stream start, if one follows.
    pub(crate) fn stream_start(&mut self) -> Option<usize> {
        if !self.word(b"stream") {
            return None;
        }
        let rest = &self.bytes[self.at..];
        let skip = match rest {
            [b'\r', b'\n', ..] => 2,
            [b'\n' | b'\r', ..] => 1,
            _ => 0,
        };
        Some(self.at + skip)
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(byte) = self.peek() {
            if is_space(byte) {
                self.at += 1;
            } else if byte == b'%' {
                let rest = &self.bytes[self.at..];
                self.at += memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
            } else {
                return;
            }
        }
    }

    fn token(&mut self, depth: u32) -> Token<'a> {
        self.space();
        let Some(byte) = self.peek() else { return Token::End };
        let Some(nodes) = self.nodes.checked_sub(1) else {
            self.at = self.bytes.len();
            return Token::End;
        };
        self.nodes = nodes;
        let start = self.at;
        let next = self.bytes.get(start + 1).copied();
        match byte {
            b'/' => Token::Value(Object::Name(self.name())),
            b'(' => Token::Value(Object::Text(self.literal().into())),
            b'<' if next == Some(b'<') && depth < MOST_DEPTH => {
                self.at += 2;
                Token::Value(Object::Dict(Rc::new(self.dict(depth + 1))))
            }
            b'<' if next != Some(b'<') => Token::Value(Object::Text(self.hex().into())),
            b'[' if depth < MOST_DEPTH => {
                self.at += 1;
                Token::Value(self.array(depth + 1))
            }
            b'<' | b'>' if next == Some(byte) => self.sign(2),
            b'0'..=b'9' | b'+' | b'-' | b'.' => self.number(),
            b'[' | b']' | b'>' | b'{' | b'}' | b')' => self.sign(1),
            _ => {
                while self.peek().is_some_and(is_regular) {
                    self.at += 1;
                }
                match &self.bytes[start..self.at] {
                    b"true" => Token::Value(Object::Bool(true)),
                    b"false" => Token::Value(Object::Bool(false)),
                    b"null" => Token::Value(Object::Null),
                    word => Token::Word(word),
                }
            }
        }
    }

    fn sign(&mut self, length: usize) -> Token<'a> {
        let start = self.at;
        self.at += length;
        Token::Word(&self.bytes[start..self.at])
    }

    fn array(&mut self, depth: u32) -> Object {
        let mut items = Vec::new();
        loop {
            let before = self.at;
            match self.token(depth) {
                Token::Value(value) => items.push(value),
                Token::Word(b"]") | Token::End => break,
                Token::Word(word) if ends_object(word) => {
                    self.at = before;
                    break;
                }
                Token::Word(_) => {}
            }
        }
        Object::Array(items.into())
    }

    fn dict(&mut self, depth: u32) -> Dict {
        let mut dict = Dict::default();
        loop {
            let before = self.at;
            let key = match self.token(depth) {
                Token::Value(Object::Name(key)) => key,
                Token::Value(_) => continue,
                Token::Word(b">>") | Token::End => break,
                Token::Word(word) if ends_object(word) => {
                    self.at = before;
                    break;
                }
                Token::Word(_) => continue,
            };
            let before = self.at;
            match self.token(depth) {
                Token::Value(value) => drop(dict.0.insert(key, value)),
                Token::Word(b">>") | Token::End => break,
                Token::Word(word) if ends_object(word) => {
                    self.at = before;
                    break;
                }
                Token::Word(_) => {}
            }
        }
        dict
    }

    fn number(&mut self) -> Token<'a> {
        let start = self.at;
        self.at += 1;
        while self.peek().is_some_and(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-')) {
            self.at += 1;
        }
        let number = number(&self.bytes[start..self.at]);
        if self.refs && self.bytes[start].is_ascii_digit() && number.fract() == 0.0 {
            let after = self.at;
            if self.whole().is_some() && self.peek().is_some_and(is_space) {
                self.space();
                let ends = self.bytes.get(self.at + 1).is_none_or(|byte| !is_regular(*byte));
                if self.peek() == Some(b'R') && ends {
                    self.at += 1;
                    return Token::Value(Object::Ref(number as u32));
                }
            }
            self.at = after;
        }
        Token::Value(Object::Number(number))
    }

    fn name(&mut self) -> Rc<str> {
        self.at += 1;
        let mut name = Vec::new();
        while let Some(byte) = self.peek().filter(|byte| is_regular(*byte)) {
            self.at += 1;
            let pair = (self.bytes.get(self.at), self.bytes.get(self.at + 1));
            let escaped = match (byte, pair) {
                (b'#', (Some(high), Some(low))) => digit(*high).zip(digit(*low)),
                _ => None,
            };
            if name.len() < MOST_NAME {
                name.push(escaped.map_or(byte, |(high, low)| high << 4 | low));
            }
            if escaped.is_some() {
                self.at += 2;
            }
        }
        String::from_utf8_lossy(&name).into()
    }

    fn literal(&mut self) -> Vec<u8> {
        self.at += 1;
        let mut text = Vec::new();
        let mut open = 1_u32;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'(' => open += 1,
                b')' => {
                    open -= 1;
                    if open == 0 {
                        break;
                    }
                }
                b'\\' => {
                    self.escape(&mut text);
                    continue;
                }
                _ => {}
            }
            text.push(byte);
        }
        text
    }

    fn escape(&mut self, text: &mut Vec<u8>) {
        let Some(byte) = self.peek() else { return };
        self.at += 1;
        match byte {
            b'n' => text.push(b'\n'),
            b'r' => text.push(b'\r'),
            b't' => text.push(b'\t'),
            b'b' => text.push(8),
            b'f' => text.push(12),
            b'\r' if self.peek() == Some(b'\n') => self.at += 1,
            b'\r' | b'\n' => {}
            b'0'..=b'7' => {
                let mut code = u32::from(byte - b'0');
                for _ in 0..2 {
                    let Some(digit @ b'0'..=b'7') = self.peek() else { break };
                    code = code * 8 + u32::from(digit - b'0');
                    self.at += 1;
                }
                text.push((code & 0xff) as u8);
            }
            other => text.push(other),
        }
    }

    fn hex(&mut self) -> Vec<u8> {
        self.at += 1;
        let end = memchr::memchr(b'>', &self.bytes[self.at..]).map_or(self.bytes.len(), |end| self.at + end);
        let text = unhex(&self.bytes[self.at..end]);
        self.at = (end + 1).min(self.bytes.len());
        text
    }
}

/// Bytes of hexadecimal digits; everything else is passed over, and a last single digit counts as `x0`.
pub(crate) fn unhex(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let mut digits = text.iter().filter_map(|byte| digit(*byte));
    while let Some(high) = digits.next() {
        bytes.push(high << 4 | digits.next().unwrap_or(0));
    }
    bytes
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

/// A number as PDF writes it; what is malformed counts as far as it goes.
fn number(text: &[u8]) -> f64 {
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

/// Words at which an unfinished array or dictionary ends.
fn ends_object(word: &[u8]) -> bool {
    matches!(word, b"endobj" | b"obj" | b"stream" | b"endstream" | b"xref" | b"trailer" | b"startxref")
}

pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, 0 | 9 | 10 | 12 | 13 | 32)
}

fn is_regular(byte: u8) -> bool {
    !is_space(byte) && !matches!(byte, b'(' | b')' | b'<' | b'>' | b'[' | b']' | b'{' | b'}' | b'/' | b'%')
}
