//! Files that a command changed under a name which then went away: what was written still stands under their other
//! names, which the command never said.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use haft_tool::{Change, FileId, Node};

use haft_files::{find_names, id_of};

/// A file with several names, before the command.
#[derive(Debug)]
pub(super) struct Twin {
    pub(super) before: Node,
    pub(super) names: u64,
}

/// What became of files that were changed, where none of the names in `changes` tells. Gives those changes, each under
/// one name, and names whose others cannot be found.
pub(super) fn unnamed(
    changes: &[Change],
    changed: &HashMap<FileId, Twin>,
    roots: &[PathBuf],
) -> (Vec<Change>, Vec<PathBuf>) {
    let mut names = names(changes, changed);
    names.retain(|file, names| {
        let all = names.len() as u64 >= changed[file].names;
        !all && !names.values().any(|name| id_of(name) == Some(*file))
    });
    if names.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let told: HashSet<&Path> = changes.iter().map(|change| &*change.path).collect();
    let roots = roots.iter().map(PathBuf::as_path);
    let found = find_names(roots, names.keys().copied().collect(), &told);
    let (mut more, mut lost) = (Vec::new(), Vec::new());
    for (file, names) in names {
        let Some((path, after)) = found.get(&file).and_then(|path| Some((path, super::look_at(path)?)))
        else {
            lost.extend(names.into_keys().min());
            continue;
        };
        let before = &changed[&file].before;
        if !before.fully_same_as(&after) {
            more.push(Change::new(path, before.clone(), after));
        }
    }
    more.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    (more, lost)
}

/// The names that the command said of the files: as they were before it, with what each was called last.
fn names<'a>(
    changes: &'a [Change],
    changed: &HashMap<FileId, Twin>,
) -> HashMap<FileId, HashMap<PathBuf, &'a Path>> {
    let mut names: HashMap<FileId, HashMap<PathBuf, &Path>> = HashMap::new();
    let mut moves: Vec<(&Path, &Path)> = Vec::new();
    for change in changes {
        if let Some(to) = &change.moved_to {
            moves.push((&change.path, to));
        }
        if let Some(file) = change.before.linked().filter(|file| changed.contains_key(file)) {
            let back = |path: PathBuf, (from, to): &(&Path, &Path)| match path.strip_prefix(to) {
                Ok(rest) => from.join(rest),
                Err(_) => path,
            };
            let first = moves.iter().rev().fold(change.path.clone(), back);
            names.entry(file).or_default().insert(first, &change.path);
        }
    }
    names
}
