//! Undo of calls that moved directories, checked against a model of a file tree and of the witness.

use std::path::{Path, PathBuf};

use haft_tool::{
    Change, CommandChanges, CommandView, DirectoryEvent, FileContent, Node, PathState, Receipt, ReceiptState,
    Record, RestoreStep, ToolError,
};
use proptest::prelude::*;

use crate::fixture::{Fixture, blank_receipt, file};
use crate::undo::{EVERY_FILE, Model, Operation, Tree, applied, at, name, operation, perform, planned};

const DIR: Node = Node::directory(0o755);

/// The witness of one call.
#[derive(Default)]
struct Witness {
    command: CommandChanges,
}

/// What a call left.
struct After<'a>(&'a Tree);

impl CommandView for After<'_> {
    fn observe(&mut self, path: &Path) -> Result<PathState, ToolError> {
        Ok(PathState { node: at(self.0, path), file: None })
    }

    fn visit_new(&mut self, path: &Path, visit: &mut dyn FnMut(PathBuf, Node) -> bool) {
        let mut left_out: Vec<&PathBuf> = Vec::new();
        for (below, node) in self.0.iter().filter(|(below, _)| *below != path && below.starts_with(path)) {
            let is_left_out = left_out.iter().any(|out| below.starts_with(out));
            if !is_left_out && !visit(below.clone(), node.clone()) {
                left_out.push(below);
            }
        }
    }
}

impl Witness {
    /// Stores the state of a path.
    fn touch(&mut self, tree: &Tree, path: &Path, record: Option<&dyn Record>) {
        let Some(key) = self.command.unstored(path) else { return };
        let node = at(tree, path);
        if let Some(record) = record {
            record.witness(&key, &node, FileContent::None).unwrap();
        }
        self.command.store(key, PathState { node, file: None });
    }

    fn event(&mut self, event: DirectoryEvent<'_>, record: Option<&dyn Record>) {
        if let Some(record) = record {
            record.witness_directory(event).unwrap();
        }
        self.command.apply(event);
    }

    fn changes(&self, tree: &Tree) -> Vec<Change> {
        let (changes, unreadable) = self.command.compare(&mut After(tree));
        assert!(unreadable.is_empty());
        changes
    }

    /// Applies an operation as a program would, one system call after the other.
    fn watch(&mut self, tree: &Tree, operation: &Operation, record: Option<&dyn Record>) -> Tree {
        let after = applied(tree, operation);
        if after == *tree {
            return after;
        }
        if let Operation::Rename(from, to) = operation
            && let node @ Node::Dir { .. } = &at(tree, &name(*from))
        {
            let (from, to) = (name(*from), name(*to));
            if self.command.directories().is_new(&from) {
                self.touch(tree, &from, record);
            }
            self.touch(tree, &to, record);
            self.event(DirectoryEvent::Moved { from: &from, to: &to, node }, record);
            return after;
        }
        let mut paths: Vec<_> = tree.keys().chain(after.keys()).collect();
        paths.sort();
        paths.dedup();
        paths.retain(|path| at(tree, path) != at(&after, path));
        let is_dir = |tree: &Tree, path: &Path| matches!(at(tree, path), Node::Dir { .. });
        for path in &paths {
            self.touch(tree, path, record);
        }
        // Directories are removed after those in them.
        for path in paths.iter().rev().filter(|path| is_dir(tree, path) && !is_dir(&after, path)) {
            self.event(DirectoryEvent::Removed(path), record);
        }
        for path in paths.iter().filter(|path| is_dir(&after, path) && !is_dir(tree, path)) {
            self.event(DirectoryEvent::Created(path), record);
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
        let mut receipt = blank_receipt();
        receipt.id = id;
        receipt.changes = witness.changes(&tree);
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn undo_of_calls_that_moved_directories_restores_the_tree_before_them(
        operations in prop::collection::vec(prop::collection::vec(open_operation(), 1..30), 1..5),
        chosen in any::<prop::sample::Index>(),
    ) {
        let (trees, receipts) = witnessed(&operations);
        let now = &trees[operations.len()];
        for keep in [0, chosen.index(operations.len())] {
            let plan = planned(&receipts[keep..], now);
            prop_assert!(plan.conflicts.is_empty(), "{:?}", plan.conflicts);
            let mut tree = now.clone();
            perform(&mut tree, &plan.restore);
            prop_assert_eq!(&tree, &trees[keep]);
            // The undo is a call, too.
            let mut undo = blank_receipt();
            undo.id = 100;
            undo.changes = plan.restore.changes;
            let redo = planned(std::slice::from_ref(&undo), &tree);
            prop_assert!(redo.conflicts.is_empty(), "{:?}", redo.conflicts);
            perform(&mut tree, &redo.restore);
            prop_assert_eq!(&tree, now);
        }
    }

}

/// Kills Haft after a command's operations, recovers its changes and undoes them.
fn assert_recovered_and_undone(start: &[Operation], operations: &[Operation]) {
    let start = start.iter().fold(Tree::new(), |tree, operation| applied(&tree, operation));
    let fixture = Fixture::new();
    let (record, id) = fixture.running();
    record.witness_own(EVERY_FILE, true).unwrap();
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
    perform(&mut tree, &plan.restore);
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

/// A call that changed /w/a/f, moved /w/a to /w/b and made /w/a again.
fn moved() -> (Receipt, Tree) {
    let mut receipt = blank_receipt();
    receipt.id = 1;
    receipt.changes = vec![
        Change::new("/w/a/f", file(b"0"), file(b"2")),
        Change { moved_to: Some("/w/b".into()), ..Change::new("/w/a", DIR, Node::Absent) },
        Change::new("/w/a", Node::Absent, DIR),
        Change::new("/w/a/f", Node::Absent, file(b"other")),
    ];
    let files = [("/w/b/f", b"2".as_slice()), ("/w/a/f", b"other")];
    let files = files.map(|(path, bytes)| (path.into(), file(bytes)));
    (receipt, Tree::from([("/w/b".into(), DIR), ("/w/a".into(), DIR)]).into_iter().chain(files).collect())
}

#[test]
fn directory_is_moved_back_to_where_another_one_is_now() {
    let (receipt, tree) = moved();
    let plan = planned(std::slice::from_ref(&receipt), &tree);
    assert!(plan.conflicts.is_empty());
    let out = RestoreStep::MoveOut { from: "/w/b".into() };
    let back = RestoreStep::MoveIn { from: "/w/b".into(), to: "/w/a".into() };
    assert!(plan.restore.steps.contains(&out) && plan.restore.steps.contains(&back));
    let mut undone = tree.clone();
    perform(&mut undone, &plan.restore);
    let before = Tree::from([("/w/a".into(), DIR), ("/w/a/f".into(), file(b"0"))]);
    assert_eq!(undone, before);
    // The changes of an undo are recorded as those of any other call, and undone in the same way.
    let mut undo = blank_receipt();
    undo.id = 2;
    undo.changes = plan.restore.changes;
    let redo = planned(std::slice::from_ref(&undo), &undone);
    assert!(redo.conflicts.is_empty(), "{:?}", redo.conflicts);
    perform(&mut undone, &redo.restore);
    assert_eq!(undone, tree);
}

#[test]
fn directory_that_is_back_already_is_not_moved() {
    let (receipt, _) = moved();
    let tree = Tree::from([("/w/a".into(), DIR), ("/w/a/f".into(), file(b"0"))]);
    let mut receipt = receipt;
    receipt.changes.truncate(2);
    let plan = planned(std::slice::from_ref(&receipt), &tree);
    assert_eq!((plan.restore.steps, plan.conflicts), (Vec::new(), Vec::new()));
}

#[test]
fn occupied_path_or_missing_directory_is_a_conflict_that_cannot_be_forced() {
    let (mut receipt, mut tree) = moved();
    receipt.changes.truncate(2);
    tree.remove(Path::new("/w/a/f"));
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
    let (mut first, mut tree) = moved();
    first.changes.truncate(1);
    tree.retain(|path, _| !path.starts_with("/w/a"));
    let (mut second, _) = moved();
    second.id = 2;
    second.changes.truncate(2);
    second.changes[0] = Change::new("/w/a/f", file(b"by hand"), file(b"2"));
    let plan = planned(&[second, first], &tree);
    assert_eq!(plan.conflicts.len(), 1);
    assert_eq!((&plan.conflicts[0].expected, &plan.conflicts[0].found), (&file(b"2"), &file(b"by hand")));
}
