//! The `claude` dialect: the tools of Claude Code, under the names it puts on the wire.

mod bash;
mod edit;
mod glob;
mod grep;
mod read;
mod write;

use std::sync::Arc;

use haft_tool::{Dialect, Reads};

/// The dialect and all its tools.
pub fn dialect() -> Dialect {
    Dialect {
        name: "claude",
        tools: vec![
            Arc::new(read::Read),
            Arc::new(write::Write),
            Arc::new(edit::Edit),
            Arc::new(glob::Glob),
            Arc::new(grep::Grep),
            Arc::new(bash::Bash),
        ],
        aliases: &[("FileRead", "Read"), ("FileWrite", "Write"), ("FileEdit", "Edit")],
        any_case: false,
        reads: Reads::Everywhere,
    }
}
