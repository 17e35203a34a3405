//! What stood at a path at an earlier moment, seen through the directories that were moved since.
//!
//! A history is cut into stretches at the moves: between two moves every path means one place.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use haft_tool::{Node, ToolError};

/// Tells what stands at a path now, links not followed.
pub(crate) type Observe<'a> = dyn FnMut(&Path) -> Result<Node, ToolError> + 'a;

/// A directory that was moved with everything in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) from: PathBuf,
    pub(crate) to: PathBuf,
}

impl Move {
    /// Where what was at `path` is after the move; nothing if the move has put something else there.
    fn through<'p>(&self, path: Cow<'p, Path>) -> Option<Cow<'p, Path>> {
        if let Ok(rest) = path.strip_prefix(&self.from) {
            let moved = if rest.as_os_str().is_empty() { self.to.clone() } else { self.to.join(rest) };
            return Some(Cow::Owned(moved));
        }
        (!path.starts_with(&self.to)).then_some(path)
    }

    /// Where what is at `path` after the move was before it; nothing if the move has left nothing there.
    pub(crate) fn back(&self, path: PathBuf) -> Option<PathBuf> {
        let turned = Self { from: self.to.clone(), to: self.from.clone() };
        turned.through(Cow::Owned(path)).map(Cow::into_owned)
    }
}

/// The stretches of a history, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Past {
    /// What stood at the paths that a stretch changed when it began.
    begins: Vec<HashMap<PathBuf, Node>>,
    /// The move behind each stretch but the last; nothing where it has been taken back.
    moves: Vec<Option<Move>>,
}

impl Past {
    /// A history of these stretches and the moves between them: one fewer.
    pub(crate) fn new(begins: Vec<HashMap<PathBuf, Node>>, moves: Vec<Option<Move>>) -> Self {
        Self { begins, moves }
    }

    /// Says that the move behind a stretch has been taken back already.
    pub(crate) fn is_back(&mut self, stretch: usize) {
        self.moves[stretch] = None;
    }

    /// Says that something else will stand at a path when a stretch is taken back than stood there.
    pub(crate) fn begins_with(&mut self, stretch: usize, path: &Path, node: Node) {
        self.begins[stretch].insert(path.to_owned(), node);
    }

    /// What stood at `path` when a stretch began.
    pub(crate) fn begin(
        &self,
        stretch: usize,
        path: &Path,
        observe: &mut Observe<'_>,
    ) -> Result<Node, ToolError> {
        match self.known(stretch, path) {
            Some(node) => Ok(node),
            None => self.end(stretch, path, observe),
        }
    }

    /// What stood at `path` when a stretch ended.
    pub(crate) fn end(
        &self,
        stretch: usize,
        path: &Path,
        observe: &mut Observe<'_>,
    ) -> Result<Node, ToolError> {
        let mut path = Cow::Borrowed(path);
        for (at, moved) in self.moves.iter().enumerate().skip(stretch) {
            match moved.as_ref().map_or(Some(path.clone()), |moved| moved.through(path)) {
                None => return Ok(Node::Absent),
                Some(later) => path = later,
            }
            if let Some(node) = self.known(at + 1, &path) {
                return Ok(node);
            }
        }
        observe(&path)
    }

    /// Where what stood at `path` when a stretch ended is now, if it has not been changed since.
    pub(crate) fn now(&self, stretch: usize, path: &Path) -> Option<PathBuf> {
        let mut path = Cow::Borrowed(path);
        for moved in self.moves[stretch..].iter().flatten() {
            path = moved.through(path)?;
        }
        Some(path.into_owned())
    }

    /// Everything that is written down of the stretches behind this one, under the names it had when this one ended;
    /// `later` is the same for the next stretch.
    pub(crate) fn told_behind(&self, stretch: usize, mut later: BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
        let Some(begin) = self.begins.get(stretch + 1) else { return later };
        let stood = begin.iter().filter(|(_, node)| **node != Node::Absent);
        later.extend(stood.map(|(path, _)| path.clone()));
        match &self.moves[stretch] {
            Some(moved) => later.into_iter().filter_map(|path| moved.back(path)).collect(),
            None => later,
        }
    }

    /// What is written down of `path` at the beginning of a stretch.
    fn known(&self, stretch: usize, path: &Path) -> Option<Node> {
        let begin = &self.begins[stretch];
        if begin.is_empty() {
            return None;
        }
        if let Some(node) = begin.get(path) {
            return Some(node.clone());
        }
        // There was nothing below what was no directory.
        let mut above = path.ancestors().skip(1).filter_map(|above| begin.get(above));
        above.any(|node| !matches!(node, Node::Dir { .. })).then_some(Node::Absent)
    }
}
