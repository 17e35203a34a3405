//! Finds what an undo would bring into effect although a call wrote it where it was not judged. An example is a directory that
//! gets back the name of git's hooks after another call has put a program into it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_ledger::undo::UndoConflict;
use haft_ledger::{Ledger, WorkspaceView};
use haft_policy::guarded;
use haft_tool::{Change, ErrorKind, Node, Record, RestorePlan, ToolError};

use crate::commands::FilesInEffect;

/// A directory with more entries is not moved back to a guarded place.
const MAX_MOVED_ENTRIES: usize = 20_000;

/// The files that programs outside the sandbox would run or read after the undo, and that are not the user's.
pub(crate) fn unjudged_files(
    restore: &RestorePlan,
    ledger: &Ledger,
    view: &mut dyn WorkspaceView,
) -> Result<Vec<UndoConflict>, ToolError> {
    let mut conflicts = Vec::new();
    for change in &restore.changes {
        match &change.moved_to {
            Some(to) => {
                for (path, place) in guarded_below(&change.path, to, view)? {
                    // A path with a step of its own is judged by that.
                    let is_set = |other: &Change| other.path == path || other.path == place;
                    let now = view.observe(&path)?;
                    // The target of a link, and what is in a directory that is too large, may not be the user's.
                    let is_unknown = matches!(now, Node::Link { .. } | Node::Dir { .. });
                    if !restore.changes.iter().any(is_set) && (is_unknown || is_from_call(&now, ledger)?) {
                        conflicts.push(conflict(path, now));
                    }
                }
            }
            None if guarded(&change.path).is_some() && is_from_call(&change.after, ledger)? => {
                conflicts.push(conflict(change.path.clone(), change.before.clone()));
            }
            None => {}
        }
    }
    Ok(conflicts)
}

/// What becomes guarded if the directory at `from` is moved to `to`, each by its path now and after the move.
fn guarded_below(
    from: &Path,
    to: &Path,
    view: &mut dyn WorkspaceView,
) -> Result<Vec<(PathBuf, PathBuf)>, ToolError> {
    let (mut todo, mut found, mut entries) = (vec![PathBuf::new()], Vec::new(), 0);
    while let Some(directory) = todo.pop() {
        for name in view.entry_names(&from.join(&directory))? {
            entries += 1;
            if entries > MAX_MOVED_ENTRIES {
                return Ok(if guarded(to).is_some() {
                    vec![(from.to_owned(), to.to_owned())]
                } else {
                    found
                });
            }
            let below = directory.join(name);
            let (now, then) = (from.join(&below), to.join(&below));
            if matches!(view.observe(&now)?, Node::Dir { .. }) {
                todo.push(below);
            } else if guarded(&now).is_none() && guarded(&then).is_some() {
                found.push((now, then));
            }
        }
    }
    Ok(found)
}

/// Whether a call left this content, and only where it had no effect. An empty file runs nothing.
fn is_from_call(node: &Node, ledger: &Ledger) -> Result<bool, ToolError> {
    match node {
        Node::File(file) if file.size > 0 => {
            ledger.is_from_call(&file.hash, &|other, _| guarded(other).is_some())
        }
        _ => Ok(false),
    }
}

/// Called before an undo; the returned function judges afterwards what links and git configurations lead to that they did not
/// lead to before.
pub(crate) fn judge_restore(
    roots: &[PathBuf],
    record: Arc<dyn Record>,
) -> Box<dyn FnOnce() -> Result<(), ToolError>> {
    let before = FilesInEffect::find(roots);
    Box::new(move || match before.newly_unjudged(record.as_ref())? {
        None => Ok(()),
        Some(path) => {
            let why = format!(
                "programs outside the sandbox would use {}, which a call wrote, so nothing was undone. Undo that call, too.",
                path.display()
            );
            Err(ToolError::new(ErrorKind::Conflict, why))
        }
    })
}

fn conflict(path: PathBuf, found: Node) -> UndoConflict {
    UndoConflict {
        path,
        expected: found.clone(),
        found,
        blocks_move: false,
        contested: false,
        is_unjudged: true,
    }
}
