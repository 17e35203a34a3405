//! Tables from the codes in a string to characters, as fonts carry them.

use crate::Fault;
use crate::budget::Budget;
use crate::lexer::{Lexer, Token};
use crate::object::Object;

const MOST_RANGES: usize = 200_000;
/// How many UTF-16 units one code may stand for.
const MOST_UNITS: usize = 16;

/// What codes stand for: characters (a `ToUnicode` map) or glyph numbers (an encoding).
#[derive(Debug, Default)]
pub(crate) struct CMap {
    /// Codes of how many bytes there are, with the first and the last of each range.
    spaces: Vec<(usize, u32, u32)>,
    /// First code, last code, and what the first stands for; the last unit counts up. Sorted by the first.
    texts: Vec<(u32, u32, Vec<u16>)>,
    cids: Vec<(u32, u32, u32)>,
    pub(crate) vertical: bool,
}

impl CMap {
    pub(crate) fn parse(bytes: &[u8], budget: &Budget<'_>) -> Result<Self, Fault> {
        let mut map = Self::default();
        let mut lexer = Lexer::content(bytes);
        let mut operands: Vec<Object> = Vec::new();
        loop {
            budget.steps(2)?;
            match lexer.next() {
                Token::Value(value) => {
                    if operands.len() < MOST_RANGES {
                        operands.push(value);
                    }
                }
                Token::Word(word) => {
                    map.section(word, &operands);
                    operands.clear();
                }
                Token::End => break,
            }
        }
        map.texts.sort_by_key(|range| range.0);
        map.cids.sort_by_key(|range| range.0);
        Ok(map)
    }

    fn section(&mut self, word: &[u8], operands: &[Object]) {
        match word {
            b"endcodespacerange" => {
                for pair in operands.chunks_exact(2).take(256) {
                    if let (Some(low), Some(high)) = (pair[0].text(), pair[1].text()) {
                        self.spaces.push((low.len().clamp(1, 4), code(low), code(high)));
                    }
                }
            }
            b"endbfchar" => {
                for pair in operands.chunks_exact(2) {
                    if let (Some(from), Some(to)) = (pair[0].text(), pair[1].text()) {
                        self.text(code(from), code(from), units(to));
                    }
                }
            }
            b"endbfrange" => {
                for triple in operands.chunks_exact(3) {
                    let (Some(low), Some(high)) = (triple[0].text(), triple[1].text()) else { continue };
                    let (low, high) = (code(low), code(high));
                    match &triple[2] {
                        Object::Text(to) => self.text(low, high, units(to)),
                        Object::Array(items) => {
                            for (code, item) in (low..=high).zip(items.iter()) {
                                self.text(code, code, units(item.text().unwrap_or_default()));
                            }
                        }
                        _ => {}
                    }
                }
            }
            b"endcidchar" => {
                for pair in operands.chunks_exact(2) {
                    if let (Some(from), Some(to)) = (pair[0].text(), pair[1].count()) {
                        self.cid(code(from), code(from), to);
                    }
                }
            }
            b"endcidrange" => {
                for triple in operands.chunks_exact(3) {
                    let [low, high, to] = triple else { continue };
                    if let (Some(low), Some(high), Some(to)) = (low.text(), high.text(), to.count()) {
                        self.cid(code(low), code(high), to);
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

    fn text(&mut self, low: u32, high: u32, units: Vec<u16>) {
        if self.texts.len() < MOST_RANGES && !units.is_empty() {
            self.texts.push((low, high, units));
        }
    }

    fn cid(&mut self, low: u32, high: u32, to: usize) {
        if self.cids.len() < MOST_RANGES {
            self.cids.push((low, high, to as u32));
        }
    }

    /// The next code of a string: its value and how many bytes it has.
    pub(crate) fn next(&self, bytes: &[u8]) -> (u32, usize) {
        for length in 1..=bytes.len().min(4) {
            let found = code(&bytes[..length]);
            let fits = |(size, low, high): &(usize, u32, u32)| {
                *size == length
                    && (0..length).all(|byte| {
                        let byte_of = |code: u32| code >> (8 * byte) & 0xff;
                        (byte_of(*low)..=byte_of(*high)).contains(&byte_of(found))
                    })
            };
            if self.spaces.iter().any(fits) {
                return (found, length);
            }
        }
        let shortest = self.spaces.iter().map(|space| space.0).min().unwrap_or(2);
        let length = shortest.min(bytes.len());
        (code(&bytes[..length]), length)
    }

    /// The characters that a code stands for; `None` if the map has none that mean anything.
    pub(crate) fn lookup(&self, code: u32) -> Option<String> {
        let end = self.texts.partition_point(|range| range.0 <= code);
        // Ranges may overlap; one that contains the code is not far.
        let (low, _, units) = self.texts[..end].iter().rev().take(8).find(|range| code <= range.1)?;
        let mut units = units.clone();
        let last = units.last_mut()?;
        *last = last.wrapping_add((code - low) as u16);
        let text: String =
            char::decode_utf16(units).map_while(Result::ok).filter(|char| *char != '\0').collect();
        (!text.is_empty()).then_some(text)
    }

    pub(crate) fn cid_of(&self, code: u32) -> u32 {
        let end = self.cids.partition_point(|range| range.0 <= code);
        let range = self.cids[..end].iter().rev().take(8).find(|range| code <= range.1);
        range.map_or(0, |(low, _, to)| to.wrapping_add(code - low))
    }
}

fn code(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |code, byte| code << 8 | u32::from(*byte))
}

fn units(bytes: &[u8]) -> Vec<u16> {
    if let [byte] = bytes {
        return vec![u16::from(*byte)];
    }
    bytes.as_chunks::<2>().0.iter().take(MOST_UNITS).map(|pair| u16::from_be_bytes(*pair)).collect()
}
