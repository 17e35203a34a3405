//! Records the state of each path before a command's first change to it, and compares it with the state afterwards.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_files::{Captured, CapturedContent, capture};
use haft_tool::{Change, FileContent, FileId, Node, Record, ToolError};
use rustix::fs::{Dir, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::hard_links::{LinkedFile, hidden_changes};
use super::link_count;
use super::new_tree::{LIST_FLAGS, list_new_tree};
use super::paths::{DirectoryEntry, real_path};

/// Further changes are not listed.
const MAX_CHANGES: usize = 2_000_000;
/// The content of larger files is not stored.
const MAX_STORED_BYTES: u64 = 1 << 30;

/// The state of a path.
struct PathState {
    node: Node,
    /// Device and inode, if it is a regular file.
    file: Option<FileId>,
}

impl PathState {
    const ABSENT: Self = Self { node: Node::Absent, file: None };

    fn new(node: Node, stat: Option<&Stat>) -> Self {
        let file = stat.filter(|_| node.as_file().is_some()).map(|stat| (stat.st_dev, stat.st_ino));
        Self { node, file }
    }
}

/// The changes of one command.
pub(super) struct ChangeRecorder {
    record: Arc<dyn Record>,
    /// The previous state of each changed path. Paths below a directory that did not exist are not listed. Keyed by
    /// `OsString`, because hashing a path by components is slower.
    previous: HashMap<OsString, PathState>,
    /// The previous states of files with several names: a change under one name is a change of all.
    linked: HashMap<FileId, Node>,
    /// The same before the command, whatever was moved since.
    initially_linked: HashMap<FileId, LinkedFile>,
    /// Those of them that the command may have changed, under any name.
    altered: HashSet<FileId>,
    /// Files that were opened for writing; some may still be open.
    opened: Vec<PathBuf>,
    /// Directories that the command created before the last move.
    created: Vec<PathBuf>,
    /// Former paths of directories that were moved away.
    moved_away: Vec<PathBuf>,
    changes: Vec<Change>,
    losses: Vec<String>,
    error: Option<ToolError>,
}

impl ChangeRecorder {
    pub(super) fn new(record: Arc<dyn Record>) -> Self {
        Self {
            record,
            previous: HashMap::new(),
            linked: HashMap::new(),
            initially_linked: HashMap::new(),
            altered: HashSet::new(),
            opened: Vec::new(),
            created: Vec::new(),
            moved_away: Vec::new(),
            changes: Vec::new(),
            losses: Vec::new(),
            error: None,
        }
    }

    /// Whether the directory at `path`, or one above it, did not exist before the command or the last move.
    pub(super) fn is_new(&self, path: &Path) -> bool {
        if self.previous.is_empty() {
            return false;
        }
        let was_absent =
            |path: &Path| self.previous.get(path.as_os_str()).is_some_and(|state| state.node == Node::Absent);
        // From the top, because new trees usually start near the workspace.
        let ancestors: Vec<&Path> = path.ancestors().collect();
        ancestors.into_iter().rev().any(was_absent)
    }

    /// Whether the command created the directory at `path` where nothing had been before.
    pub(super) fn is_created(&self, path: &Path) -> bool {
        let created = self.created.iter().any(|created| path.starts_with(created)) || self.is_new(path);
        created && !self.is_moved_away(path)
    }

    /// Whether nothing existed at `path`, as far as the command changed it.
    pub(super) fn never_existed(&self, path: &Path) -> bool {
        self.previous.get(path.as_os_str()).is_none_or(|state| state.node == Node::Absent)
            && !self.is_moved_away(path)
    }

    fn is_moved_away(&self, path: &Path) -> bool {
        self.moved_away.iter().any(|former| path.starts_with(former))
    }

    /// Stores the state of an entry before the command's first change to it.
    pub(super) fn before_change(&mut self, entry: &DirectoryEntry) -> Result<(), Errno> {
        if self.is_known(entry) {
            return Ok(());
        }
        let Captured { mut node, stat, mut content, .. } = capture_entry(&entry.dir.fd, &entry.name)?;
        let mut state = PathState::new(node.clone(), stat.as_ref());
        if let Node::File(node) = &mut node {
            // The other names of the file may have been removed before.
            node.linked = node.linked.or(state.file.filter(|file| self.initially_linked.contains_key(file)));
        }
        if let Some(file) = node.linked() {
            if let Some(before) = self.linked.get(&file) {
                // Its content was stored under another name.
                (node, content) = (before.clone(), CapturedContent::None);
            } else {
                self.linked.insert(file, node.clone());
            }
            let link_count = entry.stat().map_or(0, |stat| link_count(&stat));
            let linked = || LinkedFile { before: node.clone(), link_count };
            self.initially_linked.entry(file).or_insert_with(linked);
        }
        state.node = node;
        self.store(entry.path(), state, &mut content)
    }

    /// The same for an entry that does not exist.
    pub(super) fn before_creation(&mut self, entry: &DirectoryEntry) -> Result<(), Errno> {
        if self.is_known(entry) {
            return Ok(());
        }
        self.store_absent(entry.path())
    }

    /// Records the entries of a new directory that is about to be moved to a place where something else had been: the
    /// entries themselves are not reported.
    pub(super) fn before_new_directory_moves(
        &mut self,
        from: &DirectoryEntry,
        to: &DirectoryEntry,
    ) -> Result<(), Errno> {
        if self.is_new(to.path()) {
            return Ok(());
        }
        let dir = rustix::fs::openat(&from.dir.fd, &from.name, LIST_FLAGS, Mode::empty())?;
        for entry in Dir::read_from(&dir)?.flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            let path = to.path().join(name);
            if name != "." && name != ".." && !self.previous.contains_key(path.as_os_str()) {
                self.store_absent(&path)?;
            }
        }
        Ok(())
    }

    /// Whether the previous state of an entry is stored, or known to be absent.
    pub(super) fn is_known(&self, entry: &DirectoryEntry) -> bool {
        entry.dir.is_new || self.previous.contains_key(entry.path().as_os_str())
    }

    /// Notes that a file was opened for writing.
    pub(super) fn add_opened(&mut self, entry: &DirectoryEntry) {
        self.opened.push(entry.path().to_owned());
    }

    /// Notes that a file is about to change, under all its names.
    pub(super) fn add_altered(&mut self, stat: &Stat) {
        if link_count(stat) > 1 {
            self.altered.insert((stat.st_dev, stat.st_ino));
        }
    }

    /// Notes that undo cannot restore something.
    pub(super) fn add_loss(&mut self, reason: String) {
        self.losses.push(reason);
    }

    /// Must be called before an existing directory is moved: changes so far are recorded under their old paths.
    pub(super) fn before_move(&mut self, from: &Path, to: &Path) -> Result<(), Errno> {
        self.compare();
        self.record.witness_move(from, to).map_err(|error| {
            self.error.get_or_insert(error);
            Errno::IO
        })
    }

    /// Must be called if the move failed.
    pub(super) fn move_failed(&mut self) {
        if let Err(error) = self.record.cancel_move() {
            self.error.get_or_insert(error);
        }
    }

    /// Must be called after the move. Files that are still open for writing are stored again, under their new paths.
    pub(super) fn after_move(&mut self, from: &Path, to: &Path, mode: u32) {
        self.moved_away.push(from.to_owned());
        self.changes.push(Change {
            moved_to: Some(to.to_owned()),
            ..Change::new(from, Node::Dir { mode }, Node::Absent)
        });
        for path in std::mem::take(&mut self.opened) {
            let path = match path.strip_prefix(from) {
                Ok(rest) => to.join(rest),
                Err(_) => path,
            };
            if is_open_for_writing(&path) {
                self.store_again(&path);
                self.opened.push(path);
            }
        }
    }

    fn store_again(&mut self, path: &Path) {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return };
        let Ok(dir) = open_exact(parent) else { return };
        let Ok(Captured { node, stat, mut content, .. }) = capture_entry(&dir, name) else { return };
        // An error is kept and reported at the end.
        let _ = self.store(path, PathState::new(node, stat.as_ref()), &mut content);
    }

    fn store_absent(&mut self, path: &Path) -> Result<(), Errno> {
        self.store(path, PathState::ABSENT, &mut CapturedContent::None)
    }

    /// Stores the state of `path`. The change is not made if this fails.
    fn store(&mut self, path: &Path, state: PathState, content: &mut CapturedContent) -> Result<(), Errno> {
        let is_too_large = state.node.as_file().is_some_and(|file| file.size > MAX_STORED_BYTES);
        let content = if is_too_large {
            self.losses.push(format!("{} was too large to be stored", path.display()));
            FileContent::None
        } else {
            content.as_file_content()
        };
        if let Err(error) = self.record.witness(path, &state.node, content) {
            self.error.get_or_insert(error);
            return Err(Errno::IO);
        }
        self.previous.insert(path.as_os_str().to_owned(), state);
        Ok(())
    }

    /// Compares the previous state of each changed path with its current state.
    fn compare(&mut self) {
        let mut previous: Vec<_> = std::mem::take(&mut self.previous).into_iter().collect();
        self.linked.clear();
        previous.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let mut parents = LastParent::default();
        for (path, before) in previous {
            let path = PathBuf::from(path);
            let Some((parent, name)) = path.parent().zip(path.file_name()) else { continue };
            let after = match parents.open(parent) {
                Some(dir) => capture_entry(dir, name).map(|now| PathState::new(now.node, now.stat.as_ref())),
                None => Ok(PathState::ABSENT),
            };
            match after {
                Ok(after) => self.add_change(path, before, after),
                Err(_) => self.losses.push(format!("{} cannot be read any more", path.display())),
            }
        }
    }

    fn add_change(&mut self, path: PathBuf, before: PathState, after: PathState) {
        let is_linked = before.node.linked().is_some() || after.node.linked().is_some();
        // Another file with the same bytes is a change, too, if either has other names.
        let is_another =
            is_linked && before.file.is_some() && after.file.is_some() && before.file != after.file;
        let (before, after) = (before.node, after.node);
        if before == Node::Absent
            && matches!(after, Node::Dir { .. })
            && let (Some(parent), Some(name)) = (path.parent(), path.file_name())
            && let Ok(dir) = open_exact(parent)
        {
            self.add_new_tree(&dir, name, &path);
            self.created.push(path.clone());
        }
        if is_another || !before.fully_same_as(&after) {
            self.changes.push(Change::new(path, before, after));
        }
    }

    /// Adds everything below a new directory.
    fn add_new_tree(&mut self, dir: &OwnedFd, name: &OsStr, path: &Path) {
        let tree = list_new_tree(dir, name, path);
        self.losses.extend(tree.losses);
        let room = MAX_CHANGES.saturating_sub(self.changes.len());
        if tree.entries.len() > room {
            self.losses.push(format!("{} entries were too many to list", tree.entries.len() - room));
        }
        let created = |(path, after)| Change::new(path, Node::Absent, after);
        self.changes.extend(tree.entries.into_iter().take(room).map(created));
    }

    /// The command's changes in `roots`, and what undo will not restore.
    pub(super) fn finish(mut self, roots: &[PathBuf]) -> (Vec<Change>, Vec<String>) {
        self.compare();
        self.initially_linked.retain(|file, _| self.altered.contains(file));
        let (hidden, lost) = hidden_changes(&self.changes, &self.initially_linked, roots);
        self.changes.extend(hidden);
        let loss = |name: PathBuf| format!("{} had other names, which keep its new content", name.display());
        self.losses.extend(lost.into_iter().map(loss));
        // The operation that could not be recorded was refused; what was recorded stays reversible.
        if let Some(error) = self.error {
            self.losses.push(format!("a change was refused because it could not be recorded: {error}"));
        }
        (self.changes, self.losses)
    }
}

/// The directory that was opened last: paths come sorted.
#[derive(Default)]
struct LastParent {
    last: Option<(PathBuf, OwnedFd)>,
}

impl LastParent {
    fn open(&mut self, path: &Path) -> Option<&OwnedFd> {
        if self.last.as_ref().is_none_or(|(last, _)| last != path) {
            self.last = open_exact(path).ok().map(|fd| (path.to_owned(), fd));
        }
        self.last.as_ref().map(|(_, fd)| fd)
    }
}

fn capture_entry(dir: &OwnedFd, name: &OsStr) -> Result<Captured, Errno> {
    capture(dir, name).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// Opens the directory at exactly this path, with no link on the way.
fn open_exact(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = rustix::fs::open(path, flags, Mode::empty())?;
    if real_path(&fd)? == path { Ok(fd) } else { Err(Errno::NOENT) }
}

/// Whether a process has the file open for writing.
fn is_open_for_writing(path: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(fd) = rustix::fs::open(path, flags, Mode::empty()) else { return true };
    !has_no_writer(&fd)
}

/// Whether no process has the file open for writing: only then the kernel grants a read lease.
#[expect(unsafe_code, reason = "leases have no safe wrapper")]
pub(super) fn has_no_writer(fd: &OwnedFd) -> bool {
    // SAFETY: plain numbers; the lease ends with the descriptor.
    unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK) == 0 }
}
