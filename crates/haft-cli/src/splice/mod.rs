//! Changing one entry in the text of somebody else's file: comments, order, spaces and line ends of the rest stay as they
//! are, byte for byte. What is not understood is refused, never guessed.
//!
//! Each format gives the edits of a change; the text they make is read again and must say what was meant.

pub(crate) mod json;
pub(crate) mod toml;
pub(crate) mod yaml;

use std::ops::Range;

/// One piece of a text, and what takes its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) at: Range<usize>,
    pub(crate) with: String,
}

impl Edit {
    fn insert(at: usize, with: impl Into<String>) -> Self {
        Self { at: at..at, with: with.into() }
    }

    fn cut(at: Range<usize>) -> Self {
        Self { at, with: String::new() }
    }
}

/// The text with the edits made; they lie in order and do not overlap.
fn applied(text: &str, edits: &[Edit]) -> String {
    let mut done = String::with_capacity(text.len() + 256);
    let mut here = 0;
    for edit in edits {
        done.push_str(&text[here..edit.at.start]);
        done.push_str(&edit.with);
        here = edit.at.end;
    }
    done.push_str(&text[here..]);
    done
}

/// How the text ends its lines.
fn newline(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// Where the line that holds `at` begins.
fn line_start(text: &str, at: usize) -> usize {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    // A byte order mark is not part of the first line.
    if start == 0 && text.starts_with('\u{feff}') { '\u{feff}'.len_utf8().min(at) } else { start }
}

/// Where the line that holds `at` ends, its line end included.
fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |newline| at + newline + 1)
}
