//! The entries that a command touched and that must be judged, and the states before the command that the judgement compares
//! with.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

use haft_files::birth_id_at;
use haft_policy::settings_rule;
use haft_tool::{CommandChanges, FileNode, Node, Record};
use rustix::fs::Stat;

use super::paths::{DirectoryEntry, OpenDir};
use super::recorder::ChangeRecorder;
use super::write_policy::WriteArea;
use crate::guards::{BeforeView, NamedFiles, is_relevant};

/// While a longer command ran, the user may have changed what links and git configurations lead to.
const SHORT_COMMAND_MS: u64 = 1_000;

/// What a command touched that may make programs run.
#[derive(Debug, Default)]
pub(super) struct GuardedEntries {
    /// Entries that have not been judged yet. Their directories are kept open, because other commands may move them.
    pub(super) notes: Vec<GuardedNote>,
    /// When the command started, in milliseconds since 1970.
    pub(super) started_at: u64,
    /// Whether another call was running when the command started.
    is_beside_another: bool,
    /// Whether the command touched something since the last comparison with `named`. It may be named by what another call did.
    pub(super) needs_comparison: bool,
    /// Where links and git configurations are searched for.
    roots: Vec<PathBuf>,
    /// What links and git configurations lead to, found before the first change.
    pub(super) named: OnceCell<NamedFiles>,
    /// Whether the command touched something in `named`.
    pub(super) touches_named: bool,
    /// Whether the command touched something whose name matters.
    pub(super) touches_guarded: bool,
    /// Whether noting is off, because the judgement itself changes entries.
    pub(super) is_paused: bool,
    /// The former paths of touched settings that existed before the command.
    pub(super) settings: Vec<PathBuf>,
    /// The entries of the call under way whose names do not matter where they are. Another Haft process may be moving their
    /// directories to where they do.
    touched: Vec<(Rc<OpenDir>, OsString)>,
    /// When the inodes of stored files had last changed, in milliseconds since 1970.
    changed_at: HashMap<PathBuf, u64>,
}

/// An entry that waits to be judged.
#[derive(Debug)]
pub(super) struct GuardedNote {
    pub(super) dir: Rc<OpenDir>,
    pub(super) name: OsString,
    /// Where the entry was when it was touched.
    pub(super) path: PathBuf,
    /// Where it was before the command, according to this command's own moves; `None` in a new directory.
    pub(super) former: Option<PathBuf>,
    pub(super) since: Instant,
}

impl GuardedEntries {
    pub(super) fn new(roots: &[PathBuf], record: &dyn Record) -> Self {
        let started_at = haft_tool::now_ms();
        let is_beside_another = record.runs_beside_another(started_at).unwrap_or(true);
        Self { started_at, is_beside_another, roots: roots.to_vec(), ..Self::default() }
    }

    /// Whether more may be named now than before the first change: this command touched something whose name matters, another
    /// call ran beside it, or it took so long that the user may have changed something.
    pub(super) fn may_be_newly_named(&self, record: &dyn Record) -> bool {
        let now = haft_tool::now_ms();
        self.touches_guarded
            || self.touches_named
            || self.is_beside_another
            || now.saturating_sub(self.started_at) > SHORT_COMMAND_MS
            || record.was_followed().unwrap_or(true)
            || record.runs_beside_another(now).unwrap_or(true)
    }

    /// What the user's links and git configurations lead to, found before the first change.
    pub(super) fn named(&self) -> &NamedFiles {
        self.named.get_or_init(|| NamedFiles::find(&self.roots))
    }

    /// Whether the command has changed something that may have to be judged.
    pub(super) fn has_changes(&self) -> bool {
        self.named.get().is_some()
    }

    /// Notes an entry if it may be guarded.
    pub(super) fn note(&mut self, entry: &DirectoryEntry, changes: &CommandChanges) {
        if self.is_paused || entry.dir.area != WriteArea::Workspace {
            return;
        }
        let is_named = self.named().concern(entry.path());
        self.touches_named |= is_named;
        let is_guarded = is_relevant(entry.path());
        self.touches_guarded |= is_guarded;
        self.needs_comparison = true;
        let (dir, name) = (Rc::clone(&entry.dir), entry.name.clone());
        if is_named || is_guarded {
            self.add_note(dir, name, changes);
        } else {
            self.touched.push((dir, name));
        }
    }

    /// Notes those entries of the call that has just ended whose directories are no longer where they were, if they may be
    /// guarded there. `path_of` gives the current path of a directory.
    pub(super) fn note_moved(
        &mut self,
        changes: &CommandChanges,
        path_of: impl Fn(&OpenDir) -> Option<PathBuf>,
    ) {
        for (dir, name) in std::mem::take(&mut self.touched) {
            let Some(now) = path_of(&dir).filter(|now| *now != dir.path) else { continue };
            let path = now.join(&name);
            let is_named = self.named().concern(&path);
            if is_named || is_relevant(&path) {
                self.touches_named |= is_named;
                self.touches_guarded = true;
                self.add_note(dir, name, changes);
            }
        }
    }

    fn add_note(&mut self, dir: Rc<OpenDir>, name: OsString, changes: &CommandChanges) {
        if !self.notes.iter().any(|note| Rc::ptr_eq(&note.dir, &dir) && note.name == name) {
            let path = dir.path.join(&name);
            let former = changes.former_entry(&path);
            self.notes.push(GuardedNote { dir, name, path, former, since: Instant::now() });
        }
    }

    /// Remembers a state that the recorder is about to store.
    pub(super) fn add_state(&mut self, former: &Path, node: &Node, stat: Option<&Stat>) {
        if !is_relevant(former) || !matches!(node, Node::File(_) | Node::Link { .. }) {
            return;
        }
        // A file that a judgement itself removes is not a deletion to judge.
        if settings_rule(former).is_some() && !self.is_paused {
            self.settings.push(former.to_owned());
        }
        if let Some(stat) = stat {
            let millis = i128::from(stat.st_ctime) * 1000 + i128::from(stat.st_ctime_nsec) / 1_000_000;
            self.changed_at.insert(former.to_owned(), u64::try_from(millis).unwrap_or(u64::MAX));
        }
    }
}

impl BeforeView for ChangeRecorder {
    fn former_entry(&self, path: &Path) -> Option<PathBuf> {
        self.changes.former_entry(path)
    }

    fn former_directory(&self, path: &Path) -> Option<PathBuf> {
        self.changes.directories().former_path(path)
    }

    fn current_entry(&self, former: &Path) -> Option<PathBuf> {
        self.changes.current_path(former)
    }

    fn stored(&self, former: &Path) -> Option<Node> {
        self.changes.stored_at(former).cloned()
    }

    fn stored_files(&self) -> Vec<(PathBuf, FileNode)> {
        let relevant = self.guarded.changed_at.keys();
        let file = |former: &PathBuf| Some((former.clone(), self.stored(former)?.as_file()?.clone()));
        relevant.filter_map(file).collect()
    }

    fn stored_bytes(&self, _former: &Path, file: &FileNode) -> Option<Vec<u8>> {
        self.record.stored_content(&file.hash).ok().flatten()
    }

    fn is_own(&self, path: &Path) -> bool {
        birth_id_at(path).is_some_and(|file| self.has_made(file))
    }

    fn is_trusted(&self, former: &Path) -> bool {
        // For files whose names do not matter the time is not known; it counts as now.
        let at = self.guarded.changed_at.get(former).copied().unwrap_or_else(haft_tool::now_ms);
        matches!(self.record.runs_beside_another(at), Ok(false))
    }
}
