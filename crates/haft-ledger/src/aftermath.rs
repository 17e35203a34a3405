//! What a command changed whose Haft died with it: told from what the spool has and from what stands there now.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use haft_tool::{Change, FileId, Node, ToolError, path_from_text};

use crate::past::{Move, Past};
use crate::spool::Record;

/// Looks at the world, links not followed.
pub trait Look {
    /// What stands at a path.
    fn observe(&mut self, path: &Path) -> Result<Node, ToolError>;
    /// The names in a directory.
    fn names(&mut self, path: &Path) -> Result<Vec<OsString>, ToolError>;
    /// One name for each of the files, other than `not`, as far as they have any.
    fn find(&mut self, files: HashSet<FileId>, not: &HashSet<&Path>) -> HashMap<FileId, PathBuf>;
}

/// What became of a command.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Aftermath {
    /// What it changed, in order.
    pub(crate) changes: Vec<Change>,
    /// What could not be looked at.
    pub(crate) unseen: Vec<String>,
}

/// Works out what a command changed. `records` are its witness's, in order.
pub(crate) fn aftermath(records: Vec<Record<'_>>, look: &mut dyn Look) -> Aftermath {
    let (stretches, moves) = cut(records, look);
    let begins = stretches.iter().map(|stretch| stretch.iter().cloned().collect()).collect();
    let past = Past::new(begins, moves.iter().cloned().map(Some).collect());
    let mut seen = Seen { past, look, aftermath: Aftermath::default() };
    let (mut parts, mut behind) = (Vec::new(), BTreeSet::new());
    // From the last to the first, because each needs to know what the ones behind it tell.
    for (at, stretch) in stretches.into_iter().enumerate().rev() {
        behind = seen.past.told_behind(at, behind);
        seen.stretch(at, stretch, &behind);
        if let Some(moved) = moves.get(at) {
            let before = seen.end(at, &moved.from).unwrap_or(Node::Dir { mode: 0o755 });
            let change = Change::new(&moved.from, before, Node::Absent);
            seen.aftermath.changes.push(Change { moved_to: Some(moved.to.clone()), ..change });
        }
        parts.push(std::mem::take(&mut seen.aftermath.changes));
    }
    let mut changes: Vec<Change> = parts.into_iter().rev().flatten().collect();
    let more = under_other_names(&changes, seen.look);
    changes.extend(more);
    Aftermath { changes, ..seen.aftermath }
}

/// What was done to files with several names, where the names that the command said have gone.
fn under_other_names(changes: &[Change], look: &mut dyn Look) -> Vec<Change> {
    let mut before = HashMap::new();
    for change in changes {
        if let Some(file) = change.before.linked() {
            before.entry(file).or_insert(&change.before);
        }
    }
    // A name that it had before and still has tells of it.
    for change in changes.iter().filter(|change| change.before.linked() == change.after.linked()) {
        change.after.linked().map(|file| before.remove(&file));
    }
    if before.is_empty() {
        return Vec::new();
    }
    let told = changes.iter().map(|change| &*change.path).collect();
    let mut more = Vec::new();
    for (file, path) in look.find(before.keys().copied().collect(), &told) {
        if let (Some(before), Ok(after)) = (before.get(&file), look.observe(&path))
            && !before.fully_same_as(&after)
        {
            more.push(Change::new(path, (*before).clone(), after));
        }
    }
    more.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    more
}

type Stretch = Vec<(PathBuf, Node)>;

/// Cuts the records at the moves that were made.
fn cut(records: Vec<Record<'_>>, look: &mut dyn Look) -> (Vec<Stretch>, Vec<Move>) {
    let (mut stretches, mut moves) = (vec![Stretch::new()], Vec::new());
    let mut last_is_move = false;
    for record in records {
        last_is_move = matches!(record, Record::Moving { .. });
        match record {
            Record::Before { path, node } => {
                if let Some(stretch) = stretches.last_mut() {
                    stretch.push((path_from_text(&path), node.into_owned()));
                }
            }
            Record::Moving { from, to } => {
                moves.push(Move { from: path_from_text(&from), to: path_from_text(&to) });
                stretches.push(Stretch::new());
            }
            Record::Stayed => take_back(&mut stretches, &mut moves),
        }
    }
    // Death may have come between the record and the move.
    if last_is_move && moves.last().is_some_and(|last| !was_made(last, look)) {
        take_back(&mut stretches, &mut moves);
    }
    for stretch in &mut stretches {
        // The first touch counts.
        let mut known = HashSet::new();
        stretch.retain(|(path, _)| known.insert(path.clone()));
    }
    (stretches, moves)
}

fn take_back(stretches: &mut Vec<Stretch>, moves: &mut Vec<Move>) {
    if moves.pop().is_some()
        && let Some(behind) = stretches.pop()
        && let Some(last) = stretches.last_mut()
    {
        last.extend(behind);
    }
}

fn was_made(moved: &Move, look: &mut dyn Look) -> bool {
    let stands = matches!(look.observe(&moved.to), Ok(Node::Dir { .. }));
    stands && matches!(look.observe(&moved.from), Ok(Node::Absent))
}

struct Seen<'a> {
    past: Past,
    look: &'a mut dyn Look,
    aftermath: Aftermath,
}

impl Seen<'_> {
    fn stretch(&mut self, at: usize, stretch: Stretch, behind: &BTreeSet<PathBuf>) {
        let known: HashSet<PathBuf> = stretch.iter().map(|(path, _)| path.clone()).collect();
        for (path, before) in stretch {
            let Some(after) = self.end(at, &path) else { continue };
            let made = matches!(after, Node::Dir { .. }) && !matches!(before, Node::Dir { .. });
            if !before.fully_same_as(&after) {
                self.aftermath.changes.push(Change::new(&path, before, after));
            }
            if made {
                self.made_below(at, path, &known, behind);
            }
        }
    }

    /// What lies in a directory that the command made is the command's too: what is there now, and what was there until
    /// the command itself changed it later.
    fn made_below(&mut self, at: usize, top: PathBuf, known: &HashSet<PathBuf>, behind: &BTreeSet<PathBuf>) {
        let told = behind.range(top.clone()..).take_while(|path| path.starts_with(&top));
        for path in told.filter(|path| **path != top && !known.contains(*path)) {
            self.made(at, path.clone());
        }
        let mut todo = vec![top];
        while let Some(dir) = todo.pop() {
            let Some(now) = self.past.now(at, &dir) else { continue };
            let names = match self.look.names(&now) {
                Ok(names) => names,
                Err(error) => {
                    self.aftermath.unseen.push(error.message);
                    continue;
                }
            };
            for path in names.into_iter().map(|name| dir.join(name)) {
                if known.contains(&path) {
                    continue;
                }
                let is_dir = if behind.contains(&path) {
                    matches!(self.end(at, &path), Some(Node::Dir { .. }))
                } else {
                    self.made(at, path.clone())
                };
                if is_dir {
                    todo.push(path);
                }
            }
        }
    }

    /// Notes that the command made what stood at `path` when a stretch ended; whether that was a directory.
    fn made(&mut self, at: usize, path: PathBuf) -> bool {
        let Some(after) = self.end(at, &path).filter(|after| *after != Node::Absent) else { return false };
        let is_dir = matches!(after, Node::Dir { .. });
        self.aftermath.changes.push(Change::new(path, Node::Absent, after));
        is_dir
    }

    /// What stood at a path when a stretch ended, if it can be seen.
    fn end(&mut self, at: usize, path: &Path) -> Option<Node> {
        let Self { past, look, aftermath } = self;
        past.end(at, path, &mut |path| look.observe(path))
            .map_err(|error| aftermath.unseen.push(error.message))
            .ok()
    }
}
