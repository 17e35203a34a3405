//! `CMap`s: tables in a file that map the codes of a string to characters or glyph numbers.

use crate::PdfError;
use crate::budget::WorkBudget;
use crate::lexer::{Lexer, Token};
use crate::object::Object;

/// Bytes of a table that are parsed.
const MAX_CMAP_BYTES: usize = 4 << 20;
const MAX_RANGES: usize = 200_000;
const MAX_CODESPACES: usize = 256;
/// Bytes of one code.
const MAX_CODE_BYTES: usize = 4;
/// UTF-16 units that one code maps to.
const MAX_UTF16_UNITS: usize = 16;
/// Ranges before a code that are searched for it, as ranges may overlap.
const MAX_OVERLAPPING_RANGES: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct CMap {
    codespaces: Vec<CodeSpace>,
    /// Sorted by the first code.
    texts: Vec<CodeRange<Vec<u16>>>,
    /// Sorted by the first code.
    cids: Vec<CodeRange<u32>>,
    pub(crate) vertical: bool,
}

/// The codes of one length.
#[derive(Debug)]
struct CodeSpace {
    length: usize,
    first: u32,
    last: u32,
}

#[derive(Debug)]
struct CodeRange<T> {
    first: u32,
    last: u32,
    /// What the first code maps to. The following codes count up from it, in the last unit of a text.
    target: T,
}

impl CMap {
    pub(crate) fn parse(bytes: &[u8], budget: &WorkBudget<'_>) -> Result<Self, PdfError> {
        let mut map = Self::default();
        let mut lexer = Lexer::for_content(&bytes[..bytes.len().min(MAX_CMAP_BYTES)]);
        let mut operands: Vec<Object> = Vec::new();
        loop {
            budget.spend(2)?;
            match lexer.next() {
                Token::Value(value) => {
                    if operands.len() < MAX_RANGES {
                        operands.push(value);
                    }
                }
                Token::Keyword(keyword) => {
                    map.add_section(keyword, &operands);
                    operands.clear();
                }
                Token::End => break,
            }
        }
        map.texts.sort_by_key(|range| range.first);
        map.cids.sort_by_key(|range| range.first);
        Ok(map)
    }

    fn add_section(&mut self, keyword: &[u8], operands: &[Object]) {
        match keyword {
            b"endcodespacerange" => {
                for pair in operands.chunks_exact(2) {
                    if let (Some(first), Some(last)) = (pair[0].string(), pair[1].string())
                        && self.codespaces.len() < MAX_CODESPACES
                    {
                        let length = first.len().clamp(1, MAX_CODE_BYTES);
                        self.codespaces.push(CodeSpace { length, first: code(first), last: code(last) });
                    }
                }
            }
            b"endbfchar" => {
                for pair in operands.chunks_exact(2) {
                    if let (Some(from), Some(text)) = (pair[0].string(), pair[1].string()) {
                        self.add_text(code(from), code(from), text);
                    }
                }
            }
            b"endbfrange" => {
                for triple in operands.chunks_exact(3) {
                    let (Some(first), Some(last)) = (triple[0].string(), triple[1].string()) else {
                        continue;
                    };
                    let (first, last) = (code(first), code(last));
                    match &triple[2] {
                        Object::String(text) => self.add_text(first, last, text),
                        Object::Array(texts) => {
                            for (code, text) in (first..=last).zip(texts.iter()) {
                                self.add_text(code, code, text.string().unwrap_or_default());
                            }
                        }
                        _ => {}
                    }
                }
            }
            b"endcidchar" => {
                for pair in operands.chunks_exact(2) {
                    if let (Some(from), Some(cid)) = (pair[0].string(), pair[1].unsigned()) {
                        self.add_cid(code(from), code(from), cid);
                    }
                }
            }
            b"endcidrange" => {
                for triple in operands.chunks_exact(3) {
                    let (first, last) = (triple[0].string(), triple[1].string());
                    if let (Some(first), Some(last), Some(cid)) = (first, last, triple[2].unsigned()) {
                        self.add_cid(code(first), code(last), cid);
                    }
                }
            }
            b"def" => {
                if let [.., Object::Name(name), Object::Number(mode)] = operands
                    && &**name == "WMode"
                {
                    self.vertical = *mode > 0.5;
                }
            }
            _ => {}
        }
    }

    fn add_text(&mut self, first: u32, last: u32, text: &[u8]) {
        let target = utf16_units(text);
        if self.texts.len() < MAX_RANGES && !target.is_empty() {
            self.texts.push(CodeRange { first, last, target });
        }
    }

    fn add_cid(&mut self, first: u32, last: u32, cid: usize) {
        if self.cids.len() < MAX_RANGES {
            self.cids.push(CodeRange { first, last, target: cid as u32 });
        }
    }

    /// Returns the first code of a string and its length in bytes.
    pub(crate) fn next_code(&self, bytes: &[u8]) -> (u32, usize) {
        for length in 1..=bytes.len().min(MAX_CODE_BYTES) {
            let code = code(&bytes[..length]);
            // A code is in a space if each of its bytes is.
            let contains_code = |space: &CodeSpace| {
                let byte = |code: u32, index: usize| code >> (8 * index) & 0xff;
                let in_range =
                    |index| (byte(space.first, index)..=byte(space.last, index)).contains(&byte(code, index));
                space.length == length && (0..length).all(in_range)
            };
            if self.codespaces.iter().any(contains_code) {
                return (code, length);
            }
        }
        let shortest = self.codespaces.iter().map(|space| space.length).min().unwrap_or(2);
        let length = shortest.min(bytes.len());
        (code(&bytes[..length]), length)
    }

    /// Returns the characters of a code; `None` if the table has none for it.
    pub(crate) fn text(&self, code: u32) -> Option<String> {
        let range = find_range(&self.texts, code)?;
        let mut units = range.target.clone();
        let last = units.last_mut()?;
        *last = last.wrapping_add((code - range.first) as u16);
        let text: String =
            char::decode_utf16(units).map_while(Result::ok).filter(|char| *char != '\0').collect();
        (!text.is_empty()).then_some(text)
    }

    /// Returns the glyph number of a code, 0 by default.
    pub(crate) fn cid(&self, code: u32) -> u32 {
        find_range(&self.cids, code).map_or(0, |range| range.target.wrapping_add(code - range.first))
    }
}

fn find_range<T>(ranges: &[CodeRange<T>], code: u32) -> Option<&CodeRange<T>> {
    let end = ranges.partition_point(|range| range.first <= code);
    ranges[..end].iter().rev().take(MAX_OVERLAPPING_RANGES).find(|range| code <= range.last)
}

fn code(bytes: &[u8]) -> u32 {
    bytes.iter().take(MAX_CODE_BYTES).fold(0, |code, byte| code << 8 | u32::from(*byte))
}

fn utf16_units(bytes: &[u8]) -> Vec<u16> {
    if let [byte] = bytes {
        return vec![u16::from(*byte)];
    }
    bytes.as_chunks::<2>().0.iter().take(MAX_UTF16_UNITS).map(|pair| u16::from_be_bytes(*pair)).collect()
}
