//! Codex's non-interactive form: the events that `codex exec --json` prints, and the settings that `--config KEY=VALUE` overrides.

mod config;
mod event;

pub use config::{ExecConfig, ExecSandbox};
pub use event::{
    ChangedPath, ItemStatus, McpCallResult, PathChangeKind, ThreadError, ThreadEvent, ThreadItem,
    ThreadItemBody, ThreadTodo, ThreadUsage,
};
