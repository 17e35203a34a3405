//! The file tree as it will be: directories and entries that an undo changes, over the tree as it is.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use haft_tool::{ErrorKind, Node, ToolError};

use crate::WorkspaceView;

/// A directory of the tree, by its index.
pub(crate) type DirIndex = usize;

/// A directory.
#[derive(Debug)]
pub(crate) struct VirtualDir {
    /// Its path in the file system; `None` if it has to be created.
    pub(crate) now: Option<PathBuf>,
    /// The state it will have; `None` if that does not change.
    pub(crate) node: Option<Node>,
    /// Where it will be; `None` if it is removed.
    pub(crate) place: Option<(DirIndex, OsString)>,
    /// Its entries that differ from those in the file system.
    pub(crate) entries: HashMap<OsString, VirtualEntry>,
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum VirtualEntry {
    Dir(DirIndex),
    /// Nothing, or something that is no directory.
    Leaf(Node),
}

/// The tree.
pub(crate) struct VirtualTree<'v> {
    view: &'v mut dyn WorkspaceView,
    pub(crate) dirs: Vec<VirtualDir>,
    /// The observed states of paths in the file system.
    seen: HashMap<PathBuf, Node>,
    /// Removed directories, by their paths in the file system.
    removed: HashMap<PathBuf, DirIndex>,
}

impl<'v> VirtualTree<'v> {
    const ROOT: DirIndex = 0;

    pub(crate) fn new(view: &'v mut dyn WorkspaceView) -> Self {
        let root = VirtualDir { now: Some("/".into()), node: None, place: None, entries: HashMap::new() };
        Self { view, dirs: vec![root], seen: HashMap::new(), removed: HashMap::new() }
    }

    /// The directory at `path`; `None` if there will be none. Directories on the way that no step changes are not observed.
    pub(crate) fn dir(&mut self, path: &Path) -> Option<DirIndex> {
        let mut dir = Self::ROOT;
        for part in path.components() {
            let Component::Normal(name) = part else { continue };
            dir = match self.dirs[dir].entries.get(name) {
                Some(VirtualEntry::Dir(below)) => *below,
                Some(VirtualEntry::Leaf(_)) => return None,
                None => {
                    let now = self.dirs[dir].now.as_ref()?.join(name);
                    self.add(dir, name, now)
                }
            };
        }
        Some(dir)
    }

    /// The entry of a directory.
    pub(crate) fn entry(&mut self, dir: DirIndex, name: &OsStr) -> Result<VirtualEntry, ToolError> {
        let known = self.dirs[dir].entries.get(name).cloned();
        let now = match &known {
            Some(leaf @ VirtualEntry::Leaf(_)) => return Ok(leaf.clone()),
            // A directory that was only passed on the way to an entry may not exist.
            Some(VirtualEntry::Dir(below)) if self.dirs[*below].node.is_none() => {
                self.dirs[*below].now.clone()
            }
            Some(VirtualEntry::Dir(below)) => return Ok(VirtualEntry::Dir(*below)),
            None => self.dirs[dir].now.as_ref().map(|now| now.join(name)),
        };
        let Some(now) = now else { return Ok(VirtualEntry::Leaf(Node::Absent)) };
        match (self.observe(&now)?, known) {
            (Node::Dir { .. }, Some(known)) => Ok(known),
            (Node::Dir { .. }, None) => Ok(VirtualEntry::Dir(self.add(dir, name, now))),
            (leaf, _) => Ok(VirtualEntry::Leaf(leaf)),
        }
    }

    /// The same for an entry that a call left as `expected`. If it cannot be observed, because a directory above it is closed, it
    /// is taken for that; the undo itself opens the directory and observes it.
    pub(crate) fn entry_left_as(
        &mut self,
        dir: DirIndex,
        name: &OsStr,
        expected: &Node,
    ) -> Result<VirtualEntry, ToolError> {
        match self.entry(dir, name) {
            Err(error) if error.kind == ErrorKind::PermissionDenied => {
                self.assume(dir, name, expected.clone());
                self.entry(dir, name)
            }
            entry => entry,
        }
    }

    /// The node of an entry; of a directory, the one it will have.
    pub(crate) fn node(&mut self, entry: &VirtualEntry) -> Result<Node, ToolError> {
        match entry {
            VirtualEntry::Leaf(node) => Ok(node.clone()),
            VirtualEntry::Dir(dir) => match (&self.dirs[*dir].node, &self.dirs[*dir].now) {
                (Some(node), _) => Ok(node.clone()),
                (None, Some(now)) => self.observe(&now.clone()),
                (None, None) => Ok(Node::Absent),
            },
        }
    }

    /// The state of a path in the file system.
    pub(crate) fn observe(&mut self, path: &Path) -> Result<Node, ToolError> {
        if let Some(node) = self.seen.get(path) {
            return Ok(node.clone());
        }
        let node = self.view.observe(path)?;
        self.seen.insert(path.to_owned(), node.clone());
        Ok(node)
    }

    /// The state in the file system of an entry that a directory has there.
    pub(crate) fn observe_entry(&mut self, dir: DirIndex, name: &OsStr) -> Result<Node, ToolError> {
        match self.dirs[dir].now.as_ref().map(|now| now.join(name)) {
            Some(now) => self.observe(&now),
            None => Ok(Node::Absent),
        }
    }

    /// Takes the entry for `node` in the file system. A directory that is moved back there is still at another path.
    pub(crate) fn assume(&mut self, dir: DirIndex, name: &OsStr, node: Node) {
        let now = match self.dirs[dir].entries.get(name) {
            Some(VirtualEntry::Dir(below)) => self.dirs[*below].now.clone(),
            _ => self.dirs[dir].now.as_ref().map(|now| now.join(name)),
        };
        if let Some(now) = now {
            self.seen.insert(now, node);
        }
    }

    /// Replaces the entry. A directory that was there is removed, but not its entries.
    pub(crate) fn set(&mut self, dir: DirIndex, name: &OsStr, entry: VirtualEntry) {
        if let Some(VirtualEntry::Dir(old)) = self.dirs[dir].entries.get(name).cloned()
            && entry != VirtualEntry::Dir(old)
        {
            self.dirs[old].place = None;
        }
        if let VirtualEntry::Dir(new) = entry {
            self.dirs[new].place = Some((dir, name.to_owned()));
        }
        self.dirs[dir].entries.insert(name.to_owned(), entry);
    }

    /// Removes an entry.
    pub(crate) fn remove(&mut self, dir: DirIndex, name: &OsStr) {
        if let Some(VirtualEntry::Dir(old)) = self.dirs[dir].entries.get(name)
            && let Some(now) = self.dirs[*old].now.clone()
        {
            self.removed.insert(now, *old);
        }
        self.set(dir, name, VirtualEntry::Leaf(Node::Absent));
    }

    /// Adds a directory: one that has to be created, or the removed one that is there in the file system.
    pub(crate) fn create(&mut self, dir: DirIndex, name: &OsStr, node: Node) {
        let now = self.dirs[dir].now.as_ref().map(|now| now.join(name));
        if let Some(existing) = now.and_then(|now| self.removed.remove(&now)) {
            self.dirs[existing].node = Some(node);
            self.set(dir, name, VirtualEntry::Dir(existing));
            return;
        }
        if let Some(VirtualEntry::Dir(passed)) = self.dirs[dir].entries.get(name).cloned() {
            self.dirs[passed].node = Some(node);
            self.mark_missing(passed);
            return;
        }
        let new = VirtualDir { now: None, node: Some(node), place: None, entries: HashMap::new() };
        self.dirs.push(new);
        self.set(dir, name, VirtualEntry::Dir(self.dirs.len() - 1));
    }

    /// Notes that a directory that was passed on the way to an entry does not exist, nor do those that were passed below it.
    fn mark_missing(&mut self, top: DirIndex) {
        let mut missing = vec![top];
        while let Some(dir) = missing.pop() {
            let Some(now) = self.dirs[dir].now.take() else { continue };
            for (name, entry) in &self.dirs[dir].entries {
                if let VirtualEntry::Dir(below) = entry
                    && self.dirs[*below].now == Some(now.join(name))
                {
                    missing.push(*below);
                }
            }
        }
    }

    fn add(&mut self, dir: DirIndex, name: &OsStr, now: PathBuf) -> DirIndex {
        let place = Some((dir, name.to_owned()));
        self.dirs.push(VirtualDir { now: Some(now), node: None, place, entries: HashMap::new() });
        let new = self.dirs.len() - 1;
        self.dirs[dir].entries.insert(name.to_owned(), VirtualEntry::Dir(new));
        new
    }

    /// The entries that a directory will have, as far as it can be listed: the undo itself opens it, and fails if there are
    /// others in a directory that it removes.
    pub(crate) fn entries(&mut self, dir: DirIndex) -> Result<Vec<(OsString, VirtualEntry)>, ToolError> {
        let mut names: Vec<OsString> = self.dirs[dir].entries.keys().cloned().collect();
        if let Some(now) = &self.dirs[dir].now {
            match self.view.entry_names(now) {
                Err(error) if error.kind == ErrorKind::PermissionDenied => {}
                found => names.extend(found?),
            }
        }
        names.sort_unstable();
        names.dedup();
        let mut entries = Vec::new();
        for name in names {
            let entry = self.entry(dir, &name)?;
            if entry != VirtualEntry::Leaf(Node::Absent) {
                entries.push((name, entry));
            }
        }
        Ok(entries)
    }

    /// Whether a directory will be somewhere.
    pub(crate) fn is_kept(&self, mut dir: DirIndex) -> bool {
        while let Some((parent, _)) = &self.dirs[dir].place {
            dir = *parent;
        }
        dir == Self::ROOT
    }

    /// The path that a directory will have.
    pub(crate) fn target(&self, dir: DirIndex) -> PathBuf {
        let (mut names, mut dir) = (Vec::new(), dir);
        while let Some((parent, name)) = &self.dirs[dir].place {
            names.push(name);
            dir = *parent;
        }
        let mut path = PathBuf::from("/");
        path.extend(names.into_iter().rev());
        path
    }
}
