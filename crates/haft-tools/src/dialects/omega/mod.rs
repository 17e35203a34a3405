//! The `omega` dialect: the four tools of Omega. Their names are matched in any case.

mod bash;
mod edit;
mod read;
mod write;

use std::sync::Arc;

use haft_policy::BLOCKLIST;
use haft_tool::{Bound, Cut, Dialect, ErrorForm, Keep, Reads};

use crate::Settings;

/// The dialect and all its tools.
pub fn dialect(_settings: &Settings) -> Dialect {
    Dialect {
        name: "omega",
        tools: vec![
            Arc::new(bash::OmegaBash),
            Arc::new(read::OmegaRead),
            Arc::new(write::OmegaWrite),
            Arc::new(edit::OmegaEdit),
        ],
        aliases: &[],
        any_case: true,
        reads: Reads::Everywhere,
        writes: &["/tmp"],
        blocked: BLOCKLIST,
        errors: ErrorForm::Message,
        server_results: None,
        listed_last: &[],
        keeps: Vec::new(),
    }
}

/// Omega's `truncate_output`.
pub const fn limit(max_chars: usize) -> Bound {
    Bound { max_chars, keep: Keep::First, notice, ..Bound::DEFAULT }
}

fn notice(cut: &Cut) -> String {
    format!("... (output truncated: {} total chars, showing first {})", cut.total_chars, cut.shown_chars)
}
