//! The paths that an undo is limited to.

use std::path::{Path, PathBuf};

use haft_tool::{Change, ErrorKind, Node, Receipt, ToolError, lies_in};

/// Which changes of calls are undone, by their absolute paths.
#[derive(Debug, Clone, Default)]
pub struct UndoPaths {
    /// Only what is at or below these; everything if there are none.
    pub only: Vec<PathBuf>,
    /// What is at or below these stays, and so do created directories that contain it.
    pub except: Vec<PathBuf>,
}

impl UndoPaths {
    /// Whether the change is to be undone.
    pub(crate) fn include(&self, change: &Change) -> bool {
        let is_wanted = self.only.is_empty() || self.only.iter().any(|path| is_in(change, path));
        is_wanted && !self.except.iter().any(|path| is_in(change, path) || creates_above(change, path))
    }

    /// Removes the changes that are not to be undone from the receipts, and returns how many there were.
    pub(crate) fn restrict(&self, receipts: &mut Vec<Receipt>) -> Result<usize, ToolError> {
        if self.only.is_empty() && self.except.is_empty() {
            return Ok(0);
        }
        let mut left_out = 0;
        for receipt in &mut *receipts {
            self.check_moves(receipt)?;
            let moves = |is_undone: bool| -> Vec<PathBuf> {
                let moves = receipt.changes.iter().filter(|change| change.moved_to.is_some());
                moves
                    .filter(|change| self.include(change) == is_undone)
                    .map(|change| change.path.clone())
                    .collect()
            };
            let (undone, kept) = (moves(true), moves(false));
            let before = receipt.changes.len();
            // What changed in a moved directory is listed under its former path.
            let is_below = |moves: &[PathBuf], path: &Path| moves.iter().any(|moved| lies_in(path, moved));
            receipt.changes.retain(|change| {
                !is_below(&kept, &change.path) && (self.include(change) || is_below(&undone, &change.path))
            });
            left_out += before - receipt.changes.len();
        }
        receipts.retain(|receipt| !receipt.changes.is_empty());
        if receipts.is_empty() {
            let why = "the call changed nothing in these paths".to_owned();
            return Err(ToolError::new(ErrorKind::TargetNotFound, why));
        }
        Ok(left_out)
    }

    /// Fails if a path is in a directory that the call moved: it can only be moved back with that directory.
    fn check_moves(&self, receipt: &Receipt) -> Result<(), ToolError> {
        for change in &receipt.changes {
            let Some(to) = &change.moved_to else { continue };
            let is_inside = |path: &&PathBuf| {
                [&change.path, to].into_iter().any(|moved| *path != moved && lies_in(path, moved))
            };
            let kept = self.except.iter().filter(|_| self.include(change));
            if let Some(path) = self.only.iter().chain(kept).find(is_inside) {
                return Err(ToolError::invalid_arguments(format!(
                    "{} was moved with its directory by call {}: {} to {}. Name that directory to undo the move.",
                    path.display(),
                    receipt.id,
                    change.path.display(),
                    to.display()
                )));
            }
        }
        Ok(())
    }
}

fn is_in(change: &Change, path: &Path) -> bool {
    lies_in(&change.path, path) || change.moved_to.as_deref().is_some_and(|moved_to| lies_in(moved_to, path))
}

/// Whether the change made a directory in which `path` lies.
fn creates_above(change: &Change, path: &Path) -> bool {
    let is_directory = |node: &Node| matches!(node, Node::Dir { .. });
    !is_directory(&change.before) && is_directory(&change.after) && lies_in(path, &change.path)
}
