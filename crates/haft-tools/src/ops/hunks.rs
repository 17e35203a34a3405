//! A unified diff of an edit, computed from the replaced spans, so that its cost depends on the edit and not on the file.

use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

/// Lines shown around a change.
const CONTEXT_LINES: usize = 3;
/// A larger block is shown as removed and added, not compared line by line.
const MAX_COMPARED_LINES: usize = 4_000;

/// A span of the old text, in bytes, and its new text.
#[derive(Debug, Clone)]
pub(crate) struct ReplacedSpan {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) new: String,
}

/// One hunk of a unified diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hunk {
    old_start: usize,
    old_lines: usize,
    new_start: usize,
    new_lines: usize,
    lines: Vec<String>,
}

impl Hunk {
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "oldStart": self.old_start, "oldLines": self.old_lines,
            "newStart": self.new_start, "newLines": self.new_lines, "lines": self.lines,
        })
    }

    pub(crate) fn to_text(&self) -> String {
        let Self { old_start, old_lines, new_start, new_lines, lines } = self;
        format!("@@ -{old_start},{old_lines} +{new_start},{new_lines} @@\n{}\n", lines.join("\n"))
    }
}

/// At most `max_hunks` hunks for `spans` (in order, not overlapping) of `old`.
pub(crate) fn hunks(old: &str, spans: &[ReplacedSpan], max_hunks: usize) -> Vec<Hunk> {
    let mut hunks = Vec::new();
    let (mut line, mut counted) = (1, 0);
    let mut shift: isize = 0;
    let mut rest = spans;
    while let Some(first) = rest.first() {
        if hunks.len() == max_hunks {
            break;
        }
        let start = context_start(old, first.start);
        let mut taken = 1;
        let mut end = context_end(old, first.end);
        while let Some(next) = rest.get(taken)
            && context_start(old, next.start) <= end
        {
            end = context_end(old, next.end);
            taken += 1;
        }
        line += memchr::memchr_iter(b'\n', &old.as_bytes()[counted..start]).count();
        counted = start;
        let mut new = String::new();
        let mut at = start;
        for span in &rest[..taken] {
            new.push_str(&old[at..span.start]);
            new.push_str(&span.new);
            at = span.end;
        }
        new.push_str(&old[at..end]);
        let hunk = diff_block(&old[start..end], &new, line, shift);
        shift += hunk.new_lines.cast_signed() - hunk.old_lines.cast_signed();
        hunks.push(hunk);
        rest = &rest[taken..];
    }
    hunks
}

fn diff_block(old: &str, new: &str, line: usize, shift: isize) -> Hunk {
    let (old_lines, new_lines) = (old.split_inclusive('\n').count(), new.split_inclusive('\n').count());
    let shown = |sign: char, text: &str| format!("{sign}{}", text.trim_end_matches(['\n', '\r']));
    let lines = if old_lines + new_lines > MAX_COMPARED_LINES {
        let removed = old.split_inclusive('\n').map(|text| shown('-', text));
        removed.chain(new.split_inclusive('\n').map(|text| shown('+', text))).collect()
    } else {
        let diff = TextDiff::from_lines(old, new);
        let sign = |tag| match tag {
            ChangeTag::Equal => ' ',
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
        };
        diff.iter_all_changes().map(|change| shown(sign(change.tag()), change.value())).collect()
    };
    let new_start = line.saturating_add_signed(shift);
    Hunk { old_start: line, old_lines, new_start, new_lines, lines }
}

/// The start of the line [`CONTEXT_LINES`] above `at`.
fn context_start(text: &str, at: usize) -> usize {
    let mut breaks = memchr::memrchr_iter(b'\n', &text.as_bytes()[..at]);
    breaks.nth(CONTEXT_LINES).map_or(0, |at| at + 1)
}

/// The end of the line [`CONTEXT_LINES`] below `at`.
fn context_end(text: &str, at: usize) -> usize {
    // A span that ends with a line break already includes its last line.
    let from = if at > 0 && text.as_bytes()[at - 1] == b'\n' { at - 1 } else { at };
    let mut breaks = memchr::memchr_iter(b'\n', &text.as_bytes()[from..]);
    breaks.nth(CONTEXT_LINES).map_or(text.len(), |more| from + more + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_edits_share_a_hunk() {
        let old: String = (1..=40).map(|n| format!("line {n}\n")).collect();
        let span = |from: &str, new: &str| {
            let start = old.find(from).unwrap();
            ReplacedSpan { start, end: start + from.len(), new: new.to_owned() }
        };
        let spans =
            [span("line 10\n", "ten\nten and a half\n"), span("line 12\n", ""), span("line 30", "thirty")];
        let found = hunks(&old, &spans, 10);
        let text: String = found.iter().map(Hunk::to_text).collect();
        assert_eq!(
            text,
            "@@ -7,9 +7,9 @@\n line 7\n line 8\n line 9\n-line 10\n+ten\n+ten and a half\n line 11\n-line 12\n line 13\n line 14\n line 15\n\
             @@ -27,7 +27,7 @@\n line 27\n line 28\n line 29\n-line 30\n+thirty\n line 31\n line 32\n line 33\n"
        );
    }
}
