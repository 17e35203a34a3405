//! Collects the glyphs of a page and joins them to runs of text as they come.

use crate::PdfError;
use crate::budget::WorkBudget;
use crate::reading_order;

const MAX_GLYPHS: usize = 300_000;
const MAX_TEXT_BYTES: usize = 2 << 20;
/// Glyphs with larger coordinates or sizes are ignored.
const MAX_COORDINATE: f64 = 1e6;
const MIN_FONT_SIZE: f64 = 0.01;
/// A wider gap is a space.
pub(crate) const SPACE_GAP_EMS: f64 = 0.15;
/// A wider gap is a space in scripts that are written without spaces.
const DENSE_SPACE_GAP_EMS: f64 = 0.5;
/// A wider gap ends a run, as a column or a table cell may begin.
const RUN_GAP_EMS: f64 = 1.0;
/// How far a glyph may reach back into its run.
const MAX_OVERLAP_EMS: f64 = 0.4;
/// Base lines that are closer are the same.
const SAME_LINE_EMS: f64 = 0.2;
/// The same glyph at this distance is drawn twice to look bold.
const SAME_GLYPH_EMS: f64 = 0.1;
/// Stands for glyphs whose character is unknown.
const UNKNOWN: &str = "\u{fffd}";

/// One glyph as it is shown.
pub(crate) struct PlacedGlyph<'a> {
    pub(crate) start: (f64, f64),
    pub(crate) end: (f64, f64),
    /// The direction that the text runs in.
    pub(crate) direction: (f64, f64),
    pub(crate) size: f64,
    pub(crate) text: Option<&'a str>,
}

/// Text on one line without wide gaps.
#[derive(Debug)]
pub(crate) struct TextRun {
    pub(crate) left: f64,
    pub(crate) right: f64,
    /// The position of the base line; up is more.
    pub(crate) base: f64,
    pub(crate) size: f64,
    pub(crate) text: String,
}

/// All text of one page.
#[derive(Debug, Default)]
pub(crate) struct PageLayout {
    /// One list for each direction of text: right, up, left, down.
    runs: [Vec<TextRun>; 4],
    last: Option<LastGlyph>,
    glyphs: usize,
    text_bytes: usize,
    unknown_glyphs: usize,
}

#[derive(Debug, Clone, Copy)]
struct LastGlyph {
    direction: usize,
    left: f64,
    char: Option<char>,
    /// Whether white space followed it.
    space_after: bool,
}

impl PageLayout {
    pub(crate) fn is_full(&self) -> bool {
        self.glyphs >= MAX_GLYPHS || self.text_bytes >= MAX_TEXT_BYTES
    }

    pub(crate) fn glyphs(&self) -> usize {
        self.glyphs
    }

    /// The number of glyphs whose character is unknown.
    pub(crate) fn unknown_glyphs(&self) -> usize {
        self.unknown_glyphs
    }

    pub(crate) fn add(&mut self, glyph: &PlacedGlyph<'_>) {
        let PlacedGlyph { start, end, direction, size, text } = *glyph;
        let in_range = [start.0, start.1, end.0, end.1].iter().all(|number| number.abs() < MAX_COORDINATE);
        if !in_range || !(MIN_FONT_SIZE..MAX_COORDINATE).contains(&size) || self.is_full() {
            return;
        }
        let direction = quadrant(direction);
        let ((left, base), (right, _)) = (rotate(start, direction), rotate(end, direction));
        let right = right.max(left);
        let runs = &mut self.runs[direction];
        let text = text.unwrap_or(UNKNOWN);
        if text.is_empty() {
            if let Some(run) = runs.last_mut() {
                run.right = run.right.max(right);
            }
            return;
        }
        if text.chars().all(char::is_whitespace) {
            if let Some(last) = &mut self.last {
                last.space_after = true;
            }
            return;
        }
        let char = text.chars().next();
        let last = self.last.filter(|last| last.direction == direction);
        let same_line =
            runs.last_mut().filter(|run| (run.base - base).abs() < SAME_LINE_EMS * size.max(run.size));
        let mut joined = false;
        if let (Some(run), Some(last)) = (same_line, last) {
            if char == last.char && (left - last.left).abs() < SAME_GLYPH_EMS * size {
                return;
            }
            let em = size.max(run.size);
            let gap = left - run.right;
            joined = (-MAX_OVERLAP_EMS * em..RUN_GAP_EMS * em).contains(&gap);
            if joined {
                let dense = char.is_some_and(is_dense) && last.char.is_some_and(is_dense);
                let space_gap = if dense { DENSE_SPACE_GAP_EMS } else { SPACE_GAP_EMS };
                if last.space_after || gap > space_gap * size.min(run.size) {
                    run.text.push(' ');
                }
                run.right = run.right.max(right);
                run.size = em;
                push_normalized(&mut run.text, text);
            }
        }
        if !joined {
            let mut run = TextRun { left, right, base, size, text: String::new() };
            push_normalized(&mut run.text, text);
            runs.push(run);
        }
        self.last = Some(LastGlyph { direction, left, char: text.chars().next_back(), space_after: false });
        self.glyphs += 1;
        self.text_bytes += text.len();
        self.unknown_glyphs += usize::from(text == UNKNOWN);
    }

    /// Returns the text in reading order, the direction with the most text first.
    pub(crate) fn into_text(self, budget: &WorkBudget<'_>) -> Result<String, PdfError> {
        let mut directions: Vec<Vec<TextRun>> =
            self.runs.into_iter().filter(|runs| !runs.is_empty()).collect();
        directions
            .sort_by_key(|runs| std::cmp::Reverse(runs.iter().map(|run| run.text.len()).sum::<usize>()));
        let mut texts = Vec::new();
        for runs in directions {
            texts.push(reading_order::text(&runs, budget)?);
        }
        Ok(texts.join("\n\n"))
    }
}

/// Returns the index of the nearest direction: right, up, left, down.
fn quadrant((x, y): (f64, f64)) -> usize {
    match (x.abs() >= y.abs(), x >= 0.0, y >= 0.0) {
        (true, true, _) => 0,
        (true, false, _) => 2,
        (false, _, true) => 1,
        (false, _, false) => 3,
    }
}

/// Rotates the page so that text in this direction runs to the right.
fn rotate((x, y): (f64, f64), direction: usize) -> (f64, f64) {
    match direction {
        0 => (x, y),
        1 => (y, -x),
        2 => (-x, -y),
        _ => (-y, x),
    }
}

/// Whether a character's script is written without spaces.
fn is_dense(char: char) -> bool {
    matches!(char, '\u{2e80}'..='\u{a4cf}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..)
}

/// Appends a glyph's text as a person would type it: without ligatures and control characters.
fn push_normalized(output: &mut String, text: &str) {
    for char in text.chars() {
        match char {
            'ﬀ' => output.push_str("ff"),
            'ﬁ' => output.push_str("fi"),
            'ﬂ' => output.push_str("fl"),
            'ﬃ' => output.push_str("ffi"),
            'ﬄ' => output.push_str("ffl"),
            'ﬅ' | 'ﬆ' => output.push_str("st"),
            '\u{ad}' => output.push('-'),
            char if char.is_whitespace() => output.push(' '),
            char if char.is_control() => {}
            char => output.push(char),
        }
    }
}
