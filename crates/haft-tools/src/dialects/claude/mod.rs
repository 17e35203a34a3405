//! The `claude` dialect: the tools of Claude Code, under the names it puts on the wire.

mod agent;
mod ask_user_question;
mod bash;
mod config;
mod edit;
mod exit_plan_mode;
mod glob;
mod grep;
mod list_mcp_resources;
mod notebook_edit;
mod read;
mod read_mcp_resource;
mod task_output;
mod task_stop;
mod todo_write;
mod web_fetch;
mod web_search;
mod write;

use std::path::PathBuf;
use std::sync::Arc;

use haft_tool::{Dialect, ErrorForm, Planning, Reads, ToolError};

use crate::Settings;

pub use crate::ops::tasks::notice;

/// The dialect and all its tools.
pub fn dialect(settings: &Settings) -> Dialect {
    Dialect {
        name: "claude",
        tools: vec![
            Arc::new(read::Read),
            Arc::new(write::Write),
            Arc::new(edit::Edit),
            Arc::new(notebook_edit::NotebookEdit),
            Arc::new(glob::Glob),
            Arc::new(grep::Grep),
            Arc::new(bash::Bash),
            Arc::new(task_output::TaskOutput),
            Arc::new(task_stop::TaskStop),
            Arc::new(todo_write::TodoWrite),
            Arc::new(web_fetch::WebFetch),
            Arc::new(web_search::WebSearch { settings: settings.clone() }),
            Arc::new(agent::Agent),
            Arc::new(ask_user_question::AskUserQuestion),
            Arc::new(exit_plan_mode::ExitPlanMode),
            Arc::new(config::Config),
            Arc::new(list_mcp_resources::ListMcpResources),
            Arc::new(read_mcp_resource::ReadMcpResource),
        ],
        aliases: &[("FileRead", "Read"), ("FileWrite", "Write"), ("FileEdit", "Edit"), ("Task", "Agent")],
        any_case: false,
        reads: Reads::Everywhere,
        writes: &[],
        blocked: &[],
        errors: ErrorForm::Message,
        server_results: None,
        listed_last: &[],
        keeps: Vec::new(),
    }
}

/// The directory to search: `path`, which must be absolute, else the workspace.
fn directory_or_workspace(path: Option<&str>, at: &Planning) -> Result<PathBuf, ToolError> {
    path.map_or_else(|| Ok(at.workspace.clone()), |path| at.only_absolute("path", path))
}
