//! The `claude` dialect: the tools of Claude Code, under the names it puts on the wire.

mod bash;
mod edit;
mod glob;
mod grep;
mod read;
mod task_output;
mod task_stop;
mod write;

use std::sync::Arc;

use haft_tool::{Dialect, Reads};

use crate::Settings;

pub use task_output::notice;

/// The dialect and all its tools.
pub fn dialect(settings: &Settings) -> Dialect {
    let _ = settings;
    Dialect {
        name: "claude",
        tools: vec![
            Arc::new(read::Read),
            Arc::new(write::Write),
            Arc::new(edit::Edit),
            Arc::new(glob::Glob),
            Arc::new(grep::Grep),
            Arc::new(bash::Bash),
            Arc::new(task_output::TaskOutput),
            Arc::new(task_stop::TaskStop),
        ],
        aliases: &[("FileRead", "Read"), ("FileWrite", "Write"), ("FileEdit", "Edit")],
        any_case: false,
        reads: Reads::Everywhere,
    }
}
