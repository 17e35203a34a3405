//! The ledger's own tools: the log and undo. They are in no dialect and are offered only on request.

mod haft_log;
mod haft_undo;

use std::sync::Arc;

use haft_tool::{Dialect, Reads};

/// The two tools, to be offered beside those of another dialect.
pub fn dialect() -> Dialect {
    Dialect {
        name: "haft",
        tools: vec![Arc::new(haft_log::HaftLog), Arc::new(haft_undo::HaftUndo)],
        aliases: &[],
        any_case: false,
        reads: Reads::Everywhere,
        blocked: &[],
        keeps: Vec::new(),
        asks: Vec::new(),
    }
}
