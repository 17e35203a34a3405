//! What kind of item a call is, by what it would touch.

use std::path::Path;

use haft_compat::exec::{
    ChangedPath, ItemStatus, McpCallResult, PathChangeKind, ThreadError, ThreadItemBody,
};
use haft_model::{CallArguments, ToolCall};
use haft_runtime::Runtime;
use haft_tool::{Change, Effect, Node, ToolNeed, Value, json};

/// The server that Haft's own tools have where Codex has no item for what they do.
const OWN_SERVER: &str = "haft";
/// Bytes of a command's output that an item has while it runs, at least.
const MAX_OUTPUT_BYTES: usize = 32 << 10;

/// What a call is in a thread.
#[derive(Debug, Clone)]
pub(super) enum ItemKind {
    Command(String),
    Files,
    Search(String),
    Tool {
        server: String,
        tool: String,
        arguments: Value,
    },
    /// It has no item of its own: the list of todos is one.
    None,
}

/// How a call ended.
pub(super) struct ItemEnd<'a> {
    pub(super) text: String,
    pub(super) is_error: bool,
    pub(super) exit_code: Option<i32>,
    pub(super) changes: &'a [Change],
}

impl ItemKind {
    pub(super) fn of(call: &ToolCall, runtime: &Runtime) -> Self {
        let arguments = match &call.arguments {
            CallArguments::Object(object) => Value::Object(object.clone()),
            CallArguments::Invalid(text) => Value::String(text.clone()),
        };
        let effects = runtime.planned_effects(&call.to_call()).unwrap_or_default();
        let command = effects.iter().find_map(|effect| match effect {
            Effect::Run { command } => Some(command.clone()),
            _ => None,
        });
        let server = effects.iter().find_map(|effect| match effect {
            Effect::Serve { server, .. } => Some(server.clone()),
            _ => None,
        });
        let needs = runtime.registry().get(&call.name).and_then(|tool| tool.needs());
        if let Some(command) = command {
            return Self::Command(command);
        }
        if let Some(server) = server {
            let tool = call.name.rsplit("__").next().unwrap_or(&call.name).to_owned();
            return Self::Tool { server, tool, arguments };
        }
        if needs == Some(ToolNeed::SearchEngine) {
            let query = arguments.get("query").and_then(Value::as_str).unwrap_or_default().to_owned();
            return Self::Search(query);
        }
        if effects.iter().any(|effect| matches!(effect, Effect::Write { .. })) {
            return Self::Files;
        }
        if !effects.is_empty() && effects.iter().all(|effect| matches!(effect, Effect::Note { .. })) {
            return Self::None;
        }
        Self::Tool { server: OWN_SERVER.to_owned(), tool: call.name.clone(), arguments }
    }

    /// The item while the call runs; `None` for one that is only shown when it is complete.
    pub(super) fn running(&self, output: &str) -> Option<ThreadItemBody> {
        let status = ItemStatus::InProgress;
        match self {
            Self::Command(command) => Some(ThreadItemBody::CommandExecution {
                command: command.clone(),
                aggregated_output: output.to_owned(),
                exit_code: None,
                status,
            }),
            Self::Files => Some(ThreadItemBody::FileChange { changes: Vec::new(), status }),
            Self::Search(query) => Some(ThreadItemBody::WebSearch { query: query.clone() }),
            Self::Tool { server, tool, arguments } => Some(ThreadItemBody::McpToolCall {
                server: server.clone(),
                tool: tool.clone(),
                arguments: arguments.clone(),
                result: None,
                error: None,
                status,
            }),
            Self::None => None,
        }
    }

    /// The complete item.
    pub(super) fn complete(&self, end: &ItemEnd<'_>) -> Option<ThreadItemBody> {
        let has_failed = end.is_error || end.exit_code.is_some_and(|code| code != 0);
        let status = if has_failed { ItemStatus::Failed } else { ItemStatus::Completed };
        match self {
            Self::Command(command) => Some(ThreadItemBody::CommandExecution {
                command: command.clone(),
                aggregated_output: end.text.clone(),
                exit_code: end.exit_code,
                status,
            }),
            Self::Files => Some(ThreadItemBody::FileChange { changes: changed_paths(end.changes), status }),
            Self::Search(query) => Some(ThreadItemBody::WebSearch { query: query.clone() }),
            Self::Tool { server, tool, arguments } => Some(ThreadItemBody::McpToolCall {
                server: server.clone(),
                tool: tool.clone(),
                arguments: arguments.clone(),
                result: (!end.is_error).then(|| McpCallResult {
                    content: vec![json!({"type": "text", "text": end.text})],
                    structured_content: None,
                }),
                error: end.is_error.then(|| ThreadError { message: end.text.clone() }),
                status,
            }),
            Self::None => None,
        }
    }
}

/// The paths that were changed. A directory that was moved is one path that is gone and one that is new.
pub(super) fn changed_paths(changes: &[Change]) -> Vec<ChangedPath> {
    let path = |path: &Path, kind: PathChangeKind| ChangedPath { path: path.display().to_string(), kind };
    let mut paths = Vec::new();
    for change in changes {
        if let Some(to) = &change.moved_to {
            paths.push(path(&change.path, PathChangeKind::Delete));
            paths.push(path(to, PathChangeKind::Add));
            continue;
        }
        let kind = match (&change.before, &change.after) {
            (Node::Absent, _) => PathChangeKind::Add,
            (_, Node::Absent) => PathChangeKind::Delete,
            _ => PathChangeKind::Update,
        };
        paths.push(path(&change.path, kind));
    }
    paths
}

/// The newest part of a running command's output.
pub(super) fn clip_output(output: &mut String) {
    if output.len() > 2 * MAX_OUTPUT_BYTES {
        let from = output.ceil_char_boundary(output.len() - MAX_OUTPUT_BYTES);
        output.drain(..from);
    }
}
