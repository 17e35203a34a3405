//! The changes of a command whose Haft died: the states in its spool, compared with the current ones.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use haft_tool::{Change, FileId, Node, ToolError, path_from_text};

use crate::path_history::{DirectoryMove, PathHistory};
use crate::spool::SpoolRecord;

/// The mode of a moved directory whose own mode cannot be read.
const DEFAULT_DIRECTORY_MODE: u32 = 0o755;

/// Reads the current state of the file system, without following links.
pub trait WorkspaceView {
    /// The state of a path.
    fn observe(&mut self, path: &Path) -> Result<Node, ToolError>;
    /// The names in a directory.
    fn entry_names(&mut self, path: &Path) -> Result<Vec<OsString>, ToolError>;
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
}

/// Determines what a command changed from the records of its witness, in order.
pub(crate) fn recover_changes(
    records: Vec<SpoolRecord<'_>>,
    view: &mut dyn WorkspaceView,
) -> RecoveredChanges {
    let (segments, moves) = divide(records, view);
    let starts = segments.iter().map(|segment| segment.iter().cloned().collect()).collect();
    let history = PathHistory::new(starts, moves.iter().cloned().map(Some).collect());
    let mut comparison = Comparison { history, view, recovered: RecoveredChanges::default() };
    let (mut parts, mut later) = (Vec::new(), BTreeSet::new());
    // From the last to the first, because each segment needs what the later ones recorded.
    for (at, segment) in segments.into_iter().enumerate().rev() {
        later = comparison.history.recorded_after(at, later);
        comparison.compare(at, segment, &later);
        if let Some(moved) = moves.get(at) {
            let before =
                comparison.at_end(at, &moved.from).unwrap_or(Node::Dir { mode: DEFAULT_DIRECTORY_MODE });
            let change = Change::new(&moved.from, before, Node::Absent);
            comparison.recovered.changes.push(Change { moved_to: Some(moved.to.clone()), ..change });
        }
        parts.push(std::mem::take(&mut comparison.recovered.changes));
    }
    let mut changes: Vec<Change> = parts.into_iter().rev().flatten().collect();
    let more = changes_of_other_links(&changes, comparison.view);
    changes.extend(more);
    RecoveredChanges { changes, ..comparison.recovered }
}

/// The changes of files with several links, where the links that the command used are gone.
fn changes_of_other_links(changes: &[Change], view: &mut dyn WorkspaceView) -> Vec<Change> {
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
    let recorded = changes.iter().map(|change| &*change.path).collect();
    let mut more = Vec::new();
    for (file, path) in view.find_links(before.keys().copied().collect(), &recorded) {
        if let (Some(before), Ok(after)) = (before.get(&file), view.observe(&path))
            && !before.fully_same_as(&after)
        {
            more.push(Change::new(path, (*before).clone(), after));
        }
    }
    more.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    more
}

/// The recorded states between two moves.
type Segment = Vec<(PathBuf, Node)>;

/// Divides the records at the moves that were made.
fn divide(records: Vec<SpoolRecord<'_>>, view: &mut dyn WorkspaceView) -> (Vec<Segment>, Vec<DirectoryMove>) {
    let (mut segments, mut moves) = (vec![Segment::new()], Vec::new());
    let mut last_is_move = false;
    for record in records {
        last_is_move = matches!(record, SpoolRecord::Move { .. });
        match record {
            SpoolRecord::Before { path, node } => {
                if let Some(segment) = segments.last_mut() {
                    segment.push((path_from_text(&path), node.into_owned()));
                }
            }
            SpoolRecord::Move { from, to } => {
                moves.push(DirectoryMove { from: path_from_text(&from), to: path_from_text(&to) });
                segments.push(Segment::new());
            }
            SpoolRecord::MoveCancelled => remove_last_move(&mut segments, &mut moves),
        }
    }
    // The process may have died between the record and the move.
    if last_is_move && moves.last().is_some_and(|last| !was_made(last, view)) {
        remove_last_move(&mut segments, &mut moves);
    }
    for segment in &mut segments {
        // Only the first record of a path counts.
        let mut known = HashSet::new();
        segment.retain(|(path, _)| known.insert(path.clone()));
    }
    (segments, moves)
}

fn remove_last_move(segments: &mut Vec<Segment>, moves: &mut Vec<DirectoryMove>) {
    if moves.pop().is_some()
        && let Some(after) = segments.pop()
        && let Some(last) = segments.last_mut()
    {
        last.extend(after);
    }
}

fn was_made(moved: &DirectoryMove, view: &mut dyn WorkspaceView) -> bool {
    let arrived = matches!(view.observe(&moved.to), Ok(Node::Dir { .. }));
    arrived && matches!(view.observe(&moved.from), Ok(Node::Absent))
}

struct Comparison<'a> {
    history: PathHistory,
    view: &'a mut dyn WorkspaceView,
    recovered: RecoveredChanges,
}

impl Comparison<'_> {
    fn compare(&mut self, at: usize, segment: Segment, later: &BTreeSet<PathBuf>) {
        let known: HashSet<PathBuf> = segment.iter().map(|(path, _)| path.clone()).collect();
        for (path, before) in segment {
            let Some(after) = self.at_end(at, &path) else { continue };
            let is_new_dir = matches!(after, Node::Dir { .. }) && !matches!(before, Node::Dir { .. });
            if !before.fully_same_as(&after) {
                self.recovered.changes.push(Change::new(&path, before, after));
            }
            if is_new_dir {
                self.add_created_below(at, path, &known, later);
            }
        }
    }

    /// Everything in a directory that the command created is the command's too: what exists now, and what existed until
    /// the command changed it later.
    fn add_created_below(
        &mut self,
        at: usize,
        top: PathBuf,
        known: &HashSet<PathBuf>,
        later: &BTreeSet<PathBuf>,
    ) {
        let recorded = later.range(top.clone()..).take_while(|path| path.starts_with(&top));
        for path in recorded.filter(|path| **path != top && !known.contains(*path)) {
            self.add_created(at, path.clone());
        }
        let mut pending = vec![top];
        while let Some(dir) = pending.pop() {
            let Some(current) = self.history.current_path(at, &dir) else { continue };
            let names = match self.view.entry_names(&current) {
                Ok(names) => names,
                Err(error) => {
                    self.recovered.unreadable.push(error.message);
                    continue;
                }
            };
            for path in names.into_iter().map(|name| dir.join(name)) {
                if known.contains(&path) {
                    continue;
                }
                let is_dir = if later.contains(&path) {
                    matches!(self.at_end(at, &path), Some(Node::Dir { .. }))
                } else {
                    self.add_created(at, path.clone())
                };
                if is_dir {
                    pending.push(path);
                }
            }
        }
    }

    /// Adds that the command created what was at `path` at the end of a segment; returns whether it is a directory.
    fn add_created(&mut self, at: usize, path: PathBuf) -> bool {
        let Some(after) = self.at_end(at, &path).filter(|after| *after != Node::Absent) else { return false };
        let is_dir = matches!(after, Node::Dir { .. });
        self.recovered.changes.push(Change::new(path, Node::Absent, after));
        is_dir
    }

    /// The state of a path at the end of a segment, if it can be read.
    fn at_end(&mut self, at: usize, path: &Path) -> Option<Node> {
        let Self { history, view, recovered } = self;
        history
            .at_end(at, path, &mut |path| view.observe(path))
            .map_err(|error| recovered.unreadable.push(error.message))
            .ok()
    }
}
