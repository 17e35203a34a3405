//! Characters that make a command look like another one.

use std::ops::Range;

/// Ranges of characters that have no place in a command outside of quotes: they are invisible, look like a space, or look
/// like an operator or a quote.
const MISLEADING: &[(char, char)] = &[
    ('\u{a0}', '\u{a0}'),
    ('\u{ad}', '\u{ad}'),
    ('\u{1c3}', '\u{1c3}'),
    ('\u{2b9}', '\u{2d0}'),
    ('\u{300}', '\u{36f}'),
    ('\u{37e}', '\u{37e}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{1680}', '\u{1680}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{2000}', '\u{206f}'),
    ('\u{2215}', '\u{2217}'),
    ('\u{2223}', '\u{2223}'),
    ('\u{2236}', '\u{2236}'),
    ('\u{223c}', '\u{223c}'),
    ('\u{27e8}', '\u{27e9}'),
    ('\u{2212}', '\u{2212}'),
    ('\u{2800}', '\u{2800}'),
    ('\u{29f8}', '\u{29f9}'),
    ('\u{3000}', '\u{3000}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe6f}'),
    ('\u{ff00}', '\u{ffef}'),
    ('\u{1d400}', '\u{1d7ff}'),
    ('\u{e000}', '\u{f8ff}'),
    ('\u{e0000}', '\u{e0fff}'),
    ('\u{fff0}', '\u{fffd}'),
];

/// Ranges of letters of which some look like ASCII letters: a word that mixes both misleads.
const LOOK_ALIKE_LETTERS: &[(char, char)] = &[
    ('\u{250}', '\u{2b8}'),
    ('\u{370}', '\u{52f}'),
    ('\u{531}', '\u{58f}'),
    ('\u{10a0}', '\u{10ff}'),
    ('\u{13a0}', '\u{13ff}'),
    ('\u{1400}', '\u{167f}'),
    ('\u{1c80}', '\u{1c8f}'),
    ('\u{1d00}', '\u{1dbf}'),
    ('\u{1f00}', '\u{1fff}'),
    ('\u{2100}', '\u{214f}'),
    ('\u{2160}', '\u{2188}'),
    ('\u{2c00}', '\u{2cff}'),
    ('\u{a4d0}', '\u{a4ff}'),
    ('\u{a640}', '\u{a69f}'),
    ('\u{a720}', '\u{a7ff}'),
    ('\u{ab30}', '\u{abbf}'),
];

fn is_in(c: char, ranges: &[(char, char)]) -> bool {
    ranges.iter().any(|(first, last)| (*first..=*last).contains(&c))
}

/// Where the first character is that misleads wherever it is, even in a quoted text or a comment: control characters, which a
/// terminal obeys, and those that change the direction of text.
pub(crate) fn first_misleading(source: &str) -> Option<Range<usize>> {
    let misleads = |c: char| {
        c.is_control() && !matches!(c, '\n' | '\t')
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    source.char_indices().find(|(_, c)| misleads(*c)).map(|(at, c)| at..at + c.len_utf8())
}

/// Whether unquoted text of an argument misleads.
pub(crate) fn is_misleading(text: &str) -> bool {
    if text.is_ascii() {
        return false;
    }
    let mixes =
        text.chars().any(|c| c.is_ascii_alphabetic()) && text.chars().any(|c| is_in(c, LOOK_ALIKE_LETTERS));
    mixes || text.chars().any(|c| is_in(c, MISLEADING))
}
