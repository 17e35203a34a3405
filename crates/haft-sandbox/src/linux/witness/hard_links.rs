//! Files with several names that a command changed under a name which it then removed: the change is still visible under
//! the other names, which the command never used.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use haft_files::{find_names, id_of};
use haft_tool::{Change, FileId, Node};

use crate::snapshot::read_node;

/// A file with several names, as it was before the command.
#[derive(Debug)]
pub(super) struct LinkedFile {
    pub(super) before: Node,
    pub(super) link_count: u64,
}

/// The changes of files in `changed` that no name in `changes` shows, each under one name; and names of files whose
/// other names cannot be found.
pub(super) fn hidden_changes(
    changes: &[Change],
    changed: &HashMap<FileId, LinkedFile>,
    roots: &[PathBuf],
) -> (Vec<Change>, Vec<PathBuf>) {
    let mut names = used_names(changes, changed);
    names.retain(|file, names| {
        let all_used = names.len() as u64 >= changed[file].link_count;
        !all_used && !names.values().any(|name| id_of(name) == Some(*file))
    });
    if names.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let listed: HashSet<&Path> = changes.iter().map(|change| &*change.path).collect();
    let roots = roots.iter().map(PathBuf::as_path);
    let found = find_names(roots, names.keys().copied().collect(), &listed);
    let (mut hidden, mut lost) = (Vec::new(), Vec::new());
    for (file, names) in names {
        let Some((path, after)) = found.get(&file).and_then(|path| Some((path, read_node(path)?))) else {
            lost.extend(names.into_keys().min());
            continue;
        };
        let before = &changed[&file].before;
        if !before.fully_same_as(&after) {
            hidden.push(Change::new(path, before.clone(), after));
        }
    }
    hidden.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    (hidden, lost)
}

/// The names of the files that the command used: the original name of each, with its last one.
fn used_names<'a>(
    changes: &'a [Change],
    changed: &HashMap<FileId, LinkedFile>,
) -> HashMap<FileId, HashMap<PathBuf, &'a Path>> {
    let mut names: HashMap<FileId, HashMap<PathBuf, &Path>> = HashMap::new();
    let mut moves: Vec<(&Path, &Path)> = Vec::new();
    for change in changes {
        if let Some(to) = &change.moved_to {
            moves.push((&change.path, to));
        }
        if let Some(file) = change.before.linked().filter(|file| changed.contains_key(file)) {
            let undo_move = |path: PathBuf, (from, to): &(&Path, &Path)| match path.strip_prefix(to) {
                Ok(rest) => from.join(rest),
                Err(_) => path,
            };
            let original = moves.iter().rev().fold(change.path.clone(), undo_move);
            names.entry(file).or_default().insert(original, &change.path);
        }
    }
    names
}
