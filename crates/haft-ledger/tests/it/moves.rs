//! Undo of calls that moved directories, checked against a model of a file tree and of the witness.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use haft_ledger::WorkspaceView;
use haft_ledger::undo::UndoStep;
use haft_tool::{Change, FileContent, FileId, Node, Receipt, ReceiptState, Record, ToolError};
use proptest::prelude::*;

use crate::fixture::{Fixture, blank_receipt, file};
use crate::undo::{Operation, Tree, applied, at, name, operation, perform, planned};

const DIR: Node = Node::Dir { mode: 0o755 };

/// The witness of one call: the state of each path before its first change, compared at every move.
#[derive(Default)]
struct Witness {
    touched: BTreeMap<PathBuf, Node>,
    changes: Vec<Change>,
}

impl Witness {
    fn is_new(&self, path: &Path) -> bool {
        path.ancestors().skip(1).any(|above| self.touched.get(above) == Some(&Node::Absent))
    }

    /// Records the state of a path, except below a directory that the call created.
    fn touch(&mut self, tree: &Tree, path: &Path, record: Option<&dyn Record>) {
        if self.is_new(path) || self.touched.contains_key(path) {
            return;
        }
        self.touched.insert(path.to_owned(), at(tree, path));
        if let Some(record) = record {
            record.witness(path, &at(tree, path), FileContent::None).unwrap();
        }
    }

    fn seal(&mut self, tree: &Tree) {
        for (path, before) in std::mem::take(&mut self.touched) {
            let after = at(tree, &path);
            if before == Node::Absent && matches!(after, Node::Dir { .. }) {
                let inside = tree.iter().filter(|(below, _)| **below != path && below.starts_with(&path));
                self.changes.extend(inside.map(|(path, node)| Change::new(path, Node::Absent, node.clone())));
            }
            if before != after {
                self.changes.push(Change::new(path, before, after));
            }
        }
    }

    /// Applies an operation as a program would, one system call after the other.
    fn watch(&mut self, tree: &Tree, operation: &Operation, record: Option<&dyn Record>) -> Tree {
        let after = applied(tree, operation);
        if after == *tree {
            return after;
        }
        if let Operation::Rename(from, to) = operation
            && matches!(at(tree, &name(*from)), Node::Dir { .. })
        {
            let (from, to) = (name(*from), name(*to));
            let made_here = self.is_new(&from) || self.touched.get(&from) == Some(&Node::Absent);
            if !made_here {
                self.seal(tree);
                if let Some(record) = record {
                    record.witness_move(&from, &to).unwrap();
                }
                let moved =
                    Change { moved_to: Some(to), ..Change::new(&from, at(tree, &from), Node::Absent) };
                self.changes.push(moved);
                return after;
            }
        }
        let mut paths: Vec<_> = tree.keys().chain(after.keys()).collect();
        paths.sort();
        paths.dedup();
        // All are recorded before the operation.
        let changed = |path: &&&PathBuf| at(tree, path) != at(&after, path);
        for path in paths.iter().filter(changed) {
            self.touch(tree, path, record);
        }
        after
    }
}

/// Calls of a few operations each, with the trees before them.
fn witnessed(operations: &[Vec<Operation>]) -> (Vec<Tree>, Vec<Receipt>) {
    let (mut trees, mut receipts) = (vec![Tree::new()], Vec::new());
    for (id, operations) in (1..).zip(operations) {
        let mut tree = trees[trees.len() - 1].clone();
        let mut witness = Witness::default();
        for operation in operations {
            tree = witness.watch(&tree, operation, None);
        }
        witness.seal(&tree);
        let mut receipt = blank_receipt();
        receipt.id = id;
        receipt.changes = witness.changes;
        receipts.push(receipt);
        trees.push(tree);
    }
    (trees, receipts)
}

/// Operations that need no directory to be made writable first, which this witness does not record.
fn open_operation() -> impl Strategy<Value = Operation> {
    operation().prop_map(|operation| match operation {
        Operation::MakeDir(n, _) => Operation::MakeDir(n, 0o755),
        Operation::Chmod(n, mode) => Operation::Chmod(n, mode | 0o700),
        other => other,
    })
}

struct Model<'a>(&'a Tree);

impl WorkspaceView for Model<'_> {
    fn observe(&mut self, path: &Path) -> Result<Node, ToolError> {
        Ok(at(self.0, path))
    }

    fn entry_names(&mut self, path: &Path) -> Result<Vec<OsString>, ToolError> {
        let below = self.0.keys().filter(|below| below.parent() == Some(path));
        Ok(below.filter_map(|below| Some(below.file_name()?.to_owned())).collect())
    }

    fn find_links(&mut self, _files: HashSet<FileId>, _except: &HashSet<&Path>) -> HashMap<FileId, PathBuf> {
        HashMap::new()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn undo_of_calls_that_moved_directories_restores_the_tree_before_them(
        operations in prop::collection::vec(prop::collection::vec(open_operation(), 1..8), 1..8),
        chosen in any::<prop::sample::Index>(),
    ) {
        let (trees, receipts) = witnessed(&operations);
        let now = &trees[operations.len()];
        for keep in [0, chosen.index(operations.len())] {
            let plan = planned(&receipts[keep..], now);
            prop_assert!(plan.conflicts.is_empty(), "{:?}", plan.conflicts);
            let mut tree = now.clone();
            plan.steps.iter().for_each(|step| perform(&mut tree, step));
            prop_assert_eq!(&tree, &trees[keep]);
        }
    }

}

/// Kills Haft after a command's operations, recovers its changes and undoes them.
fn assert_recovered_and_undone(start: &[Operation], operations: &[Operation]) {
    let start = start.iter().fold(Tree::new(), |tree, operation| applied(&tree, operation));
    let fixture = Fixture::new();
    let (record, id) = fixture.running();
    let mut witness = Witness::default();
    let now = operations
        .iter()
        .fold(start.clone(), |tree, operation| witness.watch(&tree, operation, Some(&record)));
    fixture.kill_running();
    let recovered = fixture.ledger.recover(&mut Model(&now)).unwrap();
    assert_eq!(recovered.len(), 1);
    let receipt = fixture.ledger.receipt(id).unwrap();
    assert_eq!(receipt.state, ReceiptState::Interrupted);
    let plan = planned(&[receipt], &now);
    assert!(plan.conflicts.is_empty(), "{:?}", plan.conflicts);
    let mut tree = now.clone();
    plan.steps.iter().for_each(|step| perform(&mut tree, step));
    assert_eq!(&tree, &start);
    assert_eq!(fixture.spool_files(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn changes_of_a_dead_command_are_recovered_and_can_be_undone(
        start in prop::collection::vec(open_operation(), 0..20),
        operations in prop::collection::vec(open_operation(), 1..20),
    ) {
        assert_recovered_and_undone(&start, &operations);
    }
}

#[test]
fn file_created_before_a_move_and_removed_after_it_is_recovered() {
    let operations =
        [Operation::MakeDir(2, 0o755), Operation::Write(4, 0), Operation::Rename(0, 5), Operation::Remove(2)];
    assert_recovered_and_undone(&[Operation::MakeDir(0, 0o755)], &operations);
}

/// A call that changed /w/a/f, moved /w/a to /w/b and changed /w/b/f again.
fn moved() -> (Receipt, Tree) {
    let mut receipt = blank_receipt();
    receipt.id = 1;
    receipt.changes = vec![
        Change::new("/w/a/f", file(b"0"), file(b"1")),
        Change { moved_to: Some("/w/b".into()), ..Change::new("/w/a", DIR, Node::Absent) },
        Change::new("/w/b/f", file(b"1"), file(b"2")),
    ];
    let tree = Tree::from([("/w/b".into(), DIR), ("/w/b/f".into(), file(b"2"))]);
    (receipt, tree)
}

#[test]
fn directory_is_moved_back_between_later_and_earlier_changes() {
    let (receipt, tree) = moved();
    let plan = planned(std::slice::from_ref(&receipt), &tree);
    let put = |path: &str, expect: &[u8], to: &[u8]| UndoStep::Restore {
        path: path.into(),
        expect: file(expect),
        to: file(to),
    };
    let back = UndoStep::MoveBack { from: "/w/b".into(), to: "/w/a".into() };
    assert_eq!(plan.steps, [put("/w/b/f", b"2", b"1"), back, put("/w/a/f", b"1", b"0")]);
    assert!(plan.conflicts.is_empty());
}

#[test]
fn directory_that_is_back_already_is_not_moved() {
    let (receipt, _) = moved();
    let tree = Tree::from([("/w/a".into(), DIR), ("/w/a/f".into(), file(b"1"))]);
    let plan = planned(std::slice::from_ref(&receipt), &tree);
    assert!(plan.steps.iter().all(|step| matches!(step, UndoStep::Restore { .. })), "{:?}", plan.steps);
}

#[test]
fn occupied_path_or_missing_directory_is_a_conflict_that_cannot_be_forced() {
    let (receipt, mut tree) = moved();
    tree.insert("/w/a".into(), file(b"theirs"));
    let taken = planned(std::slice::from_ref(&receipt), &tree);
    let conflict = &taken.conflicts[0];
    assert_eq!((conflict.path.as_path(), conflict.blocks_move), (Path::new("/w/a"), true));
    assert_eq!(conflict.found, file(b"theirs"));
    let gone = planned(std::slice::from_ref(&receipt), &Tree::new());
    assert!(gone.conflicts.iter().any(|conflict| conflict.path == Path::new("/w/b") && conflict.blocks_move));
}

#[test]
fn change_by_hand_between_two_calls_is_a_conflict_across_the_move() {
    let (mut first, tree) = moved();
    let mut second = first.clone();
    second.id = 2;
    second.changes = first.changes.split_off(1);
    second.changes[1].before = file(b"by hand");
    let plan = planned(&[second, first], &tree);
    assert_eq!(plan.conflicts.len(), 1);
    assert_eq!((&plan.conflicts[0].expected, &plan.conflicts[0].found), (&file(b"1"), &file(b"by hand")));
}
