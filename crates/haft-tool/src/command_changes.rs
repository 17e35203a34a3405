//! Derives a command's changes from the states of paths before its first change to them and from the directories that it
//! created, removed and moved.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::{Change, DirectoryTracker, FileId, Node, ToolError};

/// What a command is about to do to a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectoryEvent<'a> {
    /// Create it.
    Created(&'a Path),
    /// Remove it.
    Removed(&'a Path),
    /// Move it, with everything in it, to a free path.
    Moved {
        /// Its path.
        from: &'a Path,
        /// Its new path.
        to: &'a Path,
        /// Its state.
        node: &'a Node,
    },
}

/// The state of a path, and which file it is if it is a regular file and that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathState {
    /// The state.
    pub node: Node,
    /// The file.
    pub file: Option<FileId>,
}

impl PathState {
    /// Nothing is there.
    pub const ABSENT: Self = Self { node: Node::Absent, file: None };
}

/// Reads the states after a command.
pub trait CommandView {
    /// The state of a path, links not followed.
    fn observe(&mut self, path: &Path) -> Result<PathState, ToolError>;

    /// Passes everything that the command created below a new directory to `visit`, a directory before its entries. `visit`
    /// returns whether to enter a directory.
    fn visit_new(&mut self, path: &Path, visit: &mut dyn FnMut(PathBuf, Node) -> bool);
}

/// What is known about a command's changes while it runs. Entries are stored under their paths before the command.
#[derive(Debug, Default)]
pub struct CommandChanges {
    dirs: DirectoryTracker,
    previous: HashMap<PathBuf, PathState>,
    /// The previous states of directories that were moved.
    moved: HashMap<PathBuf, Node>,
    /// The previous states of what other programs put into new directories, by their current paths.
    in_new: BTreeMap<PathBuf, PathState>,
    /// For each path, the last regular file that the command put there or opened there for writing.
    used: HashMap<PathBuf, FileId>,
    /// Paths at which the command found a file that neither was there before nor is its own.
    contested: HashSet<PathBuf>,
}

impl CommandChanges {
    /// The directories.
    pub fn directories(&self) -> &DirectoryTracker {
        &self.dirs
    }

    /// The path under which the state of the entry at `path` must be stored before it changes; `None` if it is stored already
    /// or the entry is in a new directory.
    pub fn unstored(&self, path: &Path) -> Option<PathBuf> {
        if self.dirs.is_moved(path) {
            return None;
        }
        self.key(path).filter(|key| !self.previous.contains_key(key))
    }

    /// Stores the previous state of an entry under a path from [`Self::unstored`].
    pub fn store(&mut self, key: PathBuf, state: PathState) {
        self.previous.entry(key).or_insert(state);
    }

    /// Whether the previous state of an entry of a new directory is stored.
    pub fn is_stored_in_new(&self, path: &Path) -> bool {
        self.in_new.contains_key(path)
    }

    /// Stores the previous state of an entry of a new directory, if the entry, or the file that it gets, is not the command's.
    pub fn store_in_new(&mut self, path: PathBuf, state: PathState) {
        self.in_new.entry(path).or_insert(state);
    }

    /// Notes that the command put a file at `former`.
    pub fn put(&mut self, former: PathBuf, file: FileId) {
        self.used.insert(former, file);
    }

    /// Notes that the command opened the file at `former` for writing.
    pub fn opened(&mut self, former: PathBuf, file: FileId) {
        let before = self.previous.get(&former).and_then(|state| state.file);
        if self.used.get(&former).copied().or(before).is_some_and(|expected| expected != file) {
            self.contested.insert(former.clone());
        }
        self.used.insert(former, file);
    }

    /// Whether the file at `former` after the command is not the one that the command left there.
    fn is_contested(&self, former: &Path, before: &PathState, after: &PathState) -> bool {
        let left = self.used.get(former).copied().or(before.file);
        self.contested.contains(former) || after.file.is_some_and(|file| left != Some(file))
    }

    /// Forgets an entry that neither existed before nor exists now, such as a temporary file. Returns whether it is no longer
    /// stored.
    pub fn forget_if_absent(&mut self, former: &Path, exists: impl FnOnce(&Path) -> bool) -> bool {
        match self.previous.get(former) {
            None => true,
            Some(before) if before.node != Node::Absent => false,
            Some(_) if self.current_path(former).is_some_and(|current| exists(&current)) => false,
            Some(_) => {
                self.used.remove(former);
                self.previous.remove(former).is_some()
            }
        }
    }

    /// The stored previous states, by the path before the command.
    pub fn stored(&self) -> impl Iterator<Item = (&Path, &Node)> {
        self.previous.iter().map(|(path, state)| (path.as_path(), &state.node))
    }

    /// The stored previous state of what was at `former`, moved directories included.
    pub fn stored_at(&self, former: &Path) -> Option<&Node> {
        // After a move, what is stored for the former path may be about another entry.
        self.moved.get(former).or_else(|| self.previous.get(former).map(|state| &state.node))
    }

    /// The path before the command of the entry that is at `path` now; `None` if its directory is new.
    pub fn former_entry(&self, path: &Path) -> Option<PathBuf> {
        self.key(path)
    }

    /// Notes that the removed directory that was at `former` is there again.
    pub fn restored_directory(&mut self, former: &Path) {
        self.dirs.restored(former);
    }

    /// Notes what happens to a directory. The states of the entries must be stored before.
    pub fn apply(&mut self, event: DirectoryEvent<'_>) {
        match event {
            DirectoryEvent::Created(path) => self.dirs.created(path),
            DirectoryEvent::Removed(path) => self.dirs.removed(path),
            DirectoryEvent::Moved { from, to, node } => {
                if let Some(former) = self.dirs.former_path(from)
                    && !self.dirs.is_tracked(&former)
                {
                    // From now on, the former path belongs to another entry.
                    let stored = self.previous.remove(&former);
                    let before = stored.map_or_else(|| node.clone(), |state| state.node);
                    self.moved.insert(former, before);
                }
                let below: Vec<PathBuf> =
                    self.in_new.keys().filter(|path| path.starts_with(from)).cloned().collect();
                for path in below {
                    if let (Some(state), Ok(rest)) = (self.in_new.remove(&path), path.strip_prefix(from)) {
                        self.in_new.insert(to.join(rest), state);
                    }
                }
                self.dirs.moved(from, to);
            }
        }
    }

    /// The current path of the entry that was at `former`; `None` if its directory is gone.
    pub fn current_path(&self, former: &Path) -> Option<PathBuf> {
        let (parent, name) = former.parent().zip(former.file_name())?;
        self.dirs.current_path(parent).map(|parent| parent.join(name))
    }

    /// Where the entry at `path` is listed: its path before the command if it existed, else `path`.
    pub fn listed_path(&self, path: &Path) -> PathBuf {
        self.key(path).unwrap_or_else(|| path.to_owned())
    }

    fn key(&self, path: &Path) -> Option<PathBuf> {
        let (parent, name) = path.parent().zip(path.file_name())?;
        self.dirs.former_path(parent).map(|parent| parent.join(name))
    }

    /// The command's changes: what existed before it, under its path at that time; moved directories; and what was created. The
    /// second list says what could not be read.
    pub fn compare(&self, view: &mut dyn CommandView) -> (Vec<Change>, Vec<String>) {
        let mut comparison = Comparison { existing: Vec::new(), created: Vec::new(), unreadable: Vec::new() };
        let mut previous: Vec<_> = self.previous.iter().collect();
        previous.sort_unstable_by_key(|(path, _)| *path);
        for (former, before) in previous {
            let Some(current) = self.current_path(former) else {
                comparison.add(former, former, before, PathState::ABSENT, false);
                continue;
            };
            // A directory that was moved here is listed as such.
            let observed =
                if self.dirs.is_moved(&current) { Ok(PathState::ABSENT) } else { view.observe(&current) };
            match observed {
                Ok(after) if self.is_foreign(before, &after.node, &current) => {}
                Ok(after) => {
                    let contested = self.is_contested(former, before, &after);
                    comparison.add(former, &current, before, after, contested);
                }
                Err(error) => comparison.unreadable.push(error.message),
            }
        }
        for (former, before) in &self.moved {
            let before = PathState { node: before.clone(), file: None };
            let after = match self.dirs.current_path(former) {
                Some(current) => view.observe(&current),
                None => Ok(PathState::ABSENT),
            };
            match after {
                Ok(after) => comparison.add(former, former, &before, after, false),
                Err(error) => comparison.unreadable.push(error.message),
            }
        }
        for (path, before) in &self.in_new {
            match view.observe(path) {
                Ok(_) if self.previous.contains_key(path) => {
                    let reason = "was another program's, and cannot be told from what was there before";
                    comparison.unreadable.push(format!("{} {reason}", path.display()));
                }
                Ok(after) => comparison.add(path, path, before, after, false),
                Err(error) => comparison.unreadable.push(error.message),
            }
        }
        for path in self.dirs.new_directories() {
            view.visit_new(path, &mut |path, node| {
                let is_other = self.dirs.is_moved(&path);
                if !is_other && !self.in_new.contains_key(&path) {
                    comparison.created.push(Change::new(path, Node::Absent, node));
                }
                !is_other
            });
        }
        let Comparison { existing: mut changes, mut created, unreadable } = comparison;
        changes.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        created.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let moves = self.dirs.moves().into_iter().map(|(former, current)| {
            let before = self.moved.get(former).cloned().unwrap_or(Node::Absent);
            Change { moved_to: Some(current.to_owned()), ..Change::new(former, before, Node::Absent) }
        });
        changes.extend(moves);
        changes.extend(created);
        (changes, unreadable)
    }

    /// Whether a directory was created by another program where the command had changed something.
    fn is_foreign(&self, before: &PathState, after: &Node, current: &Path) -> bool {
        let is_dir = |node: &Node| matches!(node, Node::Dir { .. });
        is_dir(after) && !is_dir(&before.node) && self.dirs.new_ancestor(current) != Some(current)
    }
}

struct Comparison {
    existing: Vec<Change>,
    created: Vec<Change>,
    unreadable: Vec<String>,
}

impl Comparison {
    fn add(&mut self, former: &Path, current: &Path, before: &PathState, after: PathState, contested: bool) {
        let is_linked = before.node.linked().is_some() || after.node.linked().is_some();
        // A different file with the same bytes is a change, too, if either has other names.
        let is_another =
            is_linked && before.file.is_some() && after.file.is_some() && before.file != after.file;
        if !is_another && before.node.fully_same_as(&after.node) {
            return;
        }
        let (changes, path) = match before.node {
            Node::Absent => (&mut self.created, current),
            _ => (&mut self.existing, former),
        };
        changes.push(Change { contested, ..Change::new(path, before.node.clone(), after.node) });
    }
}
