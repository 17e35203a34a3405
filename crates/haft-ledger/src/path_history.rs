//! The state of a path at an earlier moment, across directories that were moved since.
//!
//! A history is divided into segments by the moves: within a segment every path names one place.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use haft_tool::{Node, ToolError};

/// Returns the current state of a path, without following links.
pub(crate) type Observe<'a> = dyn FnMut(&Path) -> Result<Node, ToolError> + 'a;

/// A directory that was moved with everything in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DirectoryMove {
    pub(crate) from: PathBuf,
    pub(crate) to: PathBuf,
}

impl DirectoryMove {
    /// The path after the move of what was at `path` before it; `None` if the move has replaced it.
    fn forward<'p>(&self, path: Cow<'p, Path>) -> Option<Cow<'p, Path>> {
        if let Ok(rest) = path.strip_prefix(&self.from) {
            let moved = if rest.as_os_str().is_empty() { self.to.clone() } else { self.to.join(rest) };
            return Some(Cow::Owned(moved));
        }
        (!path.starts_with(&self.to)).then_some(path)
    }

    /// The path before the move of what is at `path` after it; `None` if the move has left nothing there.
    pub(crate) fn backward(&self, path: PathBuf) -> Option<PathBuf> {
        let reversed = Self { from: self.to.clone(), to: self.from.clone() };
        reversed.forward(Cow::Owned(path)).map(Cow::into_owned)
    }
}

/// The segments of a history, oldest first.
#[derive(Debug, Default)]
pub(crate) struct PathHistory {
    /// Of each segment, the initial state of the paths that it changed.
    starts: Vec<HashMap<PathBuf, Node>>,
    /// The move after each segment but the last; `None` once it has been undone.
    moves: Vec<Option<DirectoryMove>>,
}

impl PathHistory {
    /// A history of these segments and the moves between them.
    pub(crate) fn new(starts: Vec<HashMap<PathBuf, Node>>, moves: Vec<Option<DirectoryMove>>) -> Self {
        Self { starts, moves }
    }

    /// Notes that the move after a segment has already been undone.
    pub(crate) fn set_move_undone(&mut self, segment: usize) {
        self.moves[segment] = None;
    }

    /// Notes that undoing a segment will leave another state at a path than its initial one.
    pub(crate) fn set_start(&mut self, segment: usize, path: &Path, node: Node) {
        self.starts[segment].insert(path.to_owned(), node);
    }

    /// The state of `path` at the start of a segment.
    pub(crate) fn at_start(
        &self,
        segment: usize,
        path: &Path,
        observe: &mut Observe<'_>,
    ) -> Result<Node, ToolError> {
        match self.recorded(segment, path) {
            Some(node) => Ok(node),
            None => self.at_end(segment, path, observe),
        }
    }

    /// The state of `path` at the end of a segment.
    pub(crate) fn at_end(
        &self,
        segment: usize,
        path: &Path,
        observe: &mut Observe<'_>,
    ) -> Result<Node, ToolError> {
        let mut path = Cow::Borrowed(path);
        for (at, moved) in self.moves.iter().enumerate().skip(segment) {
            match moved.as_ref().map_or(Some(path.clone()), |moved| moved.forward(path)) {
                None => return Ok(Node::Absent),
                Some(later) => path = later,
            }
            if let Some(node) = self.recorded(at + 1, &path) {
                return Ok(node);
            }
        }
        observe(&path)
    }

    /// The current path of what was at `path` at the end of a segment, if no move has replaced it.
    pub(crate) fn current_path(&self, segment: usize, path: &Path) -> Option<PathBuf> {
        let mut path = Cow::Borrowed(path);
        for moved in self.moves[segment..].iter().flatten() {
            path = moved.forward(path)?;
        }
        Some(path.into_owned())
    }

    /// The paths recorded in later segments, as they were named at the end of this one; `later` is the same for the next
    /// segment.
    pub(crate) fn recorded_after(&self, segment: usize, mut later: BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
        let Some(start) = self.starts.get(segment + 1) else { return later };
        let existed = start.iter().filter(|(_, node)| **node != Node::Absent);
        later.extend(existed.map(|(path, _)| path.clone()));
        match &self.moves[segment] {
            Some(moved) => later.into_iter().filter_map(|path| moved.backward(path)).collect(),
            None => later,
        }
    }

    /// The recorded state of `path` at the start of a segment.
    fn recorded(&self, segment: usize, path: &Path) -> Option<Node> {
        let start = &self.starts[segment];
        if start.is_empty() {
            return None;
        }
        if let Some(node) = start.get(path) {
            return Some(node.clone());
        }
        // Nothing is below what is not a directory.
        let mut ancestors = path.ancestors().skip(1).filter_map(|ancestor| start.get(ancestor));
        ancestors.any(|node| !matches!(node, Node::Dir { .. })).then_some(Node::Absent)
    }
}
