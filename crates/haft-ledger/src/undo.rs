//! Taking calls back, as a plan. Pure: it looks through `observe` and changes nothing.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use haft_tool::{Change, Node, Receipt, State, ToolError};

use crate::past::{Move, Past};

/// The bits without which the owner of a directory cannot change its entries.
const OWNER_MAY_CHANGE: u32 = 0o300;

/// How to take calls back, and what stands in the way.
#[derive(Debug, Clone, PartialEq)]
pub struct UndoPlan {
    /// What to do, in this order. Paths with a conflict are in it too, so that a forced undo only has to perform it.
    pub steps: Vec<Step>,
    /// The paths that no longer are what the calls left, or whose history has a gap.
    pub conflicts: Vec<Conflict>,
    /// The calls that cannot be taken back, or not completely, and why.
    pub blocked: Vec<(i64, String)>,
}

/// One thing to put back.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// One path to its earlier state.
    Put {
        /// The absolute path.
        path: PathBuf,
        /// What stands there when the step's turn comes.
        expect: Node,
        /// What shall stand there.
        to: Node,
    },
    /// A directory to where it was before, with everything in it.
    MoveBack {
        /// Where it is.
        from: PathBuf,
        /// Where it was.
        to: PathBuf,
    },
}

impl Step {
    /// The path that the step puts something back to.
    pub fn path(&self) -> &Path {
        match self {
            Self::Put { path, .. } => path,
            Self::MoveBack { to, .. } => to,
        }
    }
}

/// A path on which the record and the world disagree.
#[derive(Debug, Clone, PartialEq)]
pub struct Conflict {
    /// The absolute path.
    pub path: PathBuf,
    /// What a call left there.
    pub expected: Node,
    /// What was found instead: now, or by the next of the calls.
    pub found: Node,
    /// Whether it stands in the way of moving a directory back, which cannot be forced.
    pub blocks_move: bool,
}

/// Plans how to put every path that the receipts changed back to where it was before the oldest of them.
///
/// The receipts may come in any order. `observe` tells what stands at a path now, links not followed.
///
/// Directories that were moved cut the history into stretches, in each of which a path means one place. They are taken
/// back from the last to the first, and between two of them the directory is moved back.
pub fn plan(
    receipts: &[Receipt],
    observe: &mut dyn FnMut(&Path) -> Result<Node, ToolError>,
) -> Result<UndoPlan, ToolError> {
    let mut receipts: Vec<_> = receipts.iter().collect();
    receipts.sort_by_key(|receipt| receipt.id);
    let (stretches, moves) = cut(&receipts);
    let mut past =
        Past::new(begins(&stretches), moves.iter().map(|(_, moved)| Some(moved.clone())).collect());
    let mut blocked: Vec<_> =
        receipts.iter().filter_map(|receipt| Some((receipt.id, obstacle(receipt)?))).collect();
    let (mut conflicts, mut steps) = (Vec::new(), Vec::new());
    for (at, histories) in stretches.iter().enumerate().rev() {
        let mut puts = Vec::new();
        for (path, history) in histories {
            let [(oldest, Change { before: to, .. }), ..] = history.as_slice() else { continue };
            let now = past.end(at, path, observe)?;
            let to = if *to == Node::Special && was_made(path, &stretches[..at], &moves) {
                // It goes before the rest is taken back, for it cannot be made again only to go then.
                past.begins_with(at, path, Node::Absent);
                &Node::Absent
            } else {
                to
            };
            if is_back(&now, to) {
                // A directory that is back may have to be opened for a moment to get at what is in it.
                if matches!(now, Node::Dir { .. }) {
                    puts.push(Put { path, expect: now, to });
                }
                continue;
            }
            if *to == Node::Special {
                let why = format!("{} was a special file, which cannot be made again", path.display());
                blocked.push((oldest.id, why));
                past.begins_with(at, path, now);
                continue;
            }
            conflicts.extend(disagreement(path, history, &now));
            puts.push(Put { path, expect: now, to });
        }
        steps.extend(in_order(&puts));
        let Some((before, moved)) = at.checked_sub(1).and_then(|earlier| moves.get(earlier)) else {
            continue;
        };
        let (from, to) = (past.begin(at, &moved.from, observe)?, past.begin(at, &moved.to, observe)?);
        if matches!((&from, &to), (Node::Dir { .. }, Node::Absent)) {
            past.is_back(at - 1);
            continue;
        }
        let conflict = |path: &Path, expected: Node, found: Node| Conflict {
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
        steps.push(Step::MoveBack { from: moved.to.clone(), to: moved.from.clone() });
    }
    blocked.sort_by_key(|(id, _)| Reverse(*id));
    Ok(UndoPlan { steps, conflicts, blocked })
}

/// Whether what stood at `path` behind these stretches came to be there in one of them.
fn was_made(path: &Path, stretches: &[Histories<'_>], moves: &[(&Node, Move)]) -> bool {
    let mut path = path.to_owned();
    for (histories, (_, moved)) in stretches.iter().zip(moves).rev() {
        let Some(earlier) = moved.back(path) else { return false };
        if histories.contains_key(earlier.as_path()) {
            return true;
        }
        path = earlier;
    }
    false
}

/// Whether `now` needs nothing to be `to`: owner, attributes and other names count too, as far as they were written down.
fn is_back(now: &Node, to: &Node) -> bool {
    now.fully_same_as(to) && now.linked() == to.linked()
}

/// What happened to each path, in order.
type Histories<'a> = BTreeMap<&'a Path, Vec<(&'a Receipt, &'a Change)>>;

/// Cuts what the receipts changed at the moves; a move comes with the directory that was moved.
fn cut<'a>(receipts: &[&'a Receipt]) -> (Vec<Histories<'a>>, Vec<(&'a Node, Move)>) {
    let (mut stretches, mut moves) = (Vec::new(), Vec::new());
    let mut histories = Histories::new();
    for receipt in receipts {
        for change in &receipt.changes {
            if let Some(to) = &change.moved_to {
                moves.push((&change.before, Move { from: change.path.clone(), to: to.clone() }));
                stretches.push(std::mem::take(&mut histories));
            } else {
                histories.entry(&change.path).or_default().push((receipt, change));
            }
        }
    }
    stretches.push(histories);
    (stretches, moves)
}

/// What stood at the paths that a stretch changed when it began; nobody asks that of the first one.
fn begins(stretches: &[Histories<'_>]) -> Vec<HashMap<PathBuf, Node>> {
    let begin = |histories: &Histories<'_>| {
        let first = |(path, history): (&&Path, &Vec<(&Receipt, &Change)>)| {
            Some((path.to_path_buf(), history.first()?.1.before.clone()))
        };
        histories.iter().filter_map(first).collect()
    };
    let later = stretches.iter().skip(1).map(begin);
    std::iter::once(HashMap::new()).chain(later).collect()
}

/// One path on its way back.
struct Put<'a> {
    path: &'a Path,
    expect: Node,
    to: &'a Node,
}

/// Why a call cannot be taken back as a whole.
fn obstacle(receipt: &Receipt) -> Option<String> {
    match &receipt.reversible {
        _ if receipt.state == State::Running => Some("it is still running".to_owned()),
        haft_tool::Reversible::No { why } => Some(why.clone()),
        _ => None,
    }
}

/// The newest place where the history of a path does not fit together, `now` being its end.
fn disagreement(path: &Path, history: &[(&Receipt, &Change)], now: &Node) -> Option<Conflict> {
    let conflict = |change: &Change, found: &Node| {
        let (expected, found) = (change.after.clone(), found.clone());
        Some(Conflict { path: path.to_owned(), expected, found, blocks_move: false })
    };
    let mut found = now;
    for call in history.chunk_by(|a, b| a.0.id == b.0.id).rev() {
        let [(receipt, first), ..] = call else { continue };
        if receipt.state == State::Interrupted {
            // Nobody knows how far the call came: any state on its way will do.
            let on_its_way = |change: &Change| found.same_as(&change.before) || found.same_as(&change.after);
            if !call.iter().any(|(_, change)| on_its_way(change)) {
                let (_, last) = call.last()?;
                return conflict(last, found);
            }
            found = &first.before;
            continue;
        }
        for (_, change) in call.iter().rev() {
            // A pipe or a socket that has gone leaves nothing that could get lost.
            let gone = change.after == Node::Special && *found == Node::Absent;
            if !gone && !found.same_as(&change.after) {
                return conflict(change, found);
            }
            found = &change.before;
        }
    }
    None
}

/// Puts steps that are sorted by path into an order in which each is possible: a directory is empty when it goes,
/// there when it is filled, and open to its owner while its entries change.
fn in_order(puts: &[Put<'_>]) -> Vec<Step> {
    let [mut opened, mut gone, mut emptied, mut made, mut filled, mut over, mut closed] =
        [const { Vec::new() }; 7];
    for (at, Put { path, expect, to }) in puts.iter().enumerate() {
        // What lies below a path stands right behind it.
        let mut below = puts[at + 1..].iter().take_while(|put| put.path.starts_with(path));
        let entries_change = below.any(|put| put.expect != *put.to);
        let open = |node: &Node| match node {
            Node::Dir { mode } if entries_change => Node::Dir { mode: mode | OWNER_MAY_CHANGE },
            node => node.clone(),
        };
        let (now, then) = (open(expect), open(to));
        let step = |expect: &Node, to: &Node| Step::Put {
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
                (_, Node::Dir { .. }) => &mut made,
                (Node::Absent, _) => &mut filled,
                // It changes under its other names too, so those that go or change by themselves come first.
                (Node::File(now), Node::File(then)) if now.linked.is_some() && now.linked == then.linked => {
                    &mut over
                }
                _ => &mut gone,
            };
            group.push(step(&now, &then));
        }
        if then != **to {
            closed.push(step(&then, to));
        }
    }
    // Parents stand before their entries; where it must be the other way round, turn.
    emptied.reverse();
    closed.reverse();
    [opened, gone, emptied, made, filled, over, closed].concat()
}
