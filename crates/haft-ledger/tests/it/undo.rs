//! Planning an undo, checked against a model of a file tree that allows only what a file system allows.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use haft_ledger::WorkspaceView;
use haft_ledger::undo::{UndoPlan, plan};
use haft_tool::{
    Change, FileId, Node, OpenContent, Receipt, ReceiptState, RestorePlan, RestoreStep, StagedStep, ToolError,
};
use proptest::prelude::*;

use crate::fixture::{blank_receipt, file};

pub(crate) type Tree = BTreeMap<PathBuf, Node>;

pub(crate) fn at(tree: &Tree, path: &Path) -> Node {
    tree.get(path).cloned().unwrap_or(Node::Absent)
}

/// The tree as the ledger reads it.
pub(crate) struct Model<'a>(pub(crate) &'a Tree);

/// The number of all files in the model.
pub(crate) const EVERY_FILE: FileId = (1, 1);

impl WorkspaceView for Model<'_> {
    fn observe(&mut self, path: &Path) -> Result<Node, ToolError> {
        Ok(at(self.0, path))
    }

    fn file_id(&mut self, _path: &Path) -> Option<FileId> {
        Some(EVERY_FILE)
    }

    fn entry_names(&mut self, path: &Path) -> Result<Vec<OsString>, ToolError> {
        let below = self.0.keys().filter(|below| below.parent() == Some(path));
        Ok(below.filter_map(|below| Some(below.file_name()?.to_owned())).collect())
    }

    fn undo_restore(
        &mut self,
        _steps: &[StagedStep],
        _made: Option<usize>,
        _content: &OpenContent<'_>,
    ) -> Result<(), ToolError> {
        Ok(())
    }

    fn find_links(&mut self, _files: HashSet<FileId>, _except: &HashSet<&Path>) -> HashMap<FileId, PathBuf> {
        HashMap::new()
    }
}

pub(crate) fn planned(receipts: &[Receipt], tree: &Tree) -> UndoPlan {
    plan(receipts, &mut Model(tree)).unwrap()
}

/// Whether every directory above `path` is there and can be entered, the nearest one also with the bits `nearest`.
pub(crate) fn lies_in(tree: &Tree, path: &Path, nearest: u32) -> bool {
    let above = path.ancestors().skip(1).take_while(|dir| *dir != Path::new("/w"));
    above.zip([nearest].into_iter().chain(std::iter::repeat(0))).all(|(dir, bits)| {
        let bits = bits | 0o100;
        matches!(at(tree, dir), Node::Dir(dir) if dir.mode & bits == bits)
    })
}

/// Performs the steps as a user without special rights could.
pub(crate) fn perform(tree: &mut Tree, plan: &RestorePlan) {
    let mut away = BTreeMap::new();
    for step in &plan.steps {
        match step {
            RestoreStep::Set { path, expect, to } => put(tree, path, expect, to),
            RestoreStep::MoveOut { from } => {
                assert!(matches!(at(tree, from), Node::Dir { .. }), "{}", from.display());
                assert!(lies_in(tree, from, 0o200), "{}", from.display());
                let moved: Vec<_> = tree.extract_if(.., |path, _| path.starts_with(from)).collect();
                away.insert(from, moved);
            }
            RestoreStep::MoveIn { from, to } => {
                assert_eq!(at(tree, to), Node::Absent, "{}", to.display());
                assert!(lies_in(tree, to, 0o200), "{}", to.display());
                let mut moved = away.remove(from).unwrap().into_iter().collect();
                rename(&mut moved, from, to);
                tree.extend(moved);
            }
        }
    }
    assert!(away.is_empty());
}

pub(crate) fn rename(tree: &mut Tree, from: &Path, to: &Path) {
    if from == to {
        return;
    }
    let moved: Vec<_> = tree.extract_if(.., |path, _| path.starts_with(from)).collect();
    for (path, node) in moved {
        let below = path.strip_prefix(from).unwrap();
        tree.insert(if below == Path::new("") { to.to_owned() } else { to.join(below) }, node);
    }
}

fn put(tree: &mut Tree, path: &Path, expect: &Node, to: &Node) {
    assert_eq!(&at(tree, path), expect, "{}", path.display());
    let stays_a_dir = matches!((expect, to), (Node::Dir { .. }, Node::Dir { .. }));
    let only_mode = match (expect.as_file(), to.as_file()) {
        (Some(now), Some(then)) => now.hash == then.hash,
        _ => stays_a_dir,
    };
    assert!(lies_in(tree, path, if only_mode { 0 } else { 0o200 }), "{} cannot be reached", path.display());
    if matches!(expect, Node::Dir { .. }) && !stays_a_dir {
        let held = tree.keys().find(|other| other.parent() == Some(path));
        assert_eq!(held, None, "{} is not empty", path.display());
    }
    match to {
        Node::Absent => drop(tree.remove(path)),
        node => drop(tree.insert(path.to_owned(), node.clone())),
    }
}

/// An operation of a call; numbers choose a path of the tree.
#[derive(Debug, Clone)]
pub(crate) enum Operation {
    Write(usize, u8),
    MakeDir(usize, u32),
    Link(usize, u8),
    Chmod(usize, u32),
    Remove(usize),
    Rename(usize, usize),
}

const NAMES: [&str; 9] = ["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "d/e/f", "d/e/f/a"];

pub(crate) fn name(n: usize) -> PathBuf {
    Path::new("/w").join(NAMES[n % NAMES.len()])
}

pub(crate) fn operation() -> impl Strategy<Value = Operation> {
    let mode = prop_oneof![Just(0o755), Just(0o700), Just(0o500), Just(0o444)];
    prop_oneof![
        4 => (0..9_usize, 0..4_u8).prop_map(|(n, byte)| Operation::Write(n, byte)),
        4 => (0..9_usize, mode.clone()).prop_map(|(n, mode)| Operation::MakeDir(n, mode)),
        1 => (0..9_usize, 0..4_u8).prop_map(|(n, byte)| Operation::Link(n, byte)),
        3 => (0..9_usize, mode).prop_map(|(n, mode)| Operation::Chmod(n, mode)),
        3 => (0..9_usize).prop_map(Operation::Remove),
        3 => (0..9_usize, 0..9_usize).prop_map(|(from, to)| Operation::Rename(from, to)),
    ]
}

/// The tree after an operation; an impossible one does nothing.
pub(crate) fn applied(tree: &Tree, operation: &Operation) -> Tree {
    let mut after = tree.clone();
    let can_hold = |path: &Path| lies_in(tree, path, 0o200);
    let can_go = |path: &Path| {
        let mut with_it = tree.keys().filter(|other| other.starts_with(path));
        with_it.all(|other| can_hold(other))
    };
    let mut put = |path: PathBuf, node: Node| {
        let replaces_dir = matches!(at(tree, &path), Node::Dir { .. });
        if can_hold(&path) && !replaces_dir {
            after.insert(path, node);
        }
    };
    match operation {
        Operation::Write(n, byte) => put(name(*n), file(&[*byte])),
        Operation::MakeDir(n, mode) => put(name(*n), Node::directory(*mode)),
        Operation::Link(n, byte) => put(name(*n), Node::link(format!("to-{byte}"))),
        Operation::Chmod(n, mode) => match after.get_mut(&name(*n)) {
            Some(Node::Dir(old)) if lies_in(tree, &name(*n), 0) => old.mode = *mode,
            Some(Node::File(file)) if lies_in(tree, &name(*n), 0) => file.mode = *mode,
            _ => {}
        },
        Operation::Remove(n) if can_go(&name(*n)) => after.retain(|path, _| !path.starts_with(name(*n))),
        Operation::Remove(_) => {}
        Operation::Rename(from, to) => {
            let (from, to) = (name(*from), name(*to));
            let free = at(tree, &to) == Node::Absent && can_hold(&to) && !to.starts_with(&from);
            // The entries of a read-only directory move with it.
            if free && can_hold(&from) {
                rename(&mut after, &from, &to);
            }
        }
    }
    after
}

pub(crate) fn receipt(id: i64, before: &Tree, after: &Tree) -> Receipt {
    let mut receipt = blank_receipt();
    receipt.id = id;
    let mut paths: Vec<_> = before.keys().chain(after.keys()).collect();
    paths.sort();
    paths.dedup();
    receipt.changes = paths
        .into_iter()
        .map(|path| Change::new(path, at(before, path), at(after, path)))
        .filter(|change| change.before != change.after)
        .collect();
    receipt
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn undo_of_the_last_calls_restores_the_tree_before_them(
        operations in prop::collection::vec(operation(), 1..40),
        chosen in any::<prop::sample::Index>(),
    ) {
        let (trees, receipts) = history(&operations);
        let now = trees[operations.len()].clone();
        for keep in [0, chosen.index(operations.len())] {
            let mut back: Vec<_> = receipts[keep..].to_vec();
            back.reverse();
            let plan = planned(&back, &now);
            prop_assert!(plan.conflicts.is_empty(), "{:?}", plan.conflicts);
            let mut tree = now.clone();
            perform(&mut tree, &plan.restore);
            prop_assert_eq!(&tree, &trees[keep]);
            let again = planned(&back, &tree).restore.steps;
            prop_assert!(again.is_empty(), "a restored tree needs no step: {:?}", again);
        }
    }

    #[test]
    fn crash_after_any_number_of_changes_can_be_undone(
        operations in prop::collection::vec(operation(), 2..20),
        made in any::<prop::sample::Index>(),
    ) {
        let half = operations.len() / 2;
        let start = operations[..half].iter().fold(Tree::new(), |tree, operation| applied(&tree, operation));
        let mut call = blank_receipt();
        call.id = 1;
        call.state = ReceiptState::Interrupted;
        let mut tree = start.clone();
        for operation in &operations[half..] {
            let after = applied(&tree, operation);
            call.changes.extend(receipt(1, &tree, &after).changes);
            tree = after;
        }
        let made = made.index(call.changes.len() + 1);
        let mut crashed = start.clone();
        for change in &call.changes[..made] {
            match &change.after {
                Node::Absent => drop(crashed.remove(&change.path)),
                node => drop(crashed.insert(change.path.clone(), node.clone())),
            }
        }
        // Nothing is left below what is not a directory.
        let kept = crashed.clone();
        let is_dir = |path: &Path| matches!(at(&kept, path), Node::Dir { .. });
        let in_tree = |path: &Path| path.ancestors().skip(1).take_while(|dir| *dir != Path::new("/w")).all(is_dir);
        crashed.retain(|path, _| in_tree(path));
        let plan = planned(&[call], &crashed);
        prop_assert!(plan.conflicts.is_empty(), "{:?}", plan.conflicts);
        for step in &plan.restore.steps {
            let RestoreStep::Set { path, expect, to } = step else { panic!("{step:?}") };
            prop_assert_eq!(&at(&crashed, path), expect);
            match to {
                Node::Absent => drop(crashed.remove(path)),
                node => drop(crashed.insert(path.clone(), node.clone())),
            }
        }
        prop_assert_eq!(crashed, start);
    }
}

/// The trees before and after each of the operations, starting with an empty one, and a receipt of each.
fn history(operations: &[Operation]) -> (Vec<Tree>, Vec<Receipt>) {
    let (mut trees, mut receipts) = (vec![Tree::new()], Vec::new());
    for (id, operation) in (1..).zip(operations) {
        let before = &trees[trees.len() - 1];
        let after = applied(before, operation);
        receipts.push(receipt(id, before, &after));
        trees.push(after);
    }
    (trees, receipts)
}

/// `/w/d`, `/w/d/e`, `/w/d/e/a` and `/w/d/e/f`, as numbers of paths.
const DIR: usize = 2;
const BELOW: usize = 5;
const FILE: usize = 6;
const BELOW_THAT: usize = 7;

#[test]
fn directory_that_a_dead_call_made_and_removed_with_its_parent_is_not_moved() {
    use Operation::{MakeDir, Remove, Write};
    let operations = [MakeDir(DIR, 0o755), MakeDir(BELOW, 0o755), Write(FILE, 0), Remove(DIR)];
    let (trees, receipts) = history(&operations);
    let mut call = blank_receipt();
    call.id = 1;
    call.state = ReceiptState::Interrupted;
    call.changes = receipts[1..].iter().flat_map(|receipt| receipt.changes.clone()).collect();
    let plan = planned(&[call], &trees[4]);
    assert_eq!(
        plan.restore.steps,
        [RestoreStep::Set { path: name(DIR), expect: Node::Absent, to: Node::directory(0o755) }]
    );
}

#[test]
fn restored_read_only_directory_needs_no_step() {
    use Operation::{Chmod, MakeDir, Remove, Write};
    let operations = [
        MakeDir(DIR, 0o755),
        MakeDir(BELOW, 0o755),
        MakeDir(BELOW_THAT, 0o755),
        Chmod(DIR, 0o500),
        Chmod(DIR, 0o755),
        Remove(BELOW_THAT),
        Write(BELOW_THAT, 0),
        Remove(DIR),
    ];
    let (trees, mut receipts) = history(&operations);
    let mut tree = trees[8].clone();
    let mut back = receipts.split_off(4);
    back.reverse();
    let plan = planned(&back, &tree);
    perform(&mut tree, &plan.restore);
    assert_eq!(tree, trees[4]);
    assert_eq!(planned(&back, &tree).restore.steps, []);
}
