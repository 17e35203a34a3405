//! What an undo would change, the most important first: files in conflict, files of the user that come back or get back
//! their content, and last the new files that go, counted by directory.

use std::collections::HashMap;
use std::path::Path;

use haft_files::read_named;
use haft_ledger::Ledger;
use haft_ledger::undo::UndoConflict;
use haft_runtime::{MAX_DIFF_FILE_BYTES, Runtime, UndoPreview};
use haft_tool::{Change, ChangeKind, Node, ToolError};

use super::diff::{FileDiff, diff, line, summary};
use super::screen::{self, BAD, FAINT, NAME, NOTE, styled};
use super::show::{MAX_DIFF_FILES, MAX_LISTED_FILES};

/// More new files are counted by directory.
const MAX_NAMED_REMOVALS: usize = 3;

pub(super) fn show(runtime: &Runtime, preview: &UndoPreview, force: bool) -> Result<(), ToolError> {
    let printer =
        PreviewPrinter { ledger: runtime.ledger()?, workspace: runtime.workspace(), preview, force };
    let conflicts: HashMap<&Path, &UndoConflict> =
        preview.conflicts.iter().map(|conflict| (conflict.path.as_path(), conflict)).collect();
    let changes = preview.restore.changes.iter();
    let (disputed, rest): (Vec<_>, Vec<_>) =
        changes.partition(|change| conflicts.contains_key(&*change.path));
    let (removed, restored): (Vec<_>, Vec<_>) =
        rest.into_iter().partition(|change| change.moved_to.is_none() && change.after == Node::Absent);
    let diffs = disputed.len() + restored.len() <= MAX_LISTED_FILES;
    for change in disputed {
        screen::out(&printer.conflict(change, conflicts[&*change.path]));
        if diffs {
            screen::out(&printer.change(change, true)?);
        }
    }
    // Conflicts that are not about a path that changes, such as what is in the way of a directory.
    for conflict in &preview.conflicts {
        if !preview.restore.changes.iter().any(|change| change.path == conflict.path) {
            let none = Change::new(&conflict.path, conflict.found.clone(), conflict.found.clone());
            screen::out(&printer.conflict(&none, conflict));
        }
    }
    printer.restored(&restored)?;
    printer.removed(&removed);
    for (id, why) in &preview.blocked {
        screen::note(&format!("{}: call {id} cannot be undone: {why}", styled(NOTE, "note")));
    }
    Ok(())
}

struct PreviewPrinter<'a> {
    ledger: Ledger,
    workspace: &'a Path,
    preview: &'a UndoPreview,
    force: bool,
}

impl PreviewPrinter<'_> {
    fn short<'p>(&self, path: &'p Path) -> &'p Path {
        path.strip_prefix(self.workspace).unwrap_or(path)
    }

    fn named(&self, path: &Path) -> String {
        screen::escape(&self.short(path).display().to_string())
    }

    /// Which file has changed since, and by whom.
    fn conflict(&self, change: &Change, conflict: &UndoConflict) -> String {
        let mark = if self.force { styled(NOTE, "overwrites") } else { styled(BAD, "conflict") };
        let by = match self.preview.changed_by.get(&conflict.path) {
            Some(receipt) => format!("by call {} ({})", receipt.id, screen::escape(&receipt.tool)),
            None => "outside Haft".to_owned(),
        };
        let (left, found) = (conflict.expected.noun(), conflict.found.noun());
        let states =
            if left == found { String::new() } else { format!(" (it left {left}, now there is {found})") };
        let path = self.named(&change.path);
        if conflict.is_unjudged {
            return format!(
                "{mark}: a call wrote {path} where it had no effect; after the undo, programs would run or read it\n"
            );
        }
        if conflict.contested {
            return format!(
                "{mark}: {path} was changed while the call ran, {by}: its state now may not be the call's\n"
            );
        }
        format!("{mark}: {path} has changed since the call, {by}{states}\n")
    }

    fn restored(&self, changes: &[&Change]) -> Result<(), ToolError> {
        for change in changes {
            if let Some(to) = &change.moved_to {
                let (from, to) = (styled(NAME, &self.named(&change.path)), styled(NAME, &self.named(to)));
                screen::out(&format!("{} {from} to {to}\n", styled(NOTE, "move back")));
            }
        }
        let mut files: Vec<&Change> =
            changes.iter().copied().filter(|change| change.moved_to.is_none()).collect();
        // What was deleted comes first, then what was overwritten.
        files.sort_by_key(|change| (change.before != Node::Absent, &change.path));
        if files.len() > MAX_LISTED_FILES {
            let listed = files.iter().map(|change| (self.short(&change.path), kind(change)));
            screen::out(&summary(listed));
            return Ok(());
        }
        for change in &files {
            screen::out(&self.change(change, files.len() <= MAX_DIFF_FILES)?);
        }
        Ok(())
    }

    /// What happens to one path, with or without the lines.
    fn change(&self, change: &Change, with_lines: bool) -> Result<String, ToolError> {
        if !with_lines {
            return Ok(line(self.short(&change.path), &kind(change)));
        }
        let now = change.before.as_file().and_then(|_| read_named(&change.path, MAX_DIFF_FILE_BYTES).ok());
        let then = if let Some(text) = self.preview.merged.get(&change.path) {
            Some(text.clone().into_bytes())
        } else {
            let file = change.after.as_file().filter(|file| file.size <= MAX_DIFF_FILE_BYTES);
            file.map(|file| self.ledger.blob(&file.hash)).transpose()?
        };
        Ok(diff(&FileDiff {
            path: &self.short(&change.path).display().to_string(),
            from: (&change.before, now.as_deref()),
            to: (&change.after, then.as_deref()),
        }))
    }

    /// New files, which are removed.
    fn removed(&self, changes: &[&Change]) {
        if changes.len() <= MAX_NAMED_REMOVALS {
            for change in changes {
                let what = if matches!(change.before, Node::Dir(_)) { "directory" } else { "file" };
                let new = styled(FAINT, &format!("(new {what})"));
                let name = styled(NAME, &self.named(&change.path));
                screen::out(&format!("{} {name} {new}\n", styled(BAD, "remove")));
            }
            return;
        }
        let files = changes.iter().filter(|change| !matches!(change.before, Node::Dir(_))).count() as u64;
        let directories = changes.len() as u64 - files;
        let counts: Vec<String> =
            [(files, "new file", "new files"), (directories, "new directory", "new directories")]
                .into_iter()
                .filter(|(count, _, _)| *count > 0)
                .map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }))
                .collect();
        screen::out(&format!("{} {}:\n", styled(BAD, "remove"), counts.join(" and ")));
        let listed = changes.iter().map(|change| (self.short(&change.path), kind(change)));
        for line in summary(listed).lines() {
            screen::out(&format!("  {line}\n"));
        }
    }
}

fn kind(change: &Change) -> ChangeKind {
    ChangeKind::between(&change.before, &change.after)
}
