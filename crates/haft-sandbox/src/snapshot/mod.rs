//! Finds what a command changed by comparing its directories before and after: where there is no witness.
//!
//! Before the command every file is copied, cheaply where the file system can clone files, so that changed and deleted
//! files can be restored. Copies are reused by later commands of the session. Changes that other programs make at the
//! same time are attributed to the command.

mod copies;
mod guarded;
mod scan;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use haft_files::{Captured, CapturedContent, capture};
use haft_tool::{Change, Denial, FileNode, Node, Record, Scope, ToolError, lock};

use crate::denials::DenialList;
use copies::{CopySet, FileCopy};
use scan::{EntryVersion, scan};

/// How many paths a message names.
const MAX_NAMED_PATHS: usize = 5;

/// The snapshots of a session.
#[derive(Debug)]
pub(crate) struct SnapshotStore {
    /// A private directory, created when it is needed.
    directory: PathBuf,
    copies: Mutex<CopySet>,
}

/// The state of some directories before a command.
#[derive(Debug)]
pub(crate) struct Snapshot {
    roots: Vec<PathBuf>,
    excluded: Vec<PathBuf>,
    before: BTreeMap<PathBuf, SnapshotEntry>,
    /// Directories whose entries are unknown.
    unlisted: BTreeSet<PathBuf>,
}

#[derive(Debug)]
struct SnapshotEntry {
    version: EntryVersion,
    /// Whether a later change may leave the same version.
    is_recent: bool,
    copy: Option<Arc<FileCopy>>,
}

/// What changed since a snapshot.
#[derive(Debug, Default)]
pub(crate) struct SnapshotDiff {
    pub(crate) changes: Vec<Change>,
    /// What undo will not restore.
    pub(crate) losses: Vec<String>,
    pub(crate) denials: Vec<Denial>,
}

impl SnapshotStore {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory, copies: Mutex::default() }
    }

    /// Removes all copies that no snapshot uses.
    pub(crate) fn clear(&self) {
        *lock(&self.copies) = CopySet::default();
    }

    /// Takes a snapshot of `roots`, except for `excluded` paths.
    pub(crate) fn take(&self, roots: &[PathBuf], excluded: &[PathBuf]) -> io::Result<Snapshot> {
        let now = SystemTime::now();
        let tree = scan(roots, excluded);
        let mut copies = lock(&self.copies);
        copies.retain_current(|path, version| {
            tree.entries.get(path).is_some_and(|current| current == version && !current.is_recent(now))
        });
        let mut before: BTreeMap<PathBuf, SnapshotEntry> = tree
            .entries
            .into_iter()
            .map(|(path, version)| {
                let is_recent = version.is_recent(now);
                (path, SnapshotEntry { version, is_recent, copy: None })
            })
            .collect();
        // Small files first, so that the bound leaves out as few files as possible.
        let mut files: Vec<_> = before.iter_mut().filter(|(_, entry)| entry.version.is_file()).collect();
        files.sort_by_key(|(_, entry)| entry.version.size);
        for (path, entry) in files {
            entry.copy = copies.copy(path, &entry.version, &self.directory)?;
        }
        Ok(Snapshot { roots: roots.to_vec(), excluded: excluded.to_vec(), before, unlisted: tree.unlisted })
    }
}

impl Snapshot {
    /// Compares the directories with the snapshot. Previous contents of changed files are stored in `record`.
    pub(crate) fn compare(self, scope: &Scope, record: &dyn Record) -> Result<SnapshotDiff, ToolError> {
        let mut denials = DenialList::default();
        self.restore_guarded(scope, record, &mut denials);
        let mut after = scan(&self.roots, &self.excluded);
        let (mut changes, mut lost) = (Vec::new(), Vec::new());
        for (path, entry) in self.before {
            let now = after.entries.remove(&path).or_else(|| EntryVersion::read(&path));
            let was = &entry.version;
            // The times of a directory change with its entries, which are compared themselves.
            let is_same = |now: &EntryVersion| {
                if was.is_directory() {
                    now.is_directory() && (now.permissions(), now.owner) == (was.permissions(), was.owner)
                } else {
                    now == was && !(entry.is_recent && entry.copy.is_some())
                }
            };
            if now.as_ref().is_some_and(is_same) {
                continue;
            }
            let current = read_node(&path).unwrap_or(Node::Absent);
            let same_content = now.as_ref().is_some_and(|now| now.has_content_of(was)) && !entry.is_recent;
            let mut previous = previous_state(&entry, current.as_file().filter(|_| same_content));
            if previous.node.fully_same_as(&current) {
                continue;
            }
            record.witness(&path, &previous.node, previous.content.as_file_content())?;
            if previous.is_lost {
                lost.push(path.clone());
            }
            changes.push(Change::new(path, previous.node, current));
        }
        let is_unknown = |path: &Path| path.ancestors().any(|directory| self.unlisted.contains(directory));
        for path in after.entries.into_keys().filter(|path| !is_unknown(path)) {
            let current = read_node(&path).unwrap_or(Node::Absent);
            record.witness(&path, &Node::Absent, haft_tool::FileContent::None)?;
            changes.push(Change::new(path, Node::Absent, current));
        }
        let losses = describe_losses(&lost, self.unlisted.len().max(after.unlisted.len()));
        Ok(SnapshotDiff { changes, losses, denials: denials.into_list() })
    }
}

/// The state of an entry at the time of the snapshot.
struct PreviousState {
    node: Node,
    content: CapturedContent,
    /// Whether the content of a file is unknown.
    is_lost: bool,
}

/// `unchanged` is the current state of a file whose content is known to be the same.
fn previous_state(entry: &SnapshotEntry, unchanged: Option<&FileNode>) -> PreviousState {
    let version = &entry.version;
    let state = |node| PreviousState { node, content: CapturedContent::None, is_lost: false };
    if version.is_directory() {
        return state(Node::directory(version.permissions()));
    }
    if version.is_link() {
        return state(Node::link(version.target.clone().unwrap_or_default()));
    }
    if !version.is_file() {
        return state(Node::Special);
    }
    let metadata = |file: &FileNode| FileNode {
        mode: version.permissions(),
        owner: foreign_owner(version.owner),
        linked: (version.link_count > 1).then_some(version.file),
        ..file.clone()
    };
    let copied =
        || entry.copy.as_ref().and_then(|copy| capture(rustix::fs::CWD, copy.path().as_os_str()).ok());
    match (copied(), unchanged) {
        (Some(Captured { node: Node::File(file), content, .. }), _) => {
            PreviousState { node: Node::File(metadata(&file)), content, is_lost: false }
        }
        (_, Some(file)) => state(Node::File(metadata(file))),
        _ => {
            let unknown = FileNode {
                hash: String::new(),
                size: version.size,
                mode: 0,
                owner: None,
                xattrs: Vec::new(),
                linked: None,
                modified: None,
            };
            PreviousState { is_lost: true, ..state(Node::File(metadata(&unknown))) }
        }
    }
}

/// Owner and group, if they are not those of this process.
fn foreign_owner(owner: (u32, u32)) -> Option<(u32, u32)> {
    let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    (owner != own).then_some(owner)
}

fn describe_losses(lost: &[PathBuf], unlisted: usize) -> Vec<String> {
    let mut losses = Vec::new();
    if !lost.is_empty() {
        let names: Vec<_> =
            lost.iter().take(MAX_NAMED_PATHS).map(|path| path.display().to_string()).collect();
        let files = if lost.len() == 1 { "1 file" } else { &format!("{} files", lost.len()) };
        let reason = "they were too large or too many to be copied before the command";
        losses.push(format!("the previous content of {files} ({}): {reason}", names.join(", ")));
    }
    if unlisted > 0 {
        let directories =
            if unlisted == 1 { "1 directory was" } else { &format!("{unlisted} directories were") };
        losses.push(format!("{directories} not compared: unreadable, or too many files in all"));
    }
    losses
}

/// The current state of a path; `None` if it cannot be read.
pub(crate) fn read_node(path: &Path) -> Option<Node> {
    capture(rustix::fs::CWD, path.as_os_str()).ok().map(|captured| captured.node)
}
