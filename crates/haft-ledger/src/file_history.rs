//! The versions of one file that calls have left, also under the names it had before.

use std::path::{Path, PathBuf};

use haft_tool::{Change, Node, Receipt, ToolError, lies_in};

use crate::{Ledger, ReceiptFilter, ReceiptQuery};

/// What one call did to a file.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedVersion {
    /// The receipt of the call, without its changes.
    pub receipt: Receipt,
    /// The file before the call.
    pub before: Node,
    /// The file after the call.
    pub after: Node,
}

impl Ledger {
    /// What calls did to the file at `path`, oldest first. A file that was renamed is followed back to its former names.
    pub fn file_history(&self, path: &Path) -> Result<Vec<RecordedVersion>, ToolError> {
        let mut versions = Vec::new();
        let mut path = path.to_owned();
        let mut query = ReceiptQuery { limit: 1, only_changes: true, ..ReceiptQuery::default() };
        loop {
            // The directories above it, too: one of them may have been moved.
            let filter = ReceiptFilter { changed: Some(path.clone()), ..ReceiptFilter::default() };
            let Some(found) = self.search(&query, &filter)?.pop() else { break };
            let mut receipt = found.receipt;
            query.before = Some(receipt.id);
            let changes = std::mem::take(&mut receipt.changes);
            let former = former_path(&changes, &path);
            if let Some(change) = change_of(&changes, &path, former.as_deref()) {
                versions.push(RecordedVersion { receipt, ..change });
            }
            path = former.unwrap_or(path);
        }
        versions.reverse();
        Ok(versions)
    }
}

/// Where the file was before the call, if the call moved it.
fn former_path(changes: &[Change], path: &Path) -> Option<PathBuf> {
    let moved = changes.iter().filter_map(|change| Some((&change.path, change.moved_to.as_deref()?)));
    let innermost = moved.filter(|(_, to)| lies_in(path, to)).max_by_key(|(_, to)| to.as_os_str().len());
    if let Some((from, to)) = innermost {
        let rest = path.strip_prefix(to).unwrap_or(Path::new(""));
        return Some(if rest.as_os_str().is_empty() { from.clone() } else { from.join(rest) });
    }
    // A renamed file is one that is gone and one with the same bytes that is new.
    let created = changes.iter().find(|change| change.path == path && change.before == Node::Absent)?;
    let hash = &created.after.as_file().filter(|file| file.size > 0)?.hash;
    let is_source = |change: &&Change| {
        change.after == Node::Absent && change.before.as_file().is_some_and(|file| file.hash == *hash)
    };
    changes.iter().find(is_source).map(|change| change.path.clone())
}

/// What the call did to the file, which was at `former` before it if that is known.
fn change_of(changes: &[Change], path: &Path, former: Option<&Path>) -> Option<RecordedVersion> {
    let at = |path: &Path| {
        changes.iter().filter(|change| change.moved_to.is_none()).find(move |change| change.path == path)
    };
    let version = |before: &Node, after: &Node| RecordedVersion {
        receipt: Receipt::default(),
        before: before.clone(),
        after: after.clone(),
    };
    match (at(path), former.and_then(at)) {
        (Some(created), Some(source)) if created.before == Node::Absent => {
            Some(version(&source.before, &created.after))
        }
        (_, Some(inside)) if inside.after != Node::Absent => Some(version(&inside.before, &inside.after)),
        (Some(own), _) => Some(version(&own.before, &own.after)),
        (None, _) => None,
    }
}
