//! Taking back calls that moved directories, against the model of a file tree and a witness like the real one.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use haft_ledger::undo::Step;
use haft_ledger::{Look, Spool};
use haft_tool::{Change, FileContent, FileId, Node, Receipt, State, ToolError};
use proptest::prelude::*;

use crate::setting::{call, change, file, setting};
use crate::undo::{Deed, Tree, at, deed, done, name, perform, planned};

const DIR: Node = Node::Dir { mode: 0o755 };

/// The witness of one call: what stood at a path before its first touch, sealed at every move.
#[derive(Default)]
struct Witness {
    touched: BTreeMap<PathBuf, Node>,
    changes: Vec<Change>,
}

impl Witness {
    fn is_new(&self, path: &Path) -> bool {
        path.ancestors().skip(1).any(|above| self.touched.get(above) == Some(&Node::Absent))
    }

    /// Keeps what stands at a path; not below a directory that the call made.
    fn touch(&mut self, tree: &Tree, path: &Path, spool: Option<&mut Spool>) {
        if self.is_new(path) || self.touched.contains_key(path) {
            return;
        }
        self.touched.insert(path.to_owned(), at(tree, path));
        if let Some(spool) = spool {
            spool.keep(path, &at(tree, path), FileContent::None).unwrap();
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

    /// Does a deed the way a program would, one system call after the other.
    fn watch(&mut self, tree: &Tree, deed: &Deed, mut spool: Option<&mut Spool>) -> Tree {
        let after = done(tree, deed);
        if after == *tree {
            return after;
        }
        if let Deed::Rename(from, to) = deed
            && matches!(at(tree, &name(*from)), Node::Dir { .. })
        {
            let (from, to) = (name(*from), name(*to));
            let made_here = self.is_new(&from) || self.touched.get(&from) == Some(&Node::Absent);
            if !made_here {
                self.seal(tree);
                if let Some(spool) = spool {
                    spool.moving(&from, &to).unwrap();
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
        // What is made, is made from above; what goes, goes from below, and is noted before.
        let changed = |path: &&&PathBuf| at(tree, path) != at(&after, path);
        for path in paths.iter().filter(changed) {
            self.touch(tree, path, spool.as_deref_mut());
        }
        after
    }
}

/// Calls of a few deeds each, with the trees before them.
fn witnessed(deeds: &[Vec<Deed>]) -> (Vec<Tree>, Vec<Receipt>) {
    let (mut trees, mut receipts) = (vec![Tree::new()], Vec::new());
    for (id, deeds) in (1..).zip(deeds) {
        let mut tree = trees[trees.len() - 1].clone();
        let mut witness = Witness::default();
        for deed in deeds {
            tree = witness.watch(&tree, deed, None);
        }
        witness.seal(&tree);
        let mut receipt = call("session");
        receipt.id = id;
        receipt.changes = witness.changes;
        receipts.push(receipt);
        trees.push(tree);
    }
    (trees, receipts)
}

/// Deeds that need no directory to be opened first, which a witness of whole calls does not note.
fn open_deed() -> impl Strategy<Value = Deed> {
    deed().prop_map(|deed| match deed {
        Deed::MakeDir(n, _) => Deed::MakeDir(n, 0o755),
        Deed::Chmod(n, mode) => Deed::Chmod(n, mode | 0o700),
        other => other,
    })
}

struct Model<'a>(&'a Tree);

impl Look for Model<'_> {
    fn observe(&mut self, path: &Path) -> Result<Node, ToolError> {
        Ok(at(self.0, path))
    }

    fn names(&mut self, path: &Path) -> Result<Vec<OsString>, ToolError> {
        let below = self.0.keys().filter(|below| below.parent() == Some(path));
        Ok(below.filter_map(|below| Some(below.file_name()?.to_owned())).collect())
    }

    fn find(&mut self, _files: HashSet<FileId>, _not: &HashSet<&Path>) -> HashMap<FileId, PathBuf> {
        HashMap::new()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn calls_that_moved_directories_taken_back_leave_the_tree_as_it_was_before_them(
        deeds in prop::collection::vec(prop::collection::vec(open_deed(), 1..8), 1..8),
        chosen in any::<prop::sample::Index>(),
    ) {
        let (trees, receipts) = witnessed(&deeds);
        let now = &trees[deeds.len()];
        for keep in [0, chosen.index(deeds.len())] {
            let plan = planned(&receipts[keep..], now);
            prop_assert!(plan.conflicts.is_empty(), "{:?}", plan.conflicts);
            let mut tree = now.clone();
            plan.steps.iter().for_each(|step| perform(&mut tree, step));
            prop_assert_eq!(&tree, &trees[keep]);
        }
    }

}

/// Lets a command do its deeds and Haft die with it, and takes back what the next recovery finds.
fn recovered_and_taken_back(start: &[Deed], deeds: &[Deed]) {
    let start = start.iter().fold(Tree::new(), |tree, deed| done(&tree, deed));
    let set = setting();
    let mut receipt = set.call();
    set.ledger.begin(&mut receipt).unwrap();
    let mut spool = set.ledger.spool(receipt.id).unwrap();
    let mut witness = Witness::default();
    let now = deeds.iter().fold(start.clone(), |tree, deed| witness.watch(&tree, deed, Some(&mut spool)));
    drop(spool);
    set.meddle("UPDATE running SET owner = '1 1 another-boot -'");
    let recovered = set.ledger.recover(&mut Model(&now)).unwrap();
    assert_eq!(recovered.len(), 1);
    let receipt = set.ledger.receipt(receipt.id).unwrap();
    assert_eq!(receipt.state, State::Interrupted);
    let plan = planned(&[receipt], &now);
    assert!(plan.conflicts.is_empty(), "{:?}", plan.conflicts);
    let mut tree = now.clone();
    plan.steps.iter().for_each(|step| perform(&mut tree, step));
    assert_eq!(&tree, &start);
    assert_eq!(std::fs::read_dir(set.home().join("spool")).unwrap().count(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn what_a_dead_command_changed_is_told_from_its_spool_and_can_be_taken_back(
        start in prop::collection::vec(open_deed(), 0..20),
        deeds in prop::collection::vec(open_deed(), 1..20),
    ) {
        recovered_and_taken_back(&start, &deeds);
    }
}

#[test]
fn what_a_dead_command_made_before_a_move_and_removed_behind_it_is_not_in_the_way() {
    let deeds = [Deed::MakeDir(2, 0o755), Deed::Write(4, 0), Deed::Rename(0, 5), Deed::Remove(2)];
    recovered_and_taken_back(&[Deed::MakeDir(0, 0o755)], &deeds);
}

/// A call that changed /w/a/f, moved /w/a to /w/b and changed /w/b/f again.
fn moved() -> (Receipt, Tree) {
    let mut receipt = call("session");
    receipt.id = 1;
    receipt.changes = vec![
        change("/w/a/f", file(b"0"), file(b"1")),
        Change { moved_to: Some("/w/b".into()), ..change("/w/a", DIR, Node::Absent) },
        change("/w/b/f", file(b"1"), file(b"2")),
    ];
    let tree = Tree::from([("/w/b".into(), DIR), ("/w/b/f".into(), file(b"2"))]);
    (receipt, tree)
}

#[test]
fn a_directory_is_moved_back_between_what_came_behind_and_what_came_before() {
    let (receipt, tree) = moved();
    let plan = planned(std::slice::from_ref(&receipt), &tree);
    let put = |path: &str, expect: &[u8], to: &[u8]| Step::Put {
        path: path.into(),
        expect: file(expect),
        to: file(to),
    };
    let back = Step::MoveBack { from: "/w/b".into(), to: "/w/a".into() };
    assert_eq!(plan.steps, [put("/w/b/f", b"2", b"1"), back, put("/w/a/f", b"1", b"0")]);
    assert!(plan.conflicts.is_empty());
}

#[test]
fn what_was_moved_back_already_is_put_back_where_it_is() {
    let (receipt, _) = moved();
    let tree = Tree::from([("/w/a".into(), DIR), ("/w/a/f".into(), file(b"1"))]);
    let plan = planned(std::slice::from_ref(&receipt), &tree);
    assert!(plan.steps.iter().all(|step| matches!(step, Step::Put { .. })), "{:?}", plan.steps);
}

#[test]
fn a_taken_place_or_a_missing_directory_is_a_conflict_that_cannot_be_forced() {
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
fn a_change_by_hand_between_two_calls_is_seen_through_the_move() {
    let (mut first, tree) = moved();
    let mut second = first.clone();
    second.id = 2;
    second.changes = first.changes.split_off(1);
    second.changes[1].before = file(b"by hand");
    let plan = planned(&[second, first], &tree);
    assert_eq!(plan.conflicts.len(), 1);
    assert_eq!((&plan.conflicts[0].expected, &plan.conflicts[0].found), (&file(b"1"), &file(b"by hand")));
}
