//! What several calls changed together: each path's state before the first of them and after the last.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use haft_tool::{Change, Node, Receipt, lies_in};

/// What happened to one path over several calls.
#[derive(Debug, Clone, PartialEq)]
pub struct CumulativeChange {
    /// The path after the last call.
    pub path: PathBuf,
    /// The path before the first call, if a directory above it was moved meanwhile.
    pub moved_from: Option<PathBuf>,
    /// The state before the first call.
    pub before: Node,
    /// The state after the last call.
    pub after: Node,
}

/// The path before the first call, and the states before and after.
struct TrackedPath {
    origin: PathBuf,
    before: Node,
    after: Node,
}

/// What the calls changed together, by path. Paths that are as before in the end are left out.
pub fn cumulative_changes(receipts: &[Receipt]) -> Vec<CumulativeChange> {
    let mut receipts: Vec<&Receipt> = receipts.iter().collect();
    receipts.sort_by_key(|receipt| receipt.id);
    let mut paths = BTreeMap::new();
    for receipt in receipts {
        paths = apply(paths, &receipt.changes);
    }
    let changed = paths
        .into_iter()
        .filter(|(path, tracked)| *path != tracked.origin || !tracked.before.fully_same_as(&tracked.after));
    changed
        .map(|(path, TrackedPath { origin, before, after })| {
            let moved_from = (origin != path).then_some(origin);
            CumulativeChange { path, moved_from, before, after }
        })
        .collect()
}

/// The paths after one more call. What existed before it is listed under its path at that time, what it created under its
/// path afterwards.
fn apply(mut paths: BTreeMap<PathBuf, TrackedPath>, changes: &[Change]) -> BTreeMap<PathBuf, TrackedPath> {
    let moves: BTreeMap<&Path, &Path> =
        changes.iter().filter_map(|change| Some((&*change.path, change.moved_to.as_deref()?))).collect();
    let track = |paths: &mut BTreeMap<PathBuf, TrackedPath>, path: &Path, before: &Node, after: &Node| {
        let new = || TrackedPath { origin: path.to_owned(), before: before.clone(), after: Node::Absent };
        paths.entry(path.to_owned()).or_insert_with(new).after = after.clone();
    };
    let is_created = |change: &&Change| change.before == Node::Absent && !moves.is_empty();
    for change in changes.iter().filter(|change| change.moved_to.is_none() && !is_created(change)) {
        track(&mut paths, &change.path, &change.before, &change.after);
    }
    if moves.is_empty() {
        return paths;
    }
    for change in changes.iter().filter(|change| change.moved_to.is_some()) {
        // The directory itself; a change of its mode has been listed besides.
        if !paths.contains_key(&change.path) {
            track(&mut paths, &change.path, &change.before, &change.before);
        }
    }
    let mut paths: BTreeMap<PathBuf, TrackedPath> =
        paths.into_iter().map(|(path, tracked)| (moved(&moves, path), tracked)).collect();
    for change in changes.iter().filter(|change| change.moved_to.is_none()).filter(is_created) {
        track(&mut paths, &change.path, &change.before, &change.after);
    }
    paths
}

/// The path after the moves: that of the innermost moved directory counts.
fn moved(moves: &BTreeMap<&Path, &Path>, path: PathBuf) -> PathBuf {
    let innermost = path.ancestors().find_map(|above| Some((above, moves.get(above)?)));
    match innermost {
        Some((from, to)) if lies_in(&path, from) => match path.strip_prefix(from) {
            Ok(rest) if !rest.as_os_str().is_empty() => to.join(rest),
            _ => to.to_path_buf(),
        },
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt(id: i64, changes: Vec<Change>) -> Receipt {
        let mut receipt = Receipt::new("c", "Bash", "/w", 0);
        (receipt.id, receipt.changes) = (id, changes);
        receipt
    }

    fn link(target: &str) -> Node {
        Node::link(target)
    }

    fn listed(receipts: &[Receipt]) -> Vec<(String, Option<String>, Node, Node)> {
        let text = |path: PathBuf| path.display().to_string();
        cumulative_changes(receipts)
            .into_iter()
            .map(|change| (text(change.path), change.moved_from.map(text), change.before, change.after))
            .collect()
    }

    #[test]
    fn first_and_last_states_count_in_any_order() {
        let first = receipt(1, vec![Change::new("/w/a", link("1"), link("2"))]);
        let second = receipt(2, vec![Change::new("/w/a", link("2"), link("3"))]);
        let expected = vec![("/w/a".to_owned(), None, link("1"), link("3"))];
        assert_eq!(listed(&[second.clone(), first.clone()]), expected);
        let back = receipt(3, vec![Change::new("/w/a", link("3"), link("1"))]);
        assert_eq!(listed(&[first, second, back]), []);
    }

    #[test]
    fn created_and_deleted_is_nothing() {
        let made = receipt(1, vec![Change::new("/w/a", Node::Absent, link("1"))]);
        let gone = receipt(2, vec![Change::new("/w/a", link("1"), Node::Absent)]);
        assert_eq!(listed(&[made, gone]), []);
    }

    #[test]
    fn moved_directory_takes_its_entries_along() {
        let dir = Node::directory(0o755);
        let edited = receipt(1, vec![Change::new("/w/a/f", link("1"), link("2"))]);
        let moved = receipt(
            2,
            vec![
                Change { moved_to: Some("/w/b".into()), ..Change::new("/w/a", dir.clone(), Node::Absent) },
                Change::new("/w/b/new", Node::Absent, link("n")),
            ],
        );
        let again = receipt(3, vec![Change::new("/w/b/f", link("2"), link("3"))]);
        let expected = vec![
            ("/w/b".to_owned(), Some("/w/a".to_owned()), dir.clone(), dir),
            ("/w/b/f".to_owned(), Some("/w/a/f".to_owned()), link("1"), link("3")),
            ("/w/b/new".to_owned(), None, Node::Absent, link("n")),
        ];
        assert_eq!(listed(&[edited, moved, again]), expected);
    }
}
