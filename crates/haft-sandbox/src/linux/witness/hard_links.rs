//! Finds changes of a file with several names that the command made under a name which it then removed: they are still visible
//! under the other names, which the command never used.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use haft_files::{find_names, id_of};
use haft_tool::{Change, CommandChanges, FileId, Node};

use crate::snapshot::read_node;

/// A file with several names, as it was before the command.
#[derive(Debug)]
pub(super) struct LinkedFile {
    pub(super) before: Node,
    pub(super) link_count: u64,
}

/// The changes of files in `changed` that `changes` does not show under any name, each under one name; and a name of each file
/// whose other names cannot be found.
pub(super) fn hidden_changes(
    command: &CommandChanges,
    changes: &[Change],
    changed: &HashMap<FileId, LinkedFile>,
    roots: &[PathBuf],
) -> (Vec<Change>, Vec<PathBuf>) {
    let mut names: HashMap<FileId, Vec<&Path>> = HashMap::new();
    for change in changes {
        if let Some(file) = change.before.linked().filter(|file| changed.contains_key(file)) {
            names.entry(file).or_default().push(&change.path);
        }
    }
    let is_there = |file: FileId, name: &Path| {
        command.current_path(name).is_some_and(|current| id_of(&current) == Some(file))
    };
    names.retain(|file, names| {
        let all_used = names.len() as u64 >= changed[file].link_count;
        !all_used && !names.iter().any(|name| is_there(*file, name))
    });
    if names.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let current = |change: &Change| match change.before {
        Node::Absent => Some(change.path.clone()),
        _ => command.current_path(&change.path),
    };
    let listed: Vec<PathBuf> = changes.iter().filter_map(current).collect();
    let listed: HashSet<&Path> = listed.iter().map(PathBuf::as_path).collect();
    let roots = roots.iter().map(PathBuf::as_path);
    let found = find_names(roots, names.keys().copied().collect(), &listed);
    let (mut hidden, mut lost) = (Vec::new(), Vec::new());
    for (file, names) in names {
        let Some((path, after)) = found.get(&file).and_then(|path| Some((path, read_node(path)?))) else {
            lost.extend(names.into_iter().min().map(Path::to_owned));
            continue;
        };
        let before = &changed[&file].before;
        if !before.fully_same_as(&after) {
            hidden.push(Change::new(command.listed_path(path), before.clone(), after));
        }
    }
    hidden.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    (hidden, lost)
}
