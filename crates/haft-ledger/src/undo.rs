//! Planning an undo. Pure: it reads through `observe` and changes nothing.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use haft_tool::{Change, Node, Receipt, ReceiptState, ToolError};

use crate::path_history::{DirectoryMove, PathHistory};

/// The permissions that the owner of a directory needs to change its entries.
const OWNER_WRITE_SEARCH: u32 = 0o300;

/// How to undo calls, and what prevents it.
#[derive(Debug, Clone, PartialEq)]
pub struct UndoPlan {
    /// The steps, in order. Paths with a conflict are included, so that a forced undo only has to perform them.
    pub steps: Vec<UndoStep>,
    /// The paths that are not as the calls left them, or whose history has a gap.
    pub conflicts: Vec<UndoConflict>,
    /// The calls that cannot be undone, or not completely, and why.
    pub blocked: Vec<(i64, String)>,
}

/// One step of an undo.
#[derive(Debug, Clone, PartialEq)]
pub enum UndoStep {
    /// Restores the earlier state of a path.
    Restore {
        /// The absolute path.
        path: PathBuf,
        /// Its state before the step.
        expect: Node,
        /// Its state after the step.
        to: Node,
    },
    /// Moves a directory with everything in it to its earlier path.
    MoveBack {
        /// Its current path.
        from: PathBuf,
        /// Its earlier path.
        to: PathBuf,
    },
}

impl UndoStep {
    /// The path that the step restores.
    pub fn path(&self) -> &Path {
        match self {
            Self::Restore { path, .. } => path,
            Self::MoveBack { to, .. } => to,
        }
    }
}

/// A path whose state differs from the record.
#[derive(Debug, Clone, PartialEq)]
pub struct UndoConflict {
    /// The absolute path.
    pub path: PathBuf,
    /// The state that a call left.
    pub expected: Node,
    /// The state found instead: now, or by the next call.
    pub found: Node,
    /// Whether it prevents moving a directory back, which cannot be forced.
    pub blocks_move: bool,
}

/// Plans how to restore every path that the receipts changed to its state before the oldest of them.
///
/// The receipts may be in any order. `observe` returns the current state of a path, without following links.
///
/// Moved directories divide the history into segments, in each of which a path names one place. The segments are undone
/// from the last to the first, and between two of them the directory is moved back.
pub fn plan(
    receipts: &[Receipt],
    observe: &mut dyn FnMut(&Path) -> Result<Node, ToolError>,
) -> Result<UndoPlan, ToolError> {
    let mut receipts: Vec<_> = receipts.iter().collect();
    receipts.sort_by_key(|receipt| receipt.id);
    let (segments, moves) = divide(&receipts);
    let known_moves = moves.iter().map(|(_, moved)| Some(moved.clone())).collect();
    let mut history = PathHistory::new(starts(&segments), known_moves);
    let mut blocked: Vec<_> =
        receipts.iter().filter_map(|receipt| Some((receipt.id, obstacle(receipt)?))).collect();
    let (mut conflicts, mut steps) = (Vec::new(), Vec::new());
    for (at, histories) in segments.iter().enumerate().rev() {
        let mut restores = Vec::new();
        for (path, changes) in histories {
            let [(oldest, Change { before: to, .. }), ..] = changes.as_slice() else { continue };
            let now = history.at_end(at, path, observe)?;
            let to = if *to == Node::Special && was_created(path, &segments[..at], &moves) {
                // It is removed now: it could not be recreated only to be removed by an earlier segment.
                history.set_start(at, path, Node::Absent);
                &Node::Absent
            } else {
                to
            };
            if is_restored(&now, to) {
                // Its permissions may have to be widened for a moment to change its entries.
                if matches!(now, Node::Dir { .. }) {
                    restores.push(PathRestore { path, expect: now, to });
                }
                continue;
            }
            if *to == Node::Special {
                let why = format!("{} was a special file, which cannot be recreated", path.display());
                blocked.push((oldest.id, why));
                history.set_start(at, path, now);
                continue;
            }
            conflicts.extend(find_conflict(path, changes, &now));
            restores.push(PathRestore { path, expect: now, to });
        }
        steps.extend(in_order(&restores));
        let Some((before, moved)) = at.checked_sub(1).and_then(|earlier| moves.get(earlier)) else {
            continue;
        };
        let (from, to) =
            (history.at_start(at, &moved.from, observe)?, history.at_start(at, &moved.to, observe)?);
        if matches!((&from, &to), (Node::Dir { .. }, Node::Absent)) {
            history.set_move_undone(at - 1);
            continue;
        }
        let conflict = |path: &Path, expected: Node, found: Node| UndoConflict {
            path: path.to_owned(),
            expected,
            found,
            blocks_move: true,
        };
        if !matches!(to, Node::Dir { .. }) {
            conflicts.push(conflict(&moved.to, (*before).clone(), to));
        }
        if from != Node::Absent {
            conflicts.push(conflict(&moved.from, Node::Absent, from));
        }
        steps.push(UndoStep::MoveBack { from: moved.to.clone(), to: moved.from.clone() });
    }
    blocked.sort_by_key(|(id, _)| Reverse(*id));
    Ok(UndoPlan { steps, conflicts, blocked })
}

/// Whether what is at `path` after these segments was created in one of them.
fn was_created(path: &Path, segments: &[Histories<'_>], moves: &[(&Node, DirectoryMove)]) -> bool {
    let mut path = path.to_owned();
    for (histories, (_, moved)) in segments.iter().zip(moves).rev() {
        let Some(earlier) = moved.backward(path) else { return false };
        if histories.contains_key(earlier.as_path()) {
            return true;
        }
        path = earlier;
    }
    false
}

/// Whether `now` is `to` already, owner, attributes and links included as far as they were recorded.
fn is_restored(now: &Node, to: &Node) -> bool {
    now.fully_same_as(to) && now.linked() == to.linked()
}

/// The changes of each path, in order.
type Histories<'a> = BTreeMap<&'a Path, Vec<(&'a Receipt, &'a Change)>>;

/// Divides the changes of the receipts at the moves; a move comes with the directory that was moved.
fn divide<'a>(receipts: &[&'a Receipt]) -> (Vec<Histories<'a>>, Vec<(&'a Node, DirectoryMove)>) {
    let (mut segments, mut moves) = (Vec::new(), Vec::new());
    let mut histories = Histories::new();
    for receipt in receipts {
        for change in &receipt.changes {
            if let Some(to) = &change.moved_to {
                moves.push((&change.before, DirectoryMove { from: change.path.clone(), to: to.clone() }));
                segments.push(std::mem::take(&mut histories));
            } else {
                histories.entry(&change.path).or_default().push((receipt, change));
            }
        }
    }
    segments.push(histories);
    (segments, moves)
}

/// Of each segment, the initial state of the paths that it changed; the first one does not need it.
fn starts(segments: &[Histories<'_>]) -> Vec<HashMap<PathBuf, Node>> {
    let start = |histories: &Histories<'_>| {
        let first = |(path, history): (&&Path, &Vec<(&Receipt, &Change)>)| {
            Some((path.to_path_buf(), history.first()?.1.before.clone()))
        };
        histories.iter().filter_map(first).collect()
    };
    let later = segments.iter().skip(1).map(start);
    std::iter::once(HashMap::new()).chain(later).collect()
}

/// A path to restore.
struct PathRestore<'a> {
    path: &'a Path,
    expect: Node,
    to: &'a Node,
}

/// Why a call cannot be undone as a whole.
fn obstacle(receipt: &Receipt) -> Option<String> {
    match &receipt.reversible {
        _ if receipt.state == ReceiptState::Running => Some("it is still running".to_owned()),
        haft_tool::Reversible::No { why } => Some(why.clone()),
        _ => None,
    }
}

/// The newest point where the history of a path, which ends with `now`, is inconsistent.
fn find_conflict(path: &Path, history: &[(&Receipt, &Change)], now: &Node) -> Option<UndoConflict> {
    let conflict = |change: &Change, found: &Node| {
        let (expected, found) = (change.after.clone(), found.clone());
        Some(UndoConflict { path: path.to_owned(), expected, found, blocks_move: false })
    };
    let mut found = now;
    for call in history.chunk_by(|a, b| a.0.id == b.0.id).rev() {
        let [(receipt, first), ..] = call else { continue };
        if receipt.state == ReceiptState::Interrupted {
            // It is not known how far the call came: any of its states will do.
            let is_possible = |change: &Change| found.same_as(&change.before) || found.same_as(&change.after);
            if !call.iter().any(|(_, change)| is_possible(change)) {
                let (_, last) = call.last()?;
                return conflict(last, found);
            }
            found = &first.before;
            continue;
        }
        for (_, change) in call.iter().rev() {
            // A pipe or socket that is gone holds nothing that could be lost.
            let gone = change.after == Node::Special && *found == Node::Absent;
            if !gone && !found.same_as(&change.after) {
                return conflict(change, found);
            }
            found = &change.before;
        }
    }
    None
}

/// Orders steps, which are sorted by path, so that each is possible: a directory is empty when it is removed, exists when
/// it is filled, and is writable while its entries change.
fn in_order(restores: &[PathRestore<'_>]) -> Vec<UndoStep> {
    let [mut opened, mut removed, mut emptied, mut created, mut filled, mut in_place, mut closed] =
        [const { Vec::new() }; 7];
    for (at, PathRestore { path, expect, to }) in restores.iter().enumerate() {
        // What is below a path follows it.
        let mut below = restores[at + 1..].iter().take_while(|restore| restore.path.starts_with(path));
        let entries_change = below.any(|restore| restore.expect != *restore.to);
        let opened_node = |node: &Node| match node {
            Node::Dir { mode } if entries_change => Node::Dir { mode: mode | OWNER_WRITE_SEARCH },
            node => node.clone(),
        };
        let (now, then) = (opened_node(expect), opened_node(to));
        let step = |expect: &Node, to: &Node| UndoStep::Restore {
            path: path.to_path_buf(),
            expect: expect.clone(),
            to: to.clone(),
        };
        if now != *expect {
            opened.push(step(expect, &now));
        }
        if now != then {
            let group = match (&now, &then) {
                (Node::Dir { .. }, Node::Dir { .. }) => &mut opened,
                (Node::Dir { .. }, _) => &mut emptied,
                (_, Node::Dir { .. }) => &mut created,
                (Node::Absent, _) => &mut filled,
                // It changes under its other links too, so those that are removed or replaced come first.
                (Node::File(now), Node::File(then)) if now.linked.is_some() && now.linked == then.linked => {
                    &mut in_place
                }
                _ => &mut removed,
            };
            group.push(step(&now, &then));
        }
        if then != **to {
            closed.push(step(&then, to));
        }
    }
    // Parents precede their entries; where it must be the other way round, reverse.
    emptied.reverse();
    closed.reverse();
    [opened, removed, emptied, created, filled, in_place, closed].concat()
}
