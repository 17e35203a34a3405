//! From the tree that an undo restores to steps, each of which is possible when those before it have been performed.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use haft_tool::{Change, DirNode, ErrorKind, Node, RestorePlan, RestoreStep, ToolError};

use crate::virtual_tree::{DirIndex, VirtualDir, VirtualEntry, VirtualTree};

/// The permissions that the owner of a directory needs to list and to change its entries.
const OWNER_ALL: u32 = 0o700;

/// What has to be done.
pub(crate) struct UndoDifference {
    pub(crate) restore: RestorePlan,
    /// The entries that change.
    pub(crate) changed: HashSet<(DirIndex, OsString)>,
}

pub(crate) struct StepPlanner<'v> {
    tree: VirtualTree<'v>,
    /// Directories that are moved, by their current paths.
    moved: HashMap<PathBuf, DirIndex>,
    /// Directories whose entries change.
    busy: HashSet<DirIndex>,
    /// In paths before the moves.
    removed: Vec<RestoreStep>,
    replaced: Vec<RestoreStep>,
    /// In paths after the moves.
    filled: Vec<RestoreStep>,
    existing: Vec<Change>,
    created: Vec<Change>,
    changed: HashSet<(DirIndex, OsString)>,
}

fn set(path: impl Into<PathBuf>, expect: &Node, to: &Node) -> RestoreStep {
    RestoreStep::Set { path: path.into(), expect: expect.clone(), to: to.clone() }
}

impl<'v> StepPlanner<'v> {
    pub(crate) fn new(tree: VirtualTree<'v>) -> Self {
        Self {
            tree,
            moved: HashMap::new(),
            busy: HashSet::new(),
            removed: Vec::new(),
            replaced: Vec::new(),
            filled: Vec::new(),
            existing: Vec::new(),
            created: Vec::new(),
            changed: HashSet::new(),
        }
    }

    pub(crate) fn plan(mut self) -> Result<UndoDifference, ToolError> {
        self.find_moves();
        for dir in 0..self.tree.dirs.len() {
            let mut names: Vec<OsString> = self.tree.dirs[dir].entries.keys().cloned().collect();
            names.sort_unstable();
            for name in names {
                self.add_entry(dir, &name)?;
            }
        }
        self.open_ancestors()?;
        let steps = self.steps()?;
        let by_path = |a: &Change, b: &Change| a.path.cmp(&b.path);
        self.created.sort_by(by_path);
        let mut changes = self.existing;
        let mut moves = Vec::new();
        for (now, dir) in &self.moved {
            let target = self.tree.target(*dir);
            let before = self.tree.observe(now)?;
            if let Some(node) = self.tree.dirs[*dir].node.clone().filter(|node| *node != before) {
                changes.push(Change::new(now, before.clone(), node));
            }
            moves.push(Change { moved_to: Some(target), ..Change::new(now, before, Node::Absent) });
        }
        changes.sort_by(by_path);
        moves.sort_by(by_path);
        changes.extend(moves);
        changes.extend(self.created);
        Ok(UndoDifference { restore: RestorePlan { steps, changes }, changed: self.changed })
    }

    /// The current path of the entry of a directory, if that exists.
    fn now(&self, dir: DirIndex, name: &OsString) -> Option<PathBuf> {
        self.tree.dirs[dir].now.as_ref().map(|now| now.join(name))
    }

    fn find_moves(&mut self) {
        for (index, dir) in self.tree.dirs.iter().enumerate() {
            let VirtualDir { now: Some(now), place: Some((parent, name)), .. } = dir else { continue };
            if self.now(*parent, name).as_ref() != Some(now) && self.tree.is_kept(index) {
                self.moved.insert(now.clone(), index);
            }
        }
        let by_path: HashMap<&Path, DirIndex> = self
            .tree
            .dirs
            .iter()
            .enumerate()
            .filter_map(|(dir, node)| Some((node.now.as_deref()?, dir)))
            .collect();
        for (now, dir) in &self.moved {
            // The directory itself is written to as well: its entry `..` changes.
            let new_parent = self.tree.dirs[*dir].place.as_ref().map(|(parent, _)| *parent);
            let old_parent = now.parent().and_then(|parent| by_path.get(parent).copied());
            self.busy.extend([Some(*dir), new_parent, old_parent].into_iter().flatten());
        }
    }

    /// Lets directories be opened whose modes would keep the steps in them from being performed.
    fn open_ancestors(&mut self) -> Result<(), ToolError> {
        for mut dir in 0..self.tree.dirs.len() {
            if !self.busy.contains(&dir) && !self.has_new_state(dir)? {
                continue;
            }
            while let Some((parent, _)) = &self.tree.dirs[dir].place {
                dir = *parent;
                if self.tree.dirs[dir].node.is_some() && !self.busy.insert(dir) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Whether a directory will have another state than now.
    fn has_new_state(&mut self, dir: DirIndex) -> Result<bool, ToolError> {
        let VirtualDir { now, node: Some(node), .. } = &self.tree.dirs[dir] else { return Ok(false) };
        let (now, node) = (now.clone(), node.clone());
        Ok(match now {
            Some(now) => self.tree.observe(&now)? != node,
            None => true,
        })
    }

    /// Adds what happens to one entry.
    fn add_entry(&mut self, dir: DirIndex, name: &OsString) -> Result<(), ToolError> {
        let now_path = self.now(dir, name);
        let is_moved = now_path.as_ref().is_some_and(|now| self.moved.contains_key(now));
        let entry = self.tree.dirs[dir].entries[name].clone();
        let (is_same_dir, new) = match &entry {
            VirtualEntry::Dir(below) => {
                let VirtualDir { now, node, .. } = &self.tree.dirs[*below];
                let is_same = now.is_some() && *now == now_path;
                if is_same && node.is_none() {
                    return Ok(());
                }
                (is_same, node.clone().filter(|_| now.is_none() || is_same).unwrap_or(Node::Absent))
            }
            VirtualEntry::Leaf(node) => (false, node.clone()),
        };
        let new = if self.tree.is_kept(dir) { new } else { Node::Absent };
        let old = if is_moved { Node::Absent } else { self.tree.observe_entry(dir, name)? };
        if old.fully_same_as(&new) && old.linked() == new.linked() {
            return Ok(());
        }
        self.changed.insert((dir, name.clone()));
        let target = self.tree.target(dir).join(name);
        match now_path.filter(|_| old != Node::Absent) {
            Some(now) => self.existing.push(Change::new(now, old.clone(), new.clone())),
            None => self.created.push(Change::new(&target, Node::Absent, new.clone())),
        }
        if is_same_dir {
            return Ok(());
        }
        self.busy.insert(dir);
        self.add_leaf_steps(self.now(dir, name), &target, &old, &new);
        Ok(())
    }

    fn add_leaf_steps(&mut self, now: Option<PathBuf>, target: &Path, old: &Node, new: &Node) {
        let is_dir = |node: &Node| matches!(node, Node::Dir { .. });
        let old_leaf = now.filter(|_| *old != Node::Absent && !is_dir(old));
        let is_new_leaf = *new != Node::Absent && !is_dir(new);
        match old_leaf {
            Some(path) if !is_new_leaf => self.removed.push(set(path, old, &Node::Absent)),
            Some(path) => self.replaced.push(set(path, old, new)),
            None if is_new_leaf => self.filled.push(set(target, &Node::Absent, new)),
            None => {}
        }
    }

    fn steps(&mut self) -> Result<Vec<RestoreStep>, ToolError> {
        let (mut opened, mut closed, mut gone, mut placed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for dir in 0..self.tree.dirs.len() {
            let is_kept = self.tree.is_kept(dir);
            let VirtualDir { now, node, .. } = &self.tree.dirs[dir];
            // One that is created or removed is itself written to when it is moved to or from its slot.
            let is_busy = self.busy.contains(&dir) || now.is_none() || !is_kept;
            let (now, node) = (now.clone(), node.clone());
            let open = |node: &Node| match node {
                Node::Dir(node) if is_busy => {
                    Node::Dir(DirNode { mode: node.mode | OWNER_ALL, ..node.clone() })
                }
                node => node.clone(),
            };
            let Some(now) = now else {
                if let Some(node) = node.filter(|_| is_kept) {
                    let target = self.tree.target(dir);
                    placed.push((target.clone(), set(&target, &Node::Absent, &open(&node))));
                    closed.extend((open(&node) != node).then(|| set(target, &open(&node), &node)));
                }
                continue;
            };
            if is_kept && node.is_none() && !is_busy {
                continue;
            }
            let old = match self.tree.observe(&now) {
                // Below a closed directory; it is not known to be closed itself.
                Err(error) if error.kind == ErrorKind::PermissionDenied && is_kept && node.is_none() => {
                    continue;
                }
                old => old?,
            };
            if !matches!(old, Node::Dir { .. }) {
                continue;
            }
            opened.extend((open(&old) != old).then(|| set(&now, &old, &open(&old))));
            if is_kept {
                let new = node.unwrap_or_else(|| old.clone());
                closed.extend((open(&old) != new).then(|| set(self.tree.target(dir), &open(&old), &new)));
            } else {
                gone.push((now, open(&old)));
            }
        }
        let by_path = |a: &RestoreStep, b: &RestoreStep| a.path().cmp(b.path());
        opened.sort_by(by_path);
        closed.sort_by(by_path);
        closed.reverse();
        self.filled.sort_by(by_path);
        gone.sort_by(|(a, _), (b, _)| b.cmp(a));
        let (gone, mut gone_in_moved) = self.divide_removals(gone);
        let mut out: Vec<_> =
            self.moved.keys().map(|from| RestoreStep::MoveOut { from: from.clone() }).collect();
        out.sort_by(by_path);
        out.reverse();
        for (from, dir) in &self.moved {
            let to = self.tree.target(*dir);
            placed.push((to.clone(), RestoreStep::MoveIn { from: from.clone(), to }));
        }
        placed.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut steps = opened;
        steps.append(&mut self.removed);
        steps.append(&mut self.replaced);
        steps.extend(out);
        steps.extend(gone);
        for (_, step) in placed {
            let removals = match &step {
                RestoreStep::MoveIn { from, .. } => gone_in_moved.remove(from).unwrap_or_default(),
                _ => Vec::new(),
            };
            steps.push(step);
            steps.extend(removals);
        }
        steps.append(&mut self.filled);
        steps.extend(closed);
        Ok(steps)
    }

    /// Divides removed directories into those that stay where they are until they are removed, and those that move with
    /// another one first, by the path of that.
    fn divide_removals(
        &self,
        gone: Vec<(PathBuf, Node)>,
    ) -> (Vec<RestoreStep>, HashMap<PathBuf, Vec<RestoreStep>>) {
        let (mut here, mut in_moved) = (Vec::new(), HashMap::<PathBuf, Vec<RestoreStep>>::new());
        for (path, node) in gone {
            match path.ancestors().skip(1).find(|above| self.moved.contains_key(*above)) {
                None => here.push(set(path, &node, &Node::Absent)),
                Some(moved) => {
                    let target = self.tree.target(self.moved[moved]);
                    let rest = path.strip_prefix(moved).unwrap_or(&path);
                    let step = set(target.join(rest), &node, &Node::Absent);
                    in_moved.entry(moved.to_owned()).or_default().push(step);
                }
            }
        }
        (here, in_moved)
    }
}
