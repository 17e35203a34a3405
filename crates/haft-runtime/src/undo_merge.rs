//! The three-way merge of a file that has changed since the undone call: the call's change is reverted, later changes stay.

use std::ops::Range;

use haft_files::{hash, read_named};
use haft_ledger::Ledger;
use haft_policy::guarded;
use haft_tool::{FileNode, Node, RestoreStep};
use similar::{Algorithm, DiffTag, capture_diff_slices};

use crate::undo::UndoPreview;

/// Larger files are not merged.
const MAX_MERGED_BYTES: u64 = 1 << 20;

impl UndoPreview {
    /// The preview with merged files in place of conflicts that can be merged: text of which the call and later changes touched
    /// different lines.
    pub(crate) fn merged(mut self, ledger: &Ledger) -> Self {
        // If directories move, the paths of steps are not those of the files.
        if self.restore.steps.iter().any(|step| !matches!(step, RestoreStep::Set { .. })) {
            return self;
        }
        let conflicts = std::mem::take(&mut self.conflicts);
        for conflict in conflicts {
            // If others changed a file, too, it is not known which lines are the call's. A guarded file could come into effect
            // with lines of a later call.
            let is_merged = !conflict.contested && !conflict.is_unjudged && guarded(&conflict.path).is_none();
            let mut changes = self.restore.changes.iter_mut().filter(|_| is_merged);
            let change = changes.find(|change| change.path == conflict.path);
            let Some((change, merged)) = change.and_then(|change| {
                let merged =
                    merge_nodes(ledger, &conflict.expected, &change.before, &change.after, &change.path)?;
                Some((change, merged))
            }) else {
                self.conflicts.push(conflict);
                continue;
            };
            let (node, text) = merged;
            change.after = Node::File(node.clone());
            for step in &mut self.restore.steps {
                if let RestoreStep::Set { path, to, .. } = step
                    && *path == conflict.path
                {
                    *to = Node::File(node.clone());
                }
            }
            self.merged.insert(conflict.path, text);
        }
        self
    }
}

/// The file that is there `now` with the difference from `left` to `before` applied; `None` if that is not possible.
fn merge_nodes(
    ledger: &Ledger,
    left: &Node,
    now: &Node,
    before: &Node,
    path: &std::path::Path,
) -> Option<(FileNode, String)> {
    let (left, now, before) = (left.as_file()?, now.as_file()?, before.as_file()?);
    if now.linked.is_some() || [left, now, before].iter().any(|file| file.size > MAX_MERGED_BYTES) {
        return None;
    }
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    let current = read_named(path, MAX_MERGED_BYTES).ok().filter(|bytes| hash(bytes) == now.hash)?;
    let (base, restored) = (text(ledger.blob(&left.hash).ok()?)?, text(ledger.blob(&before.hash).ok()?)?);
    let merged = merge_texts(&base, &text(current)?, &restored)?;
    let mode = if now.mode == left.mode { before.mode } else { now.mode };
    let (merged_hash, size) = (hash(merged.as_bytes()), merged.len() as u64);
    Some((FileNode { hash: merged_hash, size, mode, modified: None, ..now.clone() }, merged))
}

/// A range of lines of the common version that one side has replaced.
struct MergeHunk<'a> {
    base: Range<usize>,
    lines: &'a [&'a str],
}

/// The text with the changes of both sides; `None` if they changed the same or neighbouring lines in different ways.
fn merge_texts(base: &str, ours: &str, theirs: &str) -> Option<String> {
    let [base, ours, theirs] =
        [base, ours, theirs].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
    let sides = [hunks(&base, &ours), hunks(&base, &theirs)];
    let mut next = [0, 0];
    let (mut merged, mut at) = (String::new(), 0);
    while let Some(start) = (0..2).filter_map(|side| Some(sides[side].get(next[side])?.base.start)).min() {
        // All hunks of both sides that touch each other.
        let (first, mut end) = (next, start);
        while let Some(side) =
            (0..2).find(|&side| sides[side].get(next[side]).is_some_and(|hunk| hunk.base.start <= end))
        {
            end = end.max(sides[side][next[side]].base.end);
            next[side] += 1;
        }
        let replaced = [0, 1].map(|side| {
            let mut text = String::new();
            let mut line = start;
            for hunk in &sides[side][first[side]..next[side]] {
                text.extend(base[line..hunk.base.start].iter().chain(hunk.lines).copied());
                line = hunk.base.end;
            }
            text.extend(base[line..end].iter().copied());
            text
        });
        merged.extend(base[at..start].iter().copied());
        let [ours, theirs] = replaced;
        merged.push_str(match (next[0] > first[0], next[1] > first[1]) {
            (true, true) if ours != theirs => return None,
            (true, _) => &ours,
            (false, _) => &theirs,
        });
        at = end;
    }
    merged.extend(base[at..].iter().copied());
    Some(merged)
}

fn hunks<'a>(base: &[&str], side: &'a [&'a str]) -> Vec<MergeHunk<'a>> {
    let changes = capture_diff_slices(Algorithm::Myers, base, side).into_iter();
    let changes = changes.filter(|change| change.tag() != DiffTag::Equal);
    changes.map(|change| MergeHunk { base: change.old_range(), lines: &side[change.new_range()] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_different_lines_are_merged() {
        let base = "a\nb\nc\nd\ne\n";
        let merge = |ours: &str, theirs: &str| merge_texts(base, ours, theirs);
        assert_eq!(merge("A\nb\nc\nd\ne\n", "a\nb\nc\nd\nE\n").as_deref(), Some("A\nb\nc\nd\nE\n"));
        assert_eq!(merge("a\nc\nd\ne\n", "a\nb\nc\nd\ne\nf").as_deref(), Some("a\nc\nd\ne\nf"));
        assert_eq!(merge("x\na\nb\nc\nd\ne\n", "a\nb\nc\n").as_deref(), Some("x\na\nb\nc\n"));
        assert_eq!(merge(base, "").as_deref(), Some(""));
        assert_eq!(merge("a\nX\nc\nd\ne\n", "a\nX\nc\nd\ne\n").as_deref(), Some("a\nX\nc\nd\ne\n"));
    }

    #[test]
    fn changes_of_the_same_or_neighbouring_lines_are_not() {
        let base = "a\nb\nc\n";
        assert_eq!(merge_texts(base, "a\nX\nc\n", "a\nY\nc\n"), None);
        assert_eq!(merge_texts(base, "a\nX\nc\n", "a\nb\nY\n"), None);
        assert_eq!(merge_texts(base, "a\nb\nc\nours\n", "a\nb\nc\ntheirs\n"), None);
    }
}
