//! The difference of two texts as hunks of lines, for every place that shows one.

use std::time::Duration;

use haft_tool::JsonSchema;
use serde::{Deserialize, Serialize};
use similar::{ChangeTag, TextDiff};

/// Unchanged lines around a change.
const CONTEXT_LINES: usize = 3;
/// A comparison that takes longer gives a coarser result.
const COMPARISON_TIME: Duration = Duration::from_millis(500);

/// What one line of a difference is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LineTag {
    /// In both texts.
    #[serde(rename = " ")]
    Same,
    /// In the new text only.
    #[serde(rename = "+")]
    Added,
    /// In the old text only.
    #[serde(rename = "-")]
    Removed,
}

/// A line of a difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiffLine {
    /// What it is.
    pub tag: LineTag,
    /// The line without its end. A carriage return is kept where the line endings change.
    pub text: String,
}

/// Lines that changed, with those around them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiffHunk {
    /// The number of its first line in the old text, counted from 1.
    pub old_start: usize,
    /// The number of its first line in the new text, counted from 1.
    pub new_start: usize,
    /// Its lines.
    pub lines: Vec<DiffLine>,
}

/// The difference of two texts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TextChanges {
    /// What changed, in order.
    pub hunks: Vec<DiffHunk>,
    /// How many lines are new.
    pub added: usize,
    /// How many lines are gone.
    pub removed: usize,
    /// Whether the last hunks are left out.
    pub is_cut: bool,
}

/// What changed between two texts; at most `max_lines` lines of it.
pub fn text_changes(old: &str, new: &str, max_lines: usize) -> TextChanges {
    // A lone carriage return ends no line, because other programs do not take it for a line end.
    let lines = |text| str::split_inclusive(text, '\n').collect::<Vec<_>>();
    let (old_lines, new_lines) = (lines(old), lines(new));
    let diff = TextDiff::configure().timeout(COMPARISON_TIME).diff_slices(&old_lines, &new_lines);
    // In any other text, a carriage return may be what the change is about: shells take it for a part of the line.
    let has_only_returns = |lines: &[&str]| {
        !lines.is_empty() && lines.iter().all(|line| line.ends_with("\r\n") || !line.ends_with('\n'))
    };
    let line_end = if has_only_returns(&old_lines) && has_only_returns(&new_lines) { "\r\n" } else { "\n" };
    let mut changes = TextChanges::default();
    let mut listed = 0;
    for hunk in diff.unified_diff().context_radius(CONTEXT_LINES).iter_hunks() {
        let start = |range: Option<usize>| range.map_or(0, |index| index + 1);
        let first = hunk.ops().first();
        let mut found = DiffHunk {
            old_start: start(first.map(|op| op.old_range().start)),
            new_start: start(first.map(|op| op.new_range().start)),
            lines: Vec::new(),
        };
        for change in hunk.iter_changes() {
            let tag = match change.tag() {
                ChangeTag::Equal => LineTag::Same,
                ChangeTag::Insert => LineTag::Added,
                ChangeTag::Delete => LineTag::Removed,
            };
            changes.added += usize::from(tag == LineTag::Added);
            changes.removed += usize::from(tag == LineTag::Removed);
            if listed < max_lines {
                let line = change.value();
                let text = line
                    .strip_suffix(line_end)
                    .or_else(|| line.strip_suffix('\n'))
                    .unwrap_or(line)
                    .to_owned();
                found.lines.push(DiffLine { tag, text });
                listed += 1;
            } else {
                changes.is_cut = true;
            }
        }
        if !found.lines.is_empty() {
            changes.hunks.push(found);
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunks_have_line_numbers_and_counts_are_whole_when_they_are_cut() {
        let old: String = (1..=30).map(|line| format!("{line}\n")).collect();
        let new = old.replace("\n5\n", "\nfive\n").replace("30\n", "");
        let changes = text_changes(&old, &new, 1_000);
        let starts: Vec<_> = changes.hunks.iter().map(|hunk| (hunk.old_start, hunk.new_start)).collect();
        assert_eq!(starts, [(2, 2), (27, 27)]);
        assert_eq!((changes.added, changes.removed, changes.is_cut), (1, 2, false));
        let cut = text_changes(&old, &new, 5);
        assert_eq!((cut.added, cut.removed, cut.is_cut, cut.hunks.len()), (1, 2, true, 1));
    }

    #[test]
    fn carriage_returns_are_kept_only_where_the_line_endings_change() {
        let line = |old, new| text_changes(old, new, 10).hunks[0].lines.last().unwrap().text.clone();
        assert_eq!(line("a\r\n", "b\r\n"), "b");
        assert_eq!(line("a\n", "a\r\n"), "a\r");
        assert_eq!(line("x\n", "# a\rb\r\r\n"), "# a\rb\r\r");
        assert_eq!(line("a\nb", "a\rb"), "a\rb");
        assert_eq!(line("", "echo \\\r\nrm -r x\n"), "rm -r x");
        assert_eq!(text_changes("", "echo \\\r\nrm -r x\n", 10).hunks[0].lines[0].text, "echo \\\r");
        assert_eq!(line("x\r\nrm -r x\n", "x\r\nrm -r x\r\n"), "rm -r x\r");
    }
}
