//! The only place where text is truncated: at character boundaries, once, with true counts.

mod json;

use std::borrow::Cow;

use serde::Serialize;

pub use json::{JsonBound, cut_list, cut_string};

use crate::Text;

/// Which part of a text survives the cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The beginning, up to the end of a line where one is near: for files and lists.
    Head,
    /// The beginning, to the very last character that fits.
    First,
    /// The beginning and the end: for commands, whose last lines matter most.
    HeadAndTail,
}

/// What a cut left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cut {
    /// Characters of the whole text; bytes that were never in memory count as one each.
    pub total_chars: u64,
    /// Bytes of the whole text.
    pub total_bytes: u64,
    /// Characters shown.
    pub shown_chars: u64,
    /// How to read the rest, if it can be read.
    pub rest: Option<String>,
}

/// How much of a result a caller sees.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    /// The most characters shown, not counting the notice.
    pub max_chars: usize,
    /// Which part is shown.
    pub keep: Keep,
    /// The words in place of what is missing.
    pub notice: fn(&Cut) -> String,
    /// The most bytes of all texts of a result together. The rest is left out, with the same note as in cut JSON strings.
    pub max_bytes: Option<usize>,
    /// For results that are one JSON value: how to cut the value instead of its text.
    pub json: Option<JsonBound>,
}

impl Default for Bound {
    fn default() -> Self {
        Self::DEFAULT
    }
}

fn plain_notice(cut: &Cut) -> String {
    let hidden = cut.total_chars - cut.shown_chars;
    let rest = cut.rest.as_ref().map(|rest| format!("; {rest}")).unwrap_or_default();
    format!(
        "[... {hidden} of {} characters not shown ({} bytes in all){rest} ...]",
        cut.total_chars, cut.total_bytes
    )
}

impl Bound {
    /// The beginning and the end, 30,000 characters in all.
    pub const DEFAULT: Self = Self {
        max_chars: 30_000,
        keep: Keep::HeadAndTail,
        notice: plain_notice,
        max_bytes: None,
        json: None,
    };

    /// The same bound, but only the beginning is kept.
    #[must_use]
    pub const fn head(mut self) -> Self {
        self.keep = Keep::Head;
        self
    }

    /// The same bound for `max_chars` characters.
    #[must_use]
    pub const fn chars(mut self, max_chars: usize) -> Self {
        self.max_chars = max_chars;
        self
    }

    /// A bound for results that are one JSON value, whose compact text may have `max_bytes` bytes.
    #[must_use]
    pub const fn json(max_bytes: usize) -> Self {
        Self { json: Some(JsonBound { max_bytes, strings: None }), ..Self::DEFAULT }
    }

    /// A bound for the texts of a result, which may have `max_bytes` bytes in all.
    #[must_use]
    pub const fn bytes(max_bytes: usize) -> Self {
        Self { max_chars: max_bytes, max_bytes: Some(max_bytes), ..Self::DEFAULT }
    }

    /// Whether `text` would be cut.
    pub fn cuts(&self, text: &Text) -> bool {
        text.missing_bytes > 0
            || self.max_bytes.is_some_and(|max_bytes| text.total_bytes() > max_bytes as u64)
            || (text.head.len() + text.tail.len() > self.max_chars
                && text.head.chars().count() + text.tail.chars().count() > self.max_chars)
    }

    /// The text as the caller sees it, and what was left out.
    pub fn apply(&self, text: Text, rest: Option<String>) -> (String, Option<Cut>) {
        if !self.cuts(&text) {
            let mut whole = text.head;
            whole.push_str(&text.tail);
            return (whole, None);
        }
        let total_bytes = text.total_bytes();
        if let Some(max_bytes) = self.max_bytes {
            let (head, total_chars) = (text.head, total_bytes);
            let shown = json::cut_to(head, total_bytes, max_bytes);
            let cut = Cut { total_chars, total_bytes, shown_chars: shown.chars().count() as u64, rest };
            return (shown, Some(cut));
        }
        let held = text.head.chars().count() + text.tail.chars().count();
        let total_chars = held as u64 + text.missing_bytes;
        let (head, tail) = match (self.keep, text.missing_bytes) {
            (Keep::Head, _) => (first_chars(&text.head, self.max_chars), ""),
            (Keep::First, _) => {
                let end =
                    text.head.char_indices().nth(self.max_chars).map_or(text.head.len(), |(end, _)| end);
                (&text.head[..end], "")
            }
            (Keep::HeadAndTail, 0) => {
                let all =
                    if text.tail.is_empty() { &text.head } else { &format!("{}{}", text.head, text.tail) };
                let (head, tail) = (
                    first_chars(all, self.max_chars / 2),
                    last_chars(all, self.max_chars - self.max_chars / 2),
                );
                return self.join(head, tail, total_chars, total_bytes, rest);
            }
            (Keep::HeadAndTail, _) => (
                first_chars(&text.head, self.max_chars / 2),
                last_chars(&text.tail, self.max_chars - self.max_chars / 2),
            ),
        };
        self.join(head, tail, total_chars, total_bytes, rest)
    }

    fn join(
        &self,
        head: &str,
        tail: &str,
        total_chars: u64,
        total_bytes: u64,
        rest: Option<String>,
    ) -> (String, Option<Cut>) {
        let shown_chars = (head.chars().count() + tail.chars().count()) as u64;
        let cut = Cut { total_chars, total_bytes, shown_chars, rest };
        let notice = (self.notice)(&cut);
        let whole_line = (head.is_empty() || head.ends_with('\n')) && self.keep != Keep::First;
        let gap = if whole_line { "" } else { "\n" };
        let shown = if tail.is_empty() {
            format!("{head}{gap}{notice}")
        } else {
            format!("{head}{gap}{notice}\n{tail}")
        };
        (shown, Some(cut))
    }
}

/// At most the first `max` characters, up to the end of a line if one is near.
fn first_chars(text: &str, max: usize) -> &str {
    let Some((end, _)) = text.char_indices().nth(max) else { return text };
    let near = end - (end / 8);
    match text.as_bytes()[..end].iter().rposition(|b| *b == b'\n') {
        Some(line_end) if line_end >= near => &text[..=line_end],
        _ => &text[..end],
    }
}

/// At most the last `max` characters, from the start of a line if one is near.
fn last_chars(text: &str, max: usize) -> &str {
    if max == 0 {
        return "";
    }
    let Some((start, _)) = text.char_indices().nth_back(max - 1) else { return text };
    let near = start + (text.len() - start) / 8;
    match text.as_bytes()[start..].iter().position(|b| *b == b'\n') {
        Some(offset) if start + offset < near && start + offset + 1 < text.len() => {
            &text[start + offset + 1..]
        }
        _ => &text[start..],
    }
}

/// A line cut to `max` characters, with a note of its true length: that of `line` and `unseen` more characters.
pub fn clip_chars(line: &str, max: usize, unseen: u64) -> Cow<'_, str> {
    if unseen == 0 && line.len() <= max {
        return Cow::Borrowed(line);
    }
    let end = line.char_indices().nth(max).map(|(end, _)| end);
    if unseen == 0 && end.is_none() {
        return Cow::Borrowed(line);
    }
    let shown = &line[..end.unwrap_or(line.len())];
    Cow::Owned(format!("{shown}... [line cut: {} characters]", line.chars().count() as u64 + unseen))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(max_chars: usize, keep: Keep) -> Bound {
        Bound { max_chars, keep, ..Bound::default() }
    }

    #[test]
    fn what_fits_is_untouched() {
        let (text, cut) = bound(5, Keep::HeadAndTail).apply("äöüéß".into(), None);
        assert_eq!((text.as_str(), cut), ("äöüéß", None));
    }

    #[test]
    fn a_cut_falls_on_characters_and_counts_truly() {
        let (text, cut) = bound(4, Keep::HeadAndTail).apply("äbcdefgü".into(), None);
        assert_eq!(text, "äb\n[... 4 of 8 characters not shown (10 bytes in all) ...]\ngü");
        assert_eq!(cut.unwrap().shown_chars, 4);
        let (text, _) = bound(2, Keep::Head).apply("日本語".into(), Some("read on".into()));
        assert_eq!(text, "日本\n[... 1 of 3 characters not shown (9 bytes in all); read on ...]");
    }

    #[test]
    fn the_first_characters_are_just_those() {
        let (text, cut) = bound(4, Keep::First).apply("äb\n\ncd".into(), None);
        assert_eq!(text, "äb\n\n\n[... 2 of 6 characters not shown (7 bytes in all) ...]");
        assert_eq!(cut.unwrap().shown_chars, 4);
    }

    #[test]
    fn bytes_that_never_were_in_memory_count() {
        let text = Text { head: "abc".into(), missing_bytes: 1_000, tail: "xyz".into() };
        let (shown, cut) = bound(100, Keep::HeadAndTail).apply(text, None);
        assert_eq!(shown, "abc\n[... 1000 of 1006 characters not shown (1006 bytes in all) ...]\nxyz");
        assert_eq!(cut.unwrap().total_bytes, 1_006);
    }

    #[test]
    fn a_cut_prefers_whole_lines() {
        let text = (0..100).map(|n| format!("line {n}\n")).collect::<String>();
        let (shown, _) = bound(100, Keep::HeadAndTail).apply(text.into(), None);
        assert!(shown.starts_with("line 0\n") && shown.contains("line 6\n[..."), "{shown}");
        assert!(shown.contains("...]\nline ") && shown.ends_with("line 99\n"), "{shown}");
    }

    #[test]
    fn a_long_line_says_how_long_it_is() {
        assert_eq!(clip_chars("äöü", 3, 0), "äöü");
        assert_eq!(clip_chars("äöüß", 3, 0), "äöü... [line cut: 4 characters]");
        assert_eq!(clip_chars("ab", 3, 9), "ab... [line cut: 11 characters]");
    }
}
