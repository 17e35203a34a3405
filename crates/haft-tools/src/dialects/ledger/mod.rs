//! The ledger's own tools: what was done, and taking it back. No dialect has them unless somebody asks for them.

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
