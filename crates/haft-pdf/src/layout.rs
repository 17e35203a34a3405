//! Glyphs on a sheet, put together to pieces of lines as they come.

use crate::Fault;
use crate::budget::Budget;
use crate::order;

const MOST_GLYPHS: usize = 300_000;
const MOST_TEXT: usize = 2 << 20;
/// Coordinates beyond this are nonsense.
const FAR: f64 = 1e6;
/// A gap this wide, in ems, is a space.
pub(crate) const SPACE: f64 = 0.15;
/// A gap this wide, in ems, ends a piece: a column or a cell may begin.
const BREAK: f64 = 1.0;

/// One glyph as it is shown.
pub(crate) struct Glyph<'a> {
    pub(crate) from: (f64, f64),
    pub(crate) to: (f64, f64),
    /// In which direction the text runs.
    pub(crate) along: (f64, f64),
    pub(crate) size: f64,
    pub(crate) text: Option<&'a str>,
}

/// A piece of a line: what was written without a wide gap.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) left: f64,
    pub(crate) right: f64,
    /// The height of its base line; up is more.
    pub(crate) base: f64,
    pub(crate) size: f64,
    pub(crate) text: String,
}

/// Everything that is written on one page.
#[derive(Debug, Default)]
pub(crate) struct Sheet {
    /// One list for each direction that text runs in: right, up, left, down.
    pieces: [Vec<Piece>; 4],
    last: Option<Last>,
    glyphs: usize,
    bytes: usize,
    /// How many glyphs nobody knows the character of.
    pub(crate) unknown: usize,
}

#[derive(Debug)]
struct Last {
    direction: usize,
    left: f64,
    char: Option<char>,
    space: bool,
}

impl Sheet {
    pub(crate) fn is_full(&self) -> bool {
        self.glyphs >= MOST_GLYPHS || self.bytes >= MOST_TEXT
    }

    pub(crate) fn glyphs(&self) -> usize {
        self.glyphs
    }

    pub(crate) fn put(&mut self, glyph: &Glyph<'_>) {
        let Glyph { from, to, along, size, text } = *glyph;
        let sane = [from.0, from.1, to.0, to.1].iter().all(|number| number.abs() < FAR);
        if !sane || !(0.01..FAR).contains(&size) || self.is_full() {
            return;
        }
        let direction = direction(along);
        let ((left, base), (right, _)) = (turned(from, direction), turned(to, direction));
        let right = right.max(left);
        let pieces = &mut self.pieces[direction];
        let text = text.unwrap_or("\u{fffd}");
        if text.is_empty() {
            if let Some(piece) = pieces.last_mut() {
                piece.right = piece.right.max(right);
            }
            return;
        }
        if text.chars().all(char::is_whitespace) {
            if let Some(last) = &mut self.last {
                last.space = true;
            }
            return;
        }
        let (last_left, last_char, space) = match &self.last {
            Some(last) if last.direction == direction => (last.left, last.char, last.space),
            _ => (f64::NAN, None, false),
        };
        let char = text.chars().next();
        let joined = match pieces.last_mut() {
            Some(piece) if !last_left.is_nan() && (piece.base - base).abs() < 0.2 * size.max(piece.size) => {
                // Some writers make letters bold by writing them twice.
                if char == last_char && (left - last_left).abs() < 0.1 * size {
                    return;
                }
                let em = size.max(piece.size);
                let gap = left - piece.right;
                let near = (-0.4 * em..BREAK * em).contains(&gap);
                if near {
                    let dense = char.is_some_and(is_dense) && last_char.is_some_and(is_dense);
                    let wide = gap > if dense { 0.5 } else { SPACE } * size.min(piece.size);
                    if space || wide {
                        piece.text.push(' ');
                    }
                    piece.right = piece.right.max(right);
                    piece.size = em;
                    clean(text, &mut piece.text);
                }
                near
            }
            _ => false,
        };
        if !joined {
            let mut own = String::new();
            clean(text, &mut own);
            pieces.push(Piece { left, right, base, size, text: own });
        }
        self.last = Some(Last {
            direction,
            left,
            char: text.chars().next_back().filter(|_| text.len() > 1).or(char),
            space: false,
        });
        self.glyphs += 1;
        self.bytes += text.len();
        self.unknown += usize::from(text == "\u{fffd}");
    }

    /// The text in reading order: the main direction first.
    pub(crate) fn text(self, budget: &Budget<'_>) -> Result<String, Fault> {
        let mut directions: Vec<Vec<Piece>> =
            self.pieces.into_iter().filter(|pieces| !pieces.is_empty()).collect();
        directions.sort_by_key(|pieces| {
            std::cmp::Reverse(pieces.iter().map(|piece| piece.text.len()).sum::<usize>())
        });
        let mut texts = Vec::new();
        for pieces in directions {
            texts.push(order::read(&pieces, budget)?);
        }
        Ok(texts.join("\n\n"))
    }
}

fn direction((x, y): (f64, f64)) -> usize {
    match (x.abs() >= y.abs(), x >= 0.0, y >= 0.0) {
        (true, true, _) => 0,
        (true, false, _) => 2,
        (false, _, true) => 1,
        (false, _, false) => 3,
    }
}

/// The point on a sheet turned so that its text runs to the right.
fn turned((x, y): (f64, f64), direction: usize) -> (f64, f64) {
    match direction {
        0 => (x, y),
        1 => (y, -x),
        2 => (-x, -y),
        _ => (-y, x),
    }
}

/// Whether a script is written without spaces, so that a gap says little.
fn is_dense(char: char) -> bool {
    matches!(char, '\u{2e80}'..='\u{a4cf}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..)
}

/// Adds a glyph's text as people would type it.
fn clean(text: &str, to: &mut String) {
    for char in text.chars() {
        match char {
            'ﬀ' => to.push_str("ff"),
            'ﬁ' => to.push_str("fi"),
            'ﬂ' => to.push_str("fl"),
            'ﬃ' => to.push_str("ffi"),
            'ﬄ' => to.push_str("ffl"),
            'ﬅ' | 'ﬆ' => to.push_str("st"),
            '\u{ad}' => to.push('-'),
            char if char.is_whitespace() => to.push(' '),
            char if char.is_control() => {}
            char => to.push(char),
        }
    }
}
