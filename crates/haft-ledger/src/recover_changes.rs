//! The changes of a command whose Haft died: the states in its spool, compared with the current ones.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use haft_tool::{
    Change, CommandChanges, CommandView, Denial, DirectoryEvent, FileId, Node, OpenContent, PathState,
    Receipt, StagedStep, ToolError, path_from_text,
};

use crate::spool::SpoolRecord;

/// The clocks of two file systems, or of a file system and the kernel, may differ by this much.
const CLOCK_TICK: Duration = Duration::from_millis(20);

/// Reads the current state of the file system, without following links.
pub trait WorkspaceView {
    /// The state of a path.
    fn observe(&mut self, path: &Path) -> Result<Node, ToolError>;
    /// A number of the file at a path that no later file gets, if it can be found.
    fn file_id(&mut self, path: &Path) -> Option<FileId>;
    /// When the inode of a path changed last, if it can be found.
    fn changed_at(&mut self, _path: &Path) -> Option<SystemTime> {
        None
    }
    /// The content of a file, if it can be read.
    fn content(&mut self, _path: &Path) -> Option<Box<dyn Read + Send>> {
        None
    }
    /// Whether a path is a directory.
    fn is_directory(&mut self, path: &Path) -> bool {
        matches!(self.observe(path), Ok(Node::Dir { .. }))
    }
    /// The names in a directory.
    fn entry_names(&mut self, path: &Path) -> Result<Vec<OsString>, ToolError>;
    /// Undoes the first `made` steps of a restore, of which the last one may not have been made; without it, all were made, and
    /// what they replaced is removed.
    fn undo_restore(
        &mut self,
        steps: &[StagedStep],
        made: Option<usize>,
        content: &OpenContent<'_>,
    ) -> Result<(), ToolError>;
    /// Restores those of a dead command's changes that would make programs run outside the sandbox: Haft died before they were
    /// judged. Returns what was refused.
    fn restore_guarded(
        &mut self,
        _call: &Receipt,
        _command: &CommandChanges,
        _changes: &[Change],
    ) -> Vec<Denial> {
        Vec::new()
    }
    /// One path for each of the files that has one, other than those in `except`.
    fn find_links(&mut self, files: HashSet<FileId>, except: &HashSet<&Path>) -> HashMap<FileId, PathBuf>;
}

/// The changes of a command.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct RecoveredChanges {
    /// The changes, in order.
    pub(crate) changes: Vec<Change>,
    /// Why paths could not be read.
    pub(crate) unreadable: Vec<String>,
    /// What was refused.
    pub(crate) denials: Vec<Denial>,
}

/// A command as its spool shows it.
pub(crate) struct RecoveredCommand {
    changes: CommandChanges,
    own: HashSet<FileId>,
    /// When its last process had ended, or a record of it was written last.
    ended_at: Option<SystemTime>,
}

impl RecoveredCommand {
    /// The records of its witness, in order.
    pub(crate) fn new(
        records: &[SpoolRecord<'_>],
        ended_at: Option<SystemTime>,
        view: &mut dyn WorkspaceView,
    ) -> Self {
        let (mut changes, mut own) = (CommandChanges::default(), HashSet::new());
        for (at, record) in records.iter().enumerate() {
            if let SpoolRecord::Before { path, node, in_new } = record {
                let state = PathState { node: node.clone().into_owned(), file: None };
                if *in_new {
                    changes.store_in_new(path_from_text(path), state);
                } else {
                    changes.store(path_from_text(path), state);
                }
                continue;
            }
            if let SpoolRecord::Own { file, is_own } = record {
                if *is_own {
                    own.insert(*file);
                } else {
                    own.remove(file);
                }
                continue;
            }
            // The process may have died between the record and the call.
            let was_made = match records.get(at + 1) {
                Some(SpoolRecord::Cancelled) => false,
                Some(_) => true,
                None => was_made(record, view),
            };
            if was_made {
                apply(&mut changes, record);
            }
        }
        Self { changes, own, ended_at }
    }

    /// What it changed, after what is guarded was restored.
    pub(crate) fn judged_changes(&self, call: &Receipt, view: &mut dyn WorkspaceView) -> RecoveredChanges {
        let recovered = self.changes(view);
        let denials = view.restore_guarded(call, &self.changes, &recovered.changes);
        if denials.is_empty() {
            return recovered;
        }
        RecoveredChanges { denials, ..self.changes(view) }
    }

    /// What it changed.
    pub(crate) fn changes(&self, view: &mut dyn WorkspaceView) -> RecoveredChanges {
        let mut recovery = Recovery { view, own: &self.own, unreadable: Vec::new() };
        let (mut changes, mut unreadable) = self.changes.compare(&mut recovery);
        unreadable.append(&mut recovery.unreadable);
        let view = recovery.view;
        let more = changes_of_other_links(&self.changes, &changes, view);
        changes.extend(more);
        for change in &mut changes {
            change.contested = self.is_changed_later(change, view);
        }
        RecoveredChanges { changes, unreadable, denials: Vec::new() }
    }
}

impl RecoveredCommand {
    /// Whether a file changed after the command had ended.
    fn is_changed_later(&self, change: &Change, view: &mut dyn WorkspaceView) -> bool {
        let current = match change.before {
            Node::Absent => Some(change.path.clone()),
            _ => self.changes.current_path(&change.path),
        };
        let changed_at = current.filter(|_| change.after.as_file().is_some());
        let changed_at = changed_at.and_then(|path| view.changed_at(&path));
        changed_at.zip(self.ended_at).is_some_and(|(changed, ended)| changed > ended + CLOCK_TICK)
    }
}

fn apply(command: &mut CommandChanges, record: &SpoolRecord<'_>) {
    match record {
        SpoolRecord::Created { path } => command.apply(DirectoryEvent::Created(&path_from_text(path))),
        SpoolRecord::Removed { path } => command.apply(DirectoryEvent::Removed(&path_from_text(path))),
        SpoolRecord::Moved { from, to, node } => {
            let (from, to) = (path_from_text(from), path_from_text(to));
            command.apply(DirectoryEvent::Moved { from: &from, to: &to, node });
        }
        _ => {}
    }
}

fn was_made(record: &SpoolRecord<'_>, view: &mut dyn WorkspaceView) -> bool {
    let mut is_dir = |path: &str| matches!(view.observe(&path_from_text(path)), Ok(Node::Dir { .. }));
    match record {
        SpoolRecord::Created { path } => is_dir(path),
        SpoolRecord::Removed { path } => !is_dir(path),
        SpoolRecord::Moved { from, to, .. } => is_dir(to) && !is_dir(from),
        _ => false,
    }
}

/// The file system after the command.
struct Recovery<'a> {
    view: &'a mut dyn WorkspaceView,
    own: &'a HashSet<FileId>,
    unreadable: Vec<String>,
}

impl CommandView for Recovery<'_> {
    fn observe(&mut self, path: &Path) -> Result<PathState, ToolError> {
        self.view.observe(path).map(|node| PathState { node, file: None })
    }

    fn visit_new(&mut self, path: &Path, visit: &mut dyn FnMut(PathBuf, Node) -> bool) {
        let mut pending = vec![path.to_owned()];
        while let Some(dir) = pending.pop() {
            let names = match self.view.entry_names(&dir) {
                Ok(names) => names,
                Err(error) => {
                    self.unreadable.push(error.message);
                    continue;
                }
            };
            for path in names.into_iter().map(|name| dir.join(name)) {
                if !self.view.file_id(&path).is_some_and(|file| self.own.contains(&file)) {
                    // A directory of another program may hold files of the command.
                    pending.extend(self.view.is_directory(&path).then_some(path));
                    continue;
                }
                match self.view.observe(&path) {
                    Ok(node) => {
                        let is_dir = matches!(node, Node::Dir { .. });
                        if visit(path.clone(), node) && is_dir {
                            pending.push(path);
                        }
                    }
                    Err(error) => self.unreadable.push(error.message),
                }
            }
        }
    }
}

/// The changes of files with several links, where the links that the command used are gone.
fn changes_of_other_links(
    command: &CommandChanges,
    changes: &[Change],
    view: &mut dyn WorkspaceView,
) -> Vec<Change> {
    let mut before = HashMap::new();
    for change in changes {
        if let Some(file) = change.before.linked() {
            before.entry(file).or_insert(&change.before);
        }
    }
    // A link that still exists has its change already.
    for change in changes.iter().filter(|change| change.before.linked() == change.after.linked()) {
        change.after.linked().map(|file| before.remove(&file));
    }
    if before.is_empty() {
        return Vec::new();
    }
    let current = |change: &Change| match change.before {
        Node::Absent => Some(change.path.clone()),
        _ => command.current_path(&change.path),
    };
    let recorded: Vec<PathBuf> = changes.iter().filter_map(current).collect();
    let recorded = recorded.iter().map(PathBuf::as_path).collect();
    let mut more = Vec::new();
    for (file, path) in view.find_links(before.keys().copied().collect(), &recorded) {
        if let (Some(before), Ok(after)) = (before.get(&file), view.observe(&path))
            && !before.fully_same_as(&after)
        {
            more.push(Change::new(command.listed_path(&path), (*before).clone(), after));
        }
    }
    more.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    more
}
