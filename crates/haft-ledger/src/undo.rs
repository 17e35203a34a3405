//! Planning an undo. Pure: it reads through a [`WorkspaceView`] and changes nothing.
//!
//! The calls are undone one after the other, the newest first, in a model of the file tree ([`VirtualTree`]). What the
//! model then differs in from the file system becomes the steps ([`crate::undo_steps`]), so that it does not matter in how
//! many calls or moves a directory came to its place.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::ops::Bound;
use std::path::{Path, PathBuf};

use haft_tool::{Change, FileId, Node, Receipt, ReceiptState, RestorePlan, ToolError};

use crate::WorkspaceView;
use crate::undo_steps::{StepPlanner, UndoDifference};
use crate::virtual_tree::{DirIndex, VirtualEntry, VirtualTree};

/// How to undo calls, and what prevents it.
#[derive(Debug, Clone, PartialEq)]
pub struct UndoPlan {
    /// What to do. Paths with a conflict are included, so that a forced undo only has to perform it.
    pub restore: RestorePlan,
    /// The paths that are not as the calls left them, or whose history has a gap.
    pub conflicts: Vec<UndoConflict>,
    /// The calls that cannot be undone, or not completely, and why.
    pub blocked: Vec<(i64, String)>,
}

/// A path whose state differs from the record.
#[derive(Debug, Clone, PartialEq)]
pub struct UndoConflict {
    /// The absolute path.
    pub path: PathBuf,
    /// The state that the call left.
    pub expected: Node,
    /// The state found: the current one, or the one recorded by the next call.
    pub found: Node,
    /// Whether it prevents moving a directory back, which cannot be forced.
    pub blocks_move: bool,
    /// Whether another program or call changed it while the call ran: `expected` may be theirs.
    pub contested: bool,
    /// Whether it has not changed, but would be run by programs after the undo although a call wrote it where it had no effect.
    pub is_unjudged: bool,
}

/// Plans how to restore every path that the receipts changed to its state before the oldest of them. The receipts may be
/// in any order.
pub fn plan(receipts: &[Receipt], view: &mut dyn WorkspaceView) -> Result<UndoPlan, ToolError> {
    let mut receipts: Vec<_> = receipts.iter().collect();
    receipts.sort_by_key(|receipt| Reverse(receipt.id));
    let mut planner = UndoPlanner {
        tree: VirtualTree::new(view),
        conflicts: BTreeMap::new(),
        blocked: receipts.iter().filter_map(|receipt| Some((receipt.id, obstacle(receipt)?))).collect(),
        same_files: HashMap::new(),
    };
    for receipt in receipts {
        planner.undo(receipt)?;
    }
    planner.finish()
}

/// Why a call cannot be undone as a whole.
fn obstacle(receipt: &Receipt) -> Option<String> {
    match &receipt.reversible {
        _ if receipt.state == ReceiptState::Running => Some("it is still running".to_owned()),
        haft_tool::Reversible::No { why } => Some(why.clone()),
        _ => None,
    }
}

/// What an undo of these changes cannot recreate.
pub(crate) fn unrestorable(changes: &[Change]) -> Option<String> {
    let mut lost = changes.iter().filter(|change| change.moved_to.is_none() && is_lost(&change.before));
    let first = lost.next()?;
    let (path, why) = (first.path.display(), why_lost(&first.before));
    Some(match lost.count() {
        0 => format!("{path} {why}"),
        more => format!("{path} {why}, and so for {more} more"),
    })
}

/// Whether a state cannot be recreated.
fn is_lost(node: &Node) -> bool {
    *node == Node::Special || node.as_file().is_some_and(|file| file.hash.is_empty())
}

fn why_lost(node: &Node) -> &'static str {
    match node {
        Node::File(_) => "was too large to be kept, or could not be read",
        _ => "was a device or socket, which cannot be recreated",
    }
}

/// The changes of a call to one path.
struct PathChange<'a> {
    path: &'a Path,
    before: &'a Node,
    after: &'a Node,
    /// Whether the state after the call may be that of another program or call.
    contested: bool,
    /// The states in which an interrupted call may have left the path.
    possible: Vec<&'a Node>,
}

impl PathChange<'_> {
    fn removes_directory(&self) -> bool {
        matches!(self.before, Node::Dir { .. }) && !matches!(self.after, Node::Dir { .. })
    }

    fn allows(&self, found: &Node) -> bool {
        if self.contested {
            return found.fully_same_as(self.before);
        }
        // A pipe or socket that is gone holds nothing that could be lost.
        let gone = matches!(self.after, Node::Special | Node::Fifo { .. }) && *found == Node::Absent;
        gone || found.same_as(self.after) || self.possible.iter().any(|state| found.same_as(state))
    }
}

/// The changes of a receipt.
#[derive(Default)]
struct ReceiptChanges<'a> {
    /// What existed before the call, by its path at that time.
    existing: BTreeMap<&'a Path, PathChange<'a>>,
    /// What did not, by its path after the call.
    created: BTreeMap<&'a Path, PathChange<'a>>,
    /// Moved directories: the path before, the path after.
    moves: BTreeMap<&'a Path, (&'a Node, &'a Path)>,
}

impl<'a> ReceiptChanges<'a> {
    fn new(receipt: &'a Receipt) -> Self {
        let mut changes = Self::default();
        let is_interrupted = receipt.state == ReceiptState::Interrupted;
        // The paths before and after a call that moved nothing are the same, so it may list a path more than once.
        let moves = receipt.changes.iter().any(|change| change.moved_to.is_some());
        for Change { path, before, after, moved_to, contested } in &receipt.changes {
            if let Some(to) = moved_to {
                changes.moves.insert(path, (before, to));
                continue;
            }
            let was_created = !moves && changes.created.contains_key(&**path);
            let existed = !moves && changes.existing.contains_key(&**path);
            let by_path = if existed || (*before != Node::Absent && !was_created) {
                &mut changes.existing
            } else {
                &mut changes.created
            };
            let new = PathChange { path, before, after, contested: false, possible: Vec::new() };
            let change = by_path.entry(path).or_insert(new);
            change.after = after;
            change.contested |= contested;
            if is_interrupted {
                change.possible.extend([before, after]);
            }
        }
        changes
    }
}

impl ReceiptChanges<'_> {
    /// Whether the call changed something below a directory that it created: another program had put it there.
    fn holds_foreign(&self, created: &Path) -> bool {
        let range = (Bound::Excluded(created), Bound::Unbounded);
        let next = self.existing.range::<Path, _>(range).next();
        next.is_some_and(|(path, _)| path.starts_with(created))
            // Else it is listed by its path before the directory above it was moved or removed.
            && !created.ancestors().any(|above| {
                self.moves.contains_key(above) || self.existing.get(above).is_some_and(PathChange::removes_directory)
            })
    }
}

struct UndoPlanner<'v> {
    tree: VirtualTree<'v>,
    /// The newest conflict of each entry.
    conflicts: BTreeMap<(DirIndex, OsString), UndoConflict>,
    blocked: Vec<(i64, String)>,
    /// Files with several names that are other files now, because they were restored since.
    same_files: HashMap<FileId, FileId>,
}

impl UndoPlanner<'_> {
    /// Undoes one call in the tree.
    fn undo(&mut self, receipt: &Receipt) -> Result<(), ToolError> {
        let changes = ReceiptChanges::new(receipt);
        // The paths of created entries and moved directories are those after the call, so they are looked up first.
        let mut created = Vec::new();
        for change in changes.created.values().rev() {
            // A directory in which files of other programs are restored stays.
            if changes.holds_foreign(change.path) {
                continue;
            }
            if let Some((dir, name)) = self.place(change.path) {
                created.push((dir, name, change));
            }
        }
        let mut moves = BTreeMap::new();
        for (from, (before, to)) in &changes.moves {
            moves.insert(*from, self.moved_directory(from, before, to)?);
        }
        for (dir, name, _) in moves.values().flatten() {
            // Its index keeps its place in the tree until it is attached again.
            self.tree.set(*dir, name, VirtualEntry::Leaf(Node::Absent));
        }
        for (dir, name, change) in created {
            self.undo_creation(dir, name, change)?;
        }
        // From the top down, because a directory that is restored may get back entries and moved directories.
        let mut existing = changes.existing.into_iter().peekable();
        for (from, moved) in moves {
            while let Some((_, change)) = existing.next_if(|(path, _)| *path < from) {
                self.restore_entry(receipt, &change)?;
            }
            if let Some((_, _, moved)) = moved {
                self.attach(from, moved)?;
            }
        }
        existing.try_for_each(|(_, change)| self.restore_entry(receipt, &change))
    }

    fn place<'p>(&mut self, path: &'p Path) -> Option<(DirIndex, &'p OsStr)> {
        let (parent, name) = path.parent().zip(path.file_name())?;
        Some((self.tree.dir(parent)?, name))
    }

    /// The place and the index of a directory that was moved; `None` if it is back already or cannot be moved back.
    fn moved_directory<'p>(
        &mut self,
        from: &Path,
        before: &Node,
        to: &'p Path,
    ) -> Result<Option<(DirIndex, &'p OsStr, DirIndex)>, ToolError> {
        let mut found = VirtualEntry::Leaf(Node::Absent);
        if let Some((dir, name)) = self.place(to) {
            found = self.tree.entry_left_as(dir, name, before)?;
            if let VirtualEntry::Dir(moved) = found {
                return Ok(Some((dir, name, moved)));
            }
        }
        let is_back = match self.place(from) {
            Some((dir, name)) => matches!(self.tree.entry(dir, name)?, VirtualEntry::Dir(_)),
            None => false,
        };
        if !is_back || found != VirtualEntry::Leaf(Node::Absent) {
            let found = self.tree.node(&found)?;
            self.add_blocking(to, before.clone(), found);
        }
        Ok(None)
    }

    /// Adds a conflict that cannot be forced.
    fn add_blocking(&mut self, path: &Path, expected: Node, found: Node) {
        let conflict = UndoConflict {
            path: path.to_owned(),
            expected,
            found,
            blocks_move: true,
            contested: false,
            is_unjudged: false,
        };
        // No entry of the tree has this index.
        self.conflicts.insert((usize::MAX, path.into()), conflict);
    }

    fn attach(&mut self, path: &Path, moved: DirIndex) -> Result<(), ToolError> {
        let Some((dir, name)) = self.place(path) else {
            self.add_blocking(path, Node::Absent, Node::Absent);
            return Ok(());
        };
        let found = self.tree.entry(dir, name)?;
        if found != VirtualEntry::Leaf(Node::Absent) {
            let found = self.tree.node(&found)?;
            self.add_blocking(path, Node::Absent, found);
            return Ok(());
        }
        self.tree.set(dir, name, VirtualEntry::Dir(moved));
        Ok(())
    }

    fn undo_creation(
        &mut self,
        dir: DirIndex,
        name: &OsStr,
        change: &PathChange<'_>,
    ) -> Result<(), ToolError> {
        let entry = self.entry(dir, name, change)?;
        if entry == VirtualEntry::Leaf(Node::Absent) {
            return Ok(());
        }
        let found = self.tree.node(&entry)?;
        self.check((dir, name), change, found);
        self.remove(dir, name, &entry)
    }

    /// An entry that a call changed. If it cannot be read, it is taken for what the call left; the undo itself reads it.
    fn entry(
        &mut self,
        dir: DirIndex,
        name: &OsStr,
        change: &PathChange<'_>,
    ) -> Result<VirtualEntry, ToolError> {
        let entry = self.tree.entry_left_as(dir, name, change.after)?;
        if matches!(entry, VirtualEntry::Dir(below) if self.tree.dirs[below].node.is_some()) {
            return Ok(entry);
        }
        let found = self.tree.node(&entry)?;
        let mut states = std::iter::once(change.after).chain(change.possible.iter().copied());
        let Some(state) = states.find(|state| found.may_be(state)) else { return Ok(entry) };
        self.tree.assume(dir, name, state.clone());
        Ok(if matches!(entry, VirtualEntry::Dir(_)) { entry } else { VirtualEntry::Leaf(state.clone()) })
    }

    /// Removes an entry, and everything that other programs or calls put into it.
    fn remove(&mut self, dir: DirIndex, name: &OsStr, entry: &VirtualEntry) -> Result<(), ToolError> {
        if let VirtualEntry::Dir(top) = entry {
            self.remove_foreign(*top)?;
        }
        self.tree.remove(dir, name);
        Ok(())
    }

    /// Removes what is still in a directory that the undo removes. Each is a conflict.
    fn remove_foreign(&mut self, top: DirIndex) -> Result<(), ToolError> {
        let mut todo = vec![top];
        while let Some(dir) = todo.pop() {
            for (name, entry) in self.tree.entries(dir)? {
                let found = self.tree.node(&entry)?;
                let path = self.tree.dirs[dir].now.clone().unwrap_or_default().join(&name);
                let conflict = UndoConflict {
                    path,
                    expected: Node::Absent,
                    found,
                    blocks_move: false,
                    contested: false,
                    is_unjudged: false,
                };
                self.conflicts.insert((dir, name.clone()), conflict);
                if let VirtualEntry::Dir(below) = entry {
                    todo.push(below);
                }
                self.tree.remove(dir, &name);
            }
        }
        Ok(())
    }

    fn restore_entry(&mut self, receipt: &Receipt, change: &PathChange<'_>) -> Result<(), ToolError> {
        let Some((dir, name)) = self.place(change.path) else {
            self.add_blocking(change.path, change.after.clone(), Node::Absent);
            return Ok(());
        };
        let entry = self.entry(dir, name, change)?;
        let found = self.tree.node(&entry)?;
        if found.fully_same_as(change.before) {
            let is_same_file = match (change.before.linked(), found.linked()) {
                (Some(then), Some(now)) => *self.same_files.entry(then).or_insert(now) == now,
                (then, now) => then == now,
            };
            if is_same_file {
                return Ok(());
            }
        }
        if is_lost(change.before) {
            let why = format!("{} {}", change.path.display(), why_lost(change.before));
            self.blocked.push((receipt.id, why));
            return Ok(());
        }
        self.check((dir, name), change, found);
        match (&entry, change.before) {
            (VirtualEntry::Dir(existing), Node::Dir { .. }) => {
                self.tree.dirs[*existing].node = Some(change.before.clone());
            }
            (_, Node::Dir { .. }) => self.tree.create(dir, name, change.before.clone()),
            (_, before) => {
                self.remove(dir, name, &entry)?;
                self.tree.set(dir, name, VirtualEntry::Leaf(before.clone()));
            }
        }
        Ok(())
    }

    /// Compares the state of an entry with the one that the call left.
    fn check(&mut self, (dir, name): (DirIndex, &OsStr), change: &PathChange<'_>, found: Node) {
        if change.allows(&found) {
            if let (Some(then), Some(now)) = (change.after.linked(), found.linked()) {
                self.same_files.entry(then).or_insert(now);
            }
            return;
        }
        let (path, expected) = (change.path.to_owned(), change.after.clone());
        let conflict = UndoConflict {
            path,
            expected,
            found,
            blocks_move: false,
            contested: change.contested,
            is_unjudged: false,
        };
        self.conflicts.entry((dir, name.to_owned())).or_insert(conflict);
    }

    fn finish(mut self) -> Result<UndoPlan, ToolError> {
        self.translate_links();
        let UndoDifference { restore, changed } = StepPlanner::new(self.tree).plan()?;
        // A path that is as it was before needs no undo, whatever happened to it since.
        let is_open = |place: &(DirIndex, OsString)| place.0 == usize::MAX || changed.contains(place);
        let conflicts = self.conflicts.into_iter().filter(|(place, _)| is_open(place));
        let mut conflicts: Vec<_> = conflicts.map(|(_, conflict)| conflict).collect();
        conflicts.sort_by(|a, b| a.path.cmp(&b.path));
        self.blocked.sort_by_key(|(id, _)| Reverse(*id));
        Ok(UndoPlan { restore, conflicts, blocked: self.blocked })
    }

    /// Lets restored names belong to the file that has taken the place of theirs.
    fn translate_links(&mut self) {
        let current = |mut file: FileId| {
            // Each file was replaced at most once per call that was undone.
            for _ in 0..=self.same_files.len() {
                match self.same_files.get(&file) {
                    Some(next) if *next != file => file = *next,
                    _ => break,
                }
            }
            file
        };
        for dir in &mut self.tree.dirs {
            for entry in dir.entries.values_mut() {
                if let VirtualEntry::Leaf(Node::File(node)) = entry {
                    node.linked = node.linked.map(&current);
                }
            }
        }
    }
}
