//! The `loom` dialect: the tools of Loom. Each answers with one JSON object.

mod bash;
mod edit_file;
mod list_files;
mod oracle;
mod read_file;
mod web_search;

use std::sync::Arc;

use haft_tool::{Bound, Dialect, Reads};

use crate::Settings;
use crate::settings::LoomServer;

/// Loom has no limit for a whole result; this is what a call may hold.
const MOST_BYTES: usize = 64 << 20;

/// How its results are cut.
const BOUND: Bound = Bound::json(MOST_BYTES);

/// The dialect and all its tools.
pub fn dialect(settings: &Settings) -> Dialect {
    Dialect {
        name: "loom",
        tools: vec![
            Arc::new(read_file::ReadFile),
            Arc::new(list_files::ListFiles),
            Arc::new(edit_file::EditFile),
            Arc::new(oracle::Oracle::new(&settings.loom)),
            Arc::new(bash::Bash),
            Arc::new(web_search::WebSearch::new(settings)),
        ],
        aliases: &[],
        any_case: false,
        reads: Reads::Roots,
        blocked: &[],
        keeps: Vec::new(),
        asks: vec![("oracle", LoomServer::DEFAULT), ("web_search", LoomServer::DEFAULT)],
    }
}
