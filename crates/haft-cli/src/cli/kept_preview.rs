//! `haft sandbox --preview` on a terminal: the command runs recorded, its changes are shown, and they stay or are undone.
//! Discarding without a question needs none of this: the command then writes to an overlay.

use clap::ValueEnum;
use haft_runtime::{CallOptions, Runtime, UndoTarget};
use haft_tool::{Receipt, ToolError};

use super::screen::{self, NOTE, styled};
use super::{show, terminal};

/// What happens to the changes of a command once they have been shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum PreviewThen {
    Ask,
    Keep,
    Discard,
}

impl PreviewThen {
    /// Whether the changes are discarded for sure, so that the command need not make them.
    pub(super) fn is_discard(self) -> bool {
        self == Self::Discard || (self == Self::Ask && !terminal::is_interactive())
    }
}

/// Shows what the command changed, and undoes it unless it is to be kept.
pub(super) fn keep_or_undo(runtime: &Runtime, receipt: &Receipt, then: PreviewThen) -> Result<(), ToolError> {
    if receipt.changes.is_empty() {
        screen::note("The command changed nothing.");
        return Ok(());
    }
    screen::out(&show::changes(&runtime.ledger()?, receipt, false, false));
    let (id, count) = (receipt.id, screen::count(receipt.changes.len() as u64, "change"));
    if then == PreviewThen::Keep || terminal::confirm(&format!("Keep {count}?")) {
        screen::note(&format!("Kept {count}. To undo it: haft undo {id}"));
        return Ok(());
    }
    let preview = runtime.undo_preview(&UndoTarget::Call(id))?;
    let undone = runtime.undo_blocking(&preview, false, CallOptions::default())?;
    if undone.output.is_error() {
        let why = undone.output.as_text();
        return Err(ToolError::failed(format!(
            "The changes could not be discarded: {why}. See: haft undo {id}"
        )));
    }
    screen::note(&styled(NOTE, &format!("Discarded {count}. To get it back: haft redo")));
    Ok(())
}
