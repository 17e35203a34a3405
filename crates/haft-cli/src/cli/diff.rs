//! A change as a unified diff, coloured on a terminal.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use haft_tool::{ChangeKind, Node, Receipt};
use similar::{ChangeTag, TextDiff};

use super::screen::{self, BAD, FAINT, GOOD, NAME, NOTE, styled};

/// Larger files are compared by size only.
const MAX_COMPARED_BYTES: usize = 1 << 20;

/// One line for one path.
pub(super) fn line(path: &Path, kind: &ChangeKind) -> String {
    let style = match kind {
        ChangeKind::Created => GOOD,
        ChangeKind::Deleted => BAD,
        _ => NOTE,
    };
    let more = match kind {
        ChangeKind::Mode(from, to) => format!(" {from:o} to {to:o}"),
        ChangeKind::Moved(to) => format!(" to {to}"),
        _ => String::new(),
    };
    let path = path.display().to_string();
    let word = styled(style, &format!("{:<8}", kind.word()));
    format!("{word} {}{}\n", styled(NAME, &screen::escape(&path)), screen::escape(&more))
}

/// Counts of changes by top-level directory.
pub(super) fn summary<'a>(changes: impl Iterator<Item = (&'a Path, ChangeKind)>) -> String {
    let mut folders: BTreeMap<String, BTreeMap<&'static str, usize>> = BTreeMap::new();
    for (path, kind) in changes {
        let mut names = path.components();
        let first = names.next().map(|name| name.as_os_str().to_string_lossy().into_owned());
        // Paths outside the workspace are counted by directory, files in its root by a dot.
        let folder = match (path.is_absolute(), names.next()) {
            (true, _) => path.parent().unwrap_or(path).display().to_string(),
            (false, Some(_)) => first.unwrap_or_default() + "/",
            (false, None) => "./".to_owned(),
        };
        *folders.entry(folder).or_default().entry(kind.word()).or_default() += 1;
    }
    let mut text = String::new();
    for (folder, words) in folders {
        let counts: Vec<_> = words.iter().map(|(word, count)| format!("{count} {word}")).collect();
        let _ = writeln!(text, "{}  {}", styled(NAME, &screen::escape(&folder)), counts.join(", "));
    }
    text
}

/// One line for each change of a receipt; more than `max` are counted.
pub(super) fn change_lines(receipt: &Receipt, max: usize, indent: &str) -> String {
    let mut text = String::new();
    for change in receipt.changes.iter().take(max) {
        let path = change.path.strip_prefix(&receipt.workspace).unwrap_or(&change.path);
        let _ = write!(text, "{indent}{}", line(path, &ChangeKind::of(change)));
    }
    if receipt.changes.len() > max {
        let more = receipt.changes.len() - max;
        let _ = writeln!(text, "{indent}{}", styled(FAINT, &format!("and {more} more")));
    }
    text
}

/// How many lines were added and removed; `None` if the contents are not known or no text.
pub(super) fn line_counts(sides: &FileDiff<'_>) -> Option<(usize, usize)> {
    let (a, b) = both_texts(sides)?;
    let diff = TextDiff::from_lines(&a, &b);
    let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
    Some((count(ChangeTag::Insert), count(ChangeTag::Delete)))
}

/// A path with its old and new state; content where it is known.
pub(super) struct FileDiff<'a> {
    pub(super) path: &'a str,
    pub(super) from: (&'a Node, Option<&'a [u8]>),
    pub(super) to: (&'a Node, Option<&'a [u8]>),
}

/// A heading and, for text files, a unified diff.
pub(super) fn diff(sides: &FileDiff<'_>) -> String {
    let (from, to) = (sides.from.0, sides.to.0);
    let path = styled(NAME, &screen::escape(sides.path));
    let mut text = match (from, to) {
        (Node::Absent, _) => format!("{} {path}", styled(GOOD, "create")),
        (_, Node::Absent) => format!("{} {path}", styled(BAD, "remove")),
        _ => format!("{} {path}", styled(NOTE, "change")),
    };
    match (from, to) {
        (Node::File(a), Node::File(b)) if a.mode != b.mode => {
            let _ = write!(text, " (mode {:o} to {:o})", a.mode, b.mode);
        }
        (Node::Dir { .. }, Node::Absent) | (Node::Absent, Node::Dir { .. }) => text.push_str(" (directory)"),
        (Node::Dir(a), Node::Dir(b)) if a.mode != b.mode => {
            let _ = write!(text, " (directory, mode {:o} to {:o})", a.mode, b.mode);
        }
        (Node::Dir(_), Node::Dir(_)) => text.push_str(" (owner or attributes of the directory)"),
        (_, Node::Link { target, .. }) => {
            let _ = write!(text, " (link to {})", screen::escape(&target.display().to_string()));
        }
        _ => {}
    }
    text.push('\n');
    if from.as_file().is_some() || to.as_file().is_some() {
        text.push_str(&lines(sides));
    }
    text
}

fn lines(sides: &FileDiff<'_>) -> String {
    let size = |node: &Node| node.as_file().map_or(0, |file| file.size);
    let sizes = || {
        let (a, b) = (screen::bytes(size(sides.from.0)), screen::bytes(size(sides.to.0)));
        styled(FAINT, &format!("  {a} to {b}\n"))
    };
    match both_texts(sides) {
        Some((a, b)) => texts(&a, &b),
        None => sizes(),
    }
}

/// Both contents, if they are known, text and not too long.
fn both_texts(sides: &FileDiff<'_>) -> Option<(String, String)> {
    let text = |(node, bytes): (&Node, Option<&[u8]>)| {
        let bytes = if node.as_file().is_some() { bytes? } else { &[] };
        let text = std::str::from_utf8(bytes).ok()?;
        (text.len() <= MAX_COMPARED_BYTES && !text.contains('\0')).then(|| text.to_owned())
    };
    Some((text(sides.from)?, text(sides.to)?))
}

/// A unified diff of two texts.
pub(super) fn texts(a: &str, b: &str) -> String {
    let diff = TextDiff::from_lines(a, b);
    // Carriage returns are shown only where the line endings change.
    let returns = |text: &str| text.contains("\r\n");
    let end: &[char] =
        if a.is_empty() || b.is_empty() || returns(a) == returns(b) { &['\n', '\r'] } else { &['\n'] };
    let mut text = String::new();
    for hunk in diff.unified_diff().context_radius(3).iter_hunks() {
        let _ = writeln!(text, "{}", styled(FAINT, &hunk.header().to_string()));
        for change in hunk.iter_changes() {
            let line = screen::sanitize(change.value().trim_end_matches(end)).into_owned();
            let line = match change.tag() {
                ChangeTag::Equal => format!(" {line}"),
                ChangeTag::Delete => styled(BAD, &format!("-{line}")),
                ChangeTag::Insert => styled(GOOD, &format!("+{line}")),
            };
            let _ = writeln!(text, "{line}");
        }
    }
    text
}
