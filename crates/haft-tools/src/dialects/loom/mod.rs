//! The `loom` dialect: the tools of Loom. Each returns one JSON object.

mod bash;
mod edit_file;
mod list_files;
mod oracle;
mod read_file;
mod web_search;

use std::sync::Arc;

use haft_tool::{Bound, Dialect, ErrorForm, ErrorKind, Reads};

use crate::Settings;

/// Loom has no limit for a whole result; this one bounds the memory of a call.
const MAX_RESULT_BYTES: usize = 64 << 20;

const BOUND: Bound = Bound::json(MAX_RESULT_BYTES);

/// The dialect and all its tools.
pub fn dialect(settings: &Settings) -> Dialect {
    Dialect {
        name: "loom",
        tools: vec![
            Arc::new(read_file::LoomReadFile),
            Arc::new(list_files::ListFiles),
            Arc::new(edit_file::LoomEditFile),
            Arc::new(oracle::Oracle { server: settings.loom.clone() }),
            Arc::new(bash::LoomBash),
            Arc::new(web_search::LoomWebSearch { settings: settings.clone() }),
        ],
        aliases: &[],
        any_case: false,
        reads: Reads::Roots,
        writes: &[],
        blocked: &[],
        errors: ErrorForm::Named(ErrorKind::loom_name),
        server_results: None,
        listed_last: &[],
        keeps: Vec::new(),
    }
}
