//! Conflicts and obstacles that the planning of an undo finds.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use haft_ledger::WorkspaceView;
use haft_ledger::undo::plan;
use haft_tool::{
    Change, FileId, Node, OpenContent, Receipt, ReceiptState, RestoreStep, Reversible, StagedStep, ToolError,
};

use crate::fixture::{blank_receipt, file};
use crate::undo::{Tree, perform, planned};

fn calls(changes: &[(i64, Node, Node)]) -> Vec<Receipt> {
    let call = |(id, before, after): &(i64, Node, Node)| {
        let mut receipt = blank_receipt();
        receipt.id = *id;
        receipt.changes = vec![Change::new("/w/a", before.clone(), after.clone())];
        receipt
    };
    changes.iter().map(call).collect()
}

fn tree_with(node: Node) -> Tree {
    Tree::from([(PathBuf::from("/w/a"), node)])
}

#[test]
fn file_changed_since_is_a_conflict_with_a_step_to_force_it() {
    let receipts = calls(&[(1, file(b"0"), file(b"1"))]);
    let plan = planned(&receipts, &tree_with(file(b"edited")));
    assert_eq!(plan.conflicts.len(), 1);
    assert_eq!((&plan.conflicts[0].expected, &plan.conflicts[0].found), (&file(b"1"), &file(b"edited")));
    assert_eq!(
        plan.restore.steps,
        [RestoreStep::Set { path: "/w/a".into(), expect: file(b"edited"), to: file(b"0") }]
    );
}

#[test]
fn gap_between_two_calls_is_a_conflict() {
    let receipts = calls(&[(1, file(b"0"), file(b"1")), (2, file(b"by hand"), file(b"2"))]);
    let plan = planned(&receipts, &tree_with(file(b"2")));
    assert_eq!(plan.conflicts.len(), 1);
    assert_eq!((&plan.conflicts[0].expected, &plan.conflicts[0].found), (&file(b"1"), &file(b"by hand")));
}

#[test]
fn restored_path_needs_no_step_and_is_no_conflict() {
    let receipts = calls(&[(1, file(b"0"), file(b"1"))]);
    let plan = planned(&receipts, &tree_with(file(b"0")));
    assert!(plan.restore.steps.is_empty() && plan.conflicts.is_empty());
}

#[test]
fn interrupted_call_may_or_may_not_have_made_its_change() {
    let mut receipts = calls(&[(1, file(b"0"), file(b"1")), (2, file(b"1"), file(b"2"))]);
    receipts[1].state = ReceiptState::Interrupted;
    for (now, conflicts) in [(b"1", 0), (b"2", 0), (b"3", 1)] {
        let plan = planned(&receipts, &tree_with(file(now)));
        assert_eq!(plan.conflicts.len(), conflicts);
        assert!(matches!(&plan.restore.steps[0], RestoreStep::Set { to, .. } if *to == file(b"0")));
    }
    // A later call may have found either state, too.
    receipts.extend(calls(&[(3, file(b"1"), file(b"3"))]));
    assert!(planned(&receipts, &tree_with(file(b"3"))).conflicts.is_empty());
}

#[test]
fn calls_that_cannot_be_undone_are_listed_with_the_reason() {
    let mut receipts = calls(&[(1, file(b"0"), file(b"1")), (2, file(b"1"), file(b"2"))]);
    receipts[0].reversible = Reversible::No { why: "it sent mail".into() };
    receipts[1].state = ReceiptState::Running;
    let mut fifo = blank_receipt();
    fifo.id = 3;
    fifo.changes = vec![Change::new("/w/fifo", Node::Special, Node::Absent)];
    receipts.push(fifo);
    let plan = planned(&receipts, &tree_with(file(b"2")));
    let blocked: Vec<_> = plan.blocked.iter().map(|(id, why)| (*id, why.as_str())).collect();
    assert_eq!(
        blocked,
        [
            (3, "/w/fifo was a device or socket, which cannot be recreated"),
            (2, "it is still running"),
            (1, "it sent mail")
        ]
    );
}

struct Unreadable;

impl WorkspaceView for Unreadable {
    fn observe(&mut self, _path: &Path) -> Result<Node, ToolError> {
        Err(ToolError::failed("no"))
    }

    fn file_id(&mut self, _path: &Path) -> Option<FileId> {
        None
    }

    fn entry_names(&mut self, _path: &Path) -> Result<Vec<OsString>, ToolError> {
        Err(ToolError::failed("no"))
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

#[test]
fn error_while_observing_ends_the_planning() {
    let receipts = calls(&[(1, file(b"0"), file(b"1"))]);
    let error = plan(&receipts, &mut Unreadable).unwrap_err();
    assert_eq!(error.message, "no");
}

#[test]
fn closed_directory_is_moved_back_and_opened() {
    let (before, after) = (Node::directory(0o755), Node::directory(0));
    let mut receipt = blank_receipt();
    receipt.changes = vec![
        Change::new("/w/d", before.clone(), after.clone()),
        Change { moved_to: Some("/w/g".into()), ..Change::new("/w/d", before.clone(), Node::Absent) },
    ];
    let mut tree = Tree::from([("/w/g".into(), after), ("/w/g/f".into(), file(b"1"))]);
    let plan = planned(&[receipt], &tree);
    assert_eq!(plan.conflicts, []);
    perform(&mut tree, &plan.restore);
    assert_eq!(tree, Tree::from([("/w/d".into(), before), ("/w/d/f".into(), file(b"1"))]));
}

#[test]
fn foreign_entries_of_a_directory_that_goes_are_conflicts() {
    let dir = Node::directory(0o755);
    let mut receipt = blank_receipt();
    receipt.id = 1;
    receipt.changes = vec![
        Change::new("/w/d", Node::Absent, dir.clone()),
        Change::new("/w/d/own", Node::Absent, file(b"own")),
    ];
    let tree = Tree::from([
        ("/w/d".into(), dir.clone()),
        ("/w/d/own".into(), file(b"own")),
        ("/w/d/sub".into(), dir),
        ("/w/d/sub/theirs".into(), file(b"theirs")),
    ]);
    let plan = planned(&[receipt], &tree);
    let paths: Vec<_> = plan.conflicts.iter().map(|conflict| conflict.path.to_str().unwrap()).collect();
    assert_eq!(paths, ["/w/d/sub", "/w/d/sub/theirs"]);
    let mut forced = tree;
    perform(&mut forced, &plan.restore);
    assert_eq!(forced, Tree::new());
}
