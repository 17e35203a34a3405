//! The `omega` dialect: the four tools of Omega, their names in any case.

mod bash;
mod edit;
mod read;
mod write;

use std::sync::Arc;

use haft_tool::{BLOCKLIST, Bound, Cut, Dialect, Keep, Reads};

use crate::Settings;

/// The dialect and all its tools.
pub fn dialect(_settings: &Settings) -> Dialect {
    Dialect {
        name: "omega",
        tools: vec![Arc::new(bash::Bash), Arc::new(read::Read), Arc::new(write::Write), Arc::new(edit::Edit)],
        aliases: &[],
        any_case: true,
        reads: Reads::Everywhere,
        blocked: BLOCKLIST,
        keeps: Vec::new(),
        asks: Vec::new(),
    }
}

/// How Omega cuts a text: its `truncate_output`.
pub const fn limit(max_chars: usize) -> Bound {
    Bound { max_chars, keep: Keep::First, notice, ..Bound::DEFAULT }
}

fn notice(cut: &Cut) -> String {
    format!("... (output truncated: {} total chars, showing first {})", cut.total_chars, cut.shown_chars)
}
