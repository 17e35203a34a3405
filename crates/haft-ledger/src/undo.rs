//! Taking calls back, as a plan. Pure: it looks through `observe` and changes nothing.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use haft_tool::{Change, Node, Receipt, State, ToolError};

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

/// One path to put back.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The absolute path.
    pub path: PathBuf,
    /// What stands there when the step's turn comes.
    pub expect: Node,
    /// What shall stand there.
    pub to: Node,
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
}

/// Plans how to put every path that the receipts changed back to where it was before the oldest of them.
///
/// The receipts may come in any order. `observe` tells what stands at a path now, links not followed.
pub fn plan(
    receipts: &[Receipt],
    observe: &mut dyn FnMut(&Path) -> Result<Node, ToolError>,
) -> Result<UndoPlan, ToolError> {
    let mut receipts: Vec<_> = receipts.iter().collect();
    receipts.sort_by_key(|receipt| receipt.id);
    let mut histories: BTreeMap<&Path, Vec<(&Receipt, &Change)>> = BTreeMap::new();
    for receipt in &receipts {
        for change in &receipt.changes {
            histories.entry(&change.path).or_default().push((receipt, change));
        }
    }
    let mut blocked: Vec<_> =
        receipts.iter().filter_map(|receipt| Some((receipt.id, obstacle(receipt)?))).collect();
    let mut conflicts = Vec::new();
    let mut moves = Vec::new();
    for (path, history) in histories {
        let [(oldest, Change { before: to, .. }), ..] = history.as_slice() else { continue };
        let now = observe(path)?;
        if now.same_as(to) {
            // A directory that is back may have to be opened for a moment to get at what is in it.
            if matches!(now, Node::Dir { .. }) {
                moves.push(Step { path: path.to_owned(), expect: now, to: to.clone() });
            }
            continue;
        }
        if *to == Node::Special {
            let why = format!("{} was a special file, which cannot be made again", path.display());
            blocked.push((oldest.id, why));
            continue;
        }
        conflicts.extend(disagreement(path, &history, &now));
        moves.push(Step { path: path.to_owned(), expect: now, to: to.clone() });
    }
    blocked.sort_by_key(|(id, _)| Reverse(*id));
    Ok(UndoPlan { steps: in_order(&moves), conflicts, blocked })
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
        Some(Conflict { path: path.to_owned(), expected: change.after.clone(), found: found.clone() })
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
            if !found.same_as(&change.after) {
                return conflict(change, found);
            }
            found = &change.before;
        }
    }
    None
}

/// Puts steps that are sorted by path into an order in which each is possible: a directory is empty when it goes,
/// there when it is filled, and open to its owner while its entries change.
fn in_order(moves: &[Step]) -> Vec<Step> {
    let [mut opened, mut gone, mut emptied, mut made, mut filled, mut closed] = [const { Vec::new() }; 6];
    for (at, Step { path, expect, to }) in moves.iter().enumerate() {
        // What lies below a path stands right behind it.
        let mut below = moves[at + 1..].iter().take_while(|step| step.path.starts_with(path));
        let entries_change = below.any(|step| step.expect != step.to);
        let open = |node: &Node| match node {
            Node::Dir { mode } if entries_change => Node::Dir { mode: mode | OWNER_MAY_CHANGE },
            node => node.clone(),
        };
        let (now, then) = (open(expect), open(to));
        let step =
            |expect: &Node, to: &Node| Step { path: path.clone(), expect: expect.clone(), to: to.clone() };
        if now != *expect {
            opened.push(step(expect, &now));
        }
        if now != then {
            let group = match (&now, &then) {
                (Node::Dir { .. }, Node::Dir { .. }) => &mut opened,
                (Node::Dir { .. }, _) => &mut emptied,
                (_, Node::Dir { .. }) => &mut made,
                (Node::Absent, _) => &mut filled,
                _ => &mut gone,
            };
            group.push(step(&now, &then));
        }
        if then != *to {
            closed.push(step(&then, to));
        }
    }
    // Parents stand before their entries; where it must be the other way round, turn.
    emptied.reverse();
    closed.reverse();
    [opened, gone, emptied, made, filled, closed].concat()
}
