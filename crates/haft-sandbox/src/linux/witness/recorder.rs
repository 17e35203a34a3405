//! Records the state of each path before a command's first change to it, and compares it with the state afterwards.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_files::{Captured, CapturedContent, birth_id, capture, capture_unread, id_of};
use haft_tool::{Change, CommandChanges, DirectoryEvent, FileId, Node, PathState, Record, ToolError};
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use super::DenialList;
use super::final_view::{FinalView, MAX_CHANGES};
use super::guarded_entries::GuardedEntries;
use super::hard_links::{LinkedFile, hidden_changes};
use super::link_count;
use super::paths::{DirectoryEntry, OpenDir};
use crate::guards::is_relevant;

/// With fewer states, none is checked before the end.
const MIN_STATES_TO_CHECK: usize = 2_000;
/// More than one, so that the list shrinks while entries are gone.
const MAX_PATHS_PER_CHECK: usize = 2;
/// A file that last changed longer ago gets another change time with its next change.
const MIN_SETTLED_SECONDS: i64 = 1;

/// The changes of one command.
pub(super) struct ChangeRecorder {
    pub(super) record: Arc<dyn Record>,
    pub(super) changes: CommandChanges,
    /// Files that had several names before the command.
    linked: HashMap<FileId, LinkedFile>,
    /// Those of `linked` that the command may have changed, under any name.
    altered: HashSet<FileId>,
    /// Large files, with their change times and states before the command, so that unchanged ones are not read again.
    large: HashMap<FileId, (ChangeTime, Node)>,
    /// Files that had names outside the scope and were replaced by copies.
    separated: Vec<PathBuf>,
    /// What the command put into new directories. Other programs may put something there, too.
    own: HashSet<FileId>,
    /// What other programs put there and the command then changed, moved or linked.
    foreign: HashSet<FileId>,
    /// Entries with names that matter which the command put into other directories. If another command moves these, the entries
    /// are not what was there before.
    own_guarded: HashSet<FileId>,
    /// Paths that did not exist before, in the order in which they are checked. Temporary files that are gone again are
    /// forgotten.
    created: VecDeque<PathBuf>,
    losses: Vec<String>,
    error: Option<ToolError>,
    /// Changes that were refused because they could not be recorded.
    pub(super) refused: DenialList,
    /// What must be judged.
    pub(super) guarded: GuardedEntries,
}

impl ChangeRecorder {
    pub(super) fn new(record: Arc<dyn Record>, roots: &[PathBuf]) -> Self {
        let guarded = GuardedEntries::new(roots, record.as_ref());
        Self {
            record,
            changes: CommandChanges::default(),
            linked: HashMap::new(),
            altered: HashSet::new(),
            large: HashMap::new(),
            separated: Vec::new(),
            own: HashSet::new(),
            foreign: HashSet::new(),
            own_guarded: HashSet::new(),
            created: VecDeque::new(),
            losses: Vec::new(),
            error: None,
            refused: DenialList::default(),
            guarded,
        }
    }

    /// Whether something waits to be judged.
    pub(super) fn has_notes(&self) -> bool {
        !self.guarded.notes.is_empty()
    }

    /// Whether the command created the directory at `path`, or one above it.
    pub(super) fn is_new(&self, path: &Path) -> bool {
        self.changes.directories().is_new(path)
    }

    /// Notes an entry that must be judged after the change.
    pub(super) fn note(&mut self, entry: &DirectoryEntry) {
        self.guarded.note(entry, &self.changes);
    }

    /// Notes the entries of the call that has just ended whose directories another Haft process has moved.
    pub(super) fn note_moved(&mut self, path_of: impl Fn(&OpenDir) -> Option<PathBuf>) {
        self.guarded.note_moved(&self.changes, path_of);
    }

    /// Stores the state of an entry before the command's first change to it.
    pub(super) fn before_change(&mut self, entry: &DirectoryEntry) -> Result<(), Errno> {
        self.note(entry);
        let Some(key) = self.unstored(entry) else { return Ok(()) };
        let in_new = entry.dir.is_new;
        if !in_new && self.is_own_guarded(entry) {
            return self.store(key, PathState::ABSENT, &mut CapturedContent::None).map(drop);
        }
        let captured = capture_unread(&entry.dir.fd, &entry.name).map_err(|error| to_errno(&error))?;
        let Captured { mut node, stat, mut content, .. } = captured;
        let file = file_of(&node, stat.as_ref());
        if matches!(node, Node::Fifo { .. }) && stat.as_ref().is_some_and(|stat| link_count(stat) > 1) {
            let path = entry.path().display();
            self.losses.push(format!("{path} is a pipe with several names; undo makes it a pipe of its own"));
        }
        if let Node::File(node) = &mut node {
            // The command may have removed the file's other names already.
            node.linked = node.linked.or(file.filter(|file| self.linked.contains_key(file)));
        }
        if let Some(linked) = node.linked().and_then(|file| self.linked.get(&file)) {
            // Its content was stored under another name.
            (node, content) = (linked.before.clone(), CapturedContent::None);
        }
        if in_new {
            self.foreign.extend(entry_birth_id(entry));
        } else {
            self.guarded.add_state(&key, &node, stat.as_ref());
        }
        let is_large = matches!(content, CapturedContent::File(_));
        let state = PathState { node, file };
        let node = if in_new {
            self.store_in_new(key, state, &mut content)?
        } else {
            self.store(key, state, &mut content)?
        };
        if let Some((file, stat)) = file.zip(stat) {
            if node.linked().is_some() && !self.linked.contains_key(&file) {
                let link_count = link_count(&stat);
                self.linked.insert(file, LinkedFile { before: node.clone(), link_count });
            }
            if is_large && is_settled(&stat) {
                self.large.insert(file, (change_time(&stat), node));
            }
        }
        Ok(())
    }

    /// The same for an entry that does not exist yet.
    pub(super) fn before_creation(&mut self, entry: &DirectoryEntry) -> Result<(), Errno> {
        self.note(entry);
        match self.unstored(entry).filter(|_| !entry.dir.is_new) {
            Some(key) => self.store(key, PathState::ABSENT, &mut CapturedContent::None).map(drop),
            None => Ok(()),
        }
    }

    /// Whether the previous state of an entry is stored, or known to be absent.
    pub(super) fn is_known(&self, entry: &DirectoryEntry) -> bool {
        self.unstored(entry).is_none()
    }

    fn unstored(&self, entry: &DirectoryEntry) -> Option<PathBuf> {
        if !entry.dir.is_new {
            return self.changes.unstored(entry.path());
        }
        // What the command itself put into a new directory has no previous state.
        let is_foreign = self.is_foreign(entry) && !self.changes.is_stored_in_new(entry.path());
        is_foreign.then(|| entry.path().to_owned())
    }

    /// Whether an entry is in a new directory and another program put it there.
    pub(super) fn is_foreign(&self, entry: &DirectoryEntry) -> bool {
        entry.dir.is_new
            && entry_birth_id(entry).is_some_and(|file| !self.own.contains(&file))
            && !self.changes.directories().is_moved(entry.path())
    }

    /// Whether the command itself put an entry whose name matters into its directory, which was elsewhere then.
    fn is_own_guarded(&self, entry: &DirectoryEntry) -> bool {
        is_relevant(entry.path()) && entry_birth_id(entry).is_some_and(|file| self.has_made(file))
    }

    /// Whether the command put an entry with this number somewhere, as far as that is remembered.
    pub(super) fn has_made(&self, file: FileId) -> bool {
        self.own_guarded.contains(&file) || self.own.contains(&file)
    }

    fn add_own_guarded(&mut self, entry: &DirectoryEntry) {
        if is_relevant(entry.path()) {
            self.own_guarded.extend(entry_birth_id(entry));
        }
    }

    /// Must be called when the command has created or moved an entry.
    pub(super) fn after_creation(&mut self, entry: &DirectoryEntry) {
        self.note(entry);
        if !entry.dir.is_new {
            self.add_own_guarded(entry);
            if let Some((former, file)) = self.regular_file(entry, entry.stat()) {
                self.changes.put(former, file);
            }
        } else if let Some(file) = entry_birth_id(entry) {
            let recorded = if self.foreign.contains(&file) {
                // The file is another program's: only this new name is the command's, so it counts as absent before.
                let stored = self.changes.is_stored_in_new(entry.path());
                let mut absent = || {
                    let key = entry.path().to_owned();
                    self.store_in_new(key, PathState::ABSENT, &mut CapturedContent::None)
                };
                // The error is kept.
                let _ = stored || absent().is_ok();
                Ok(())
            } else if self.own.insert(file) {
                self.record.witness_own(file, true)
            } else {
                Ok(())
            };
            if let Err(error) = recorded {
                self.error.get_or_insert(error);
            }
        }
    }

    /// Must be called when the command has opened a file for writing, with the file's metadata and whether opening created it.
    pub(super) fn after_opening(
        &mut self,
        entry: &DirectoryEntry,
        stat: Result<Stat, Errno>,
        is_created: bool,
    ) {
        if is_created {
            self.add_own_guarded(entry);
        }
        match self.regular_file(entry, stat) {
            Some((former, file)) if is_created => self.changes.put(former, file),
            Some((former, file)) => self.changes.opened(former, file),
            None => {}
        }
    }

    /// A regular file in a directory that is not new, and its path before the command.
    fn regular_file(&self, entry: &DirectoryEntry, stat: Result<Stat, Errno>) -> Option<(PathBuf, FileId)> {
        let is_file = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let stat = stat.ok().filter(|stat| !entry.dir.is_new && is_file(stat))?;
        Some((self.changes.former_entry(entry.path())?, (stat.st_dev, stat.st_ino)))
    }

    /// Must be called when the command has removed an entry. `file` is the number that it had.
    pub(super) fn after_removal(&mut self, entry: &DirectoryEntry, stat: &Stat, file: Option<FileId>) {
        let is_last = link_count(stat) == 1 || FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        let Some(file) = file.filter(|_| is_last) else { return };
        self.own_guarded.remove(&file);
        if entry.dir.is_new {
            self.foreign.remove(&file);
            if self.own.remove(&file)
                && let Err(error) = self.record.witness_own(file, false)
            {
                self.error.get_or_insert(error);
            }
        }
    }

    /// Notes that a file with several names is about to change under all of them.
    pub(super) fn add_altered(&mut self, stat: &Stat) {
        if link_count(stat) > 1 {
            self.altered.insert((stat.st_dev, stat.st_ino));
        }
    }

    /// Notes that an entry was replaced by a copy.
    pub(super) fn add_separated(&mut self, path: &Path) {
        self.separated.push(path.to_owned());
    }

    /// Whether there was a symbolic link at `path` before the command.
    pub(super) fn had_link(&self, path: &Path) -> bool {
        let former = self.changes.former_entry(path);
        let before = former.and_then(|former| self.changes.stored_at(&former));
        matches!(before, Some(Node::Link { .. }))
    }

    /// Notes that undo cannot restore something.
    pub(super) fn add_loss(&mut self, reason: String) {
        self.losses.push(reason);
    }

    /// Lets `act` create, remove or move a directory. The states of its entries must be stored before.
    pub(super) fn change_directory(
        &mut self,
        event: DirectoryEvent<'_>,
        act: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        if self.is_unlisted(event) {
            return act();
        }
        let path = match event {
            DirectoryEvent::Created(path) | DirectoryEvent::Removed(path) => path,
            DirectoryEvent::Moved { from, .. } => from,
        };
        self.record.witness_directory(event).map_err(|error| self.refuse(path, error))?;
        if let Err(error) = act() {
            self.record.cancel_directory().map_err(|error| self.refuse(path, error))?;
            return Err(error);
        }
        self.changes.apply(event);
        Ok(())
    }

    /// Whether the event concerns only what is in new directories, which is listed at the end.
    fn is_unlisted(&self, event: DirectoryEvent<'_>) -> bool {
        let is_in_new = |path: &Path| path.parent().is_some_and(|parent| self.is_new(parent));
        match event {
            DirectoryEvent::Created(path) => is_in_new(path),
            DirectoryEvent::Removed(path) => is_in_new(path) && !self.changes.directories().is_moved(path),
            DirectoryEvent::Moved { .. } => false,
        }
    }

    fn refuse(&mut self, path: &Path, error: ToolError) -> Errno {
        let rule = format!("the previous state could not be stored. {}", error.message);
        self.refused.add("write", path.display().to_string(), rule, None);
        self.error.get_or_insert(error);
        Errno::IO
    }

    /// Stores the state of an entry. The change is not made if this fails.
    pub(super) fn store(
        &mut self,
        key: PathBuf,
        mut state: PathState,
        content: &mut CapturedContent,
    ) -> Result<Node, Errno> {
        let stored = self.record.witness(&key, &state.node, content.as_file_content());
        let stored = stored.map_err(|error| self.refuse(&key, error))?;
        if let (Some((hash, size)), Node::File(file)) = (stored, &mut state.node) {
            (file.hash, file.size) = (hash, size);
        }
        if self.created.len() >= MIN_STATES_TO_CHECK {
            self.forget_absent();
        }
        let node = state.node.clone();
        if node == Node::Absent {
            self.created.push_back(key.clone());
        }
        self.changes.store(key, state);
        Ok(node)
    }

    /// Checks the next few paths and forgets those that no longer exist. Few at a time, because other commands wait.
    fn forget_absent(&mut self) {
        for _ in 0..MAX_PATHS_PER_CHECK {
            let Some(former) = self.created.pop_front() else { return };
            if !self.changes.forget_if_absent(&former, |path| id_of(path).is_some()) {
                self.created.push_back(former);
            }
        }
    }

    /// The same for an entry of a new directory, by its current path.
    fn store_in_new(
        &mut self,
        path: PathBuf,
        mut state: PathState,
        content: &mut CapturedContent,
    ) -> Result<Node, Errno> {
        let stored = self.record.witness_in_new(&path, &state.node, content.as_file_content());
        let stored = stored.map_err(|error| self.refuse(&path, error))?;
        if let (Some((hash, size)), Node::File(file)) = (stored, &mut state.node) {
            (file.hash, file.size) = (hash, size);
        }
        let node = state.node.clone();
        self.changes.store_in_new(path, state);
        Ok(node)
    }

    /// The command's changes in `roots`, and what undo will not restore. `has_others` says whether other commands of the
    /// session run, to which the command may have passed descriptors.
    pub(super) fn finish(mut self, roots: &[PathBuf], has_others: bool) -> (Vec<Change>, Vec<String>) {
        let (own, large) = (&self.own, &self.large);
        let mut view = FinalView { own, large, has_others, roots, last: None, listed: 0, losses: Vec::new() };
        let (mut changes, unreadable) = self.changes.compare(&mut view);
        self.losses.extend(unreadable);
        self.losses.append(&mut view.losses);
        if view.listed > MAX_CHANGES {
            self.losses.push(format!("{} entries were too many to list", view.listed - MAX_CHANGES));
        }
        self.linked.retain(|file, _| self.altered.contains(file));
        let (hidden, lost) = hidden_changes(&self.changes, &changes, &self.linked, roots);
        changes.extend(hidden);
        let loss = |name: PathBuf| format!("{} had other names, which keep its new content", name.display());
        self.losses.extend(lost.into_iter().map(loss));
        if let Some((first, others)) = self.separated.split_first() {
            let first = first.display();
            let files = match others.len() {
                0 => first.to_string(),
                1 => format!("{first} and 1 more file"),
                more => format!("{first} and {more} more files"),
            };
            self.losses.push(format!(
                "{files} had other names (hard links) outside the scope, which kept the old content; undo restores the content, not the link"
            ));
        }
        // Only the operation that could not be recorded was refused; what was recorded stays reversible.
        if let Some(error) = self.error {
            self.losses.push(format!("a change was refused because it could not be recorded: {error}"));
        }
        (changes, self.losses)
    }
}

/// A number of the entry that no later one gets.
pub(super) fn entry_birth_id(entry: &DirectoryEntry) -> Option<FileId> {
    birth_id(&entry.dir.fd, &entry.name)
}

/// The number of an entry that is about to be removed, if [`ChangeRecorder::after_removal`] needs it.
pub(super) fn number_to_remove(entry: &DirectoryEntry) -> Option<FileId> {
    if entry.dir.is_new || is_relevant(entry.path()) { entry_birth_id(entry) } else { None }
}

/// The time of a file's last change, which programs cannot set.
pub(super) type ChangeTime = (i64, u64);

pub(super) fn change_time(stat: &Stat) -> ChangeTime {
    (stat.st_ctime, stat.st_ctime_nsec)
}

/// Whether any change from now on gives the file another change time. The resolution of the kernel's clock is coarse.
fn is_settled(stat: &Stat) -> bool {
    stat.st_ctime + MIN_SETTLED_SECONDS < rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec
}

/// Device and inode, if it is a regular file.
pub(super) fn file_of(node: &Node, stat: Option<&Stat>) -> Option<FileId> {
    stat.filter(|_| node.as_file().is_some()).map(|stat| (stat.st_dev, stat.st_ino))
}

pub(super) fn capture_entry(dir: &OwnedFd, name: &OsStr) -> Result<Captured, Errno> {
    capture(dir, name).map_err(|error| to_errno(&error))
}

fn to_errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
