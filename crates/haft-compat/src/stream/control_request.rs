//! What the program that drives the agent can want.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::InitializeRequest;

/// What the program wants.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ControlRequest {
    /// The session begins.
    Initialize(Box<InitializeRequest>),
    /// The turn is to stop.
    Interrupt {
        /// Whether the messages that wait are dropped, too.
        #[serde(default)]
        cancel_queued: bool,
    },
    /// Another permission mode.
    SetPermissionMode {
        /// Its name.
        mode: String,
    },
    /// Another model; the default one if there is none.
    SetModel {
        /// Its name.
        #[serde(default)]
        model: Option<String>,
    },
    /// Another limit of thinking.
    SetMaxThinkingTokens {},
    /// The files as they were before a message of the user.
    RewindFiles {
        /// The id of the message.
        user_message_id: String,
        /// Whether nothing is to be changed.
        #[serde(default)]
        dry_run: bool,
    },
    /// A background task is to end.
    StopTask {
        /// Its id.
        task_id: String,
    },
    /// A message of a server inside the program that belongs to no request.
    McpMessage {},
    /// The states of the MCP servers.
    McpStatus {},
    /// The rules in force.
    ListPermissionRules {},
    /// What the session has cost.
    GetSessionCost {},
    /// How full the context is.
    GetContextUsage {},
}

impl ControlRequest {
    /// The names of the requests that are known.
    const NAMES: [&str; 12] = [
        "initialize",
        "interrupt",
        "set_permission_mode",
        "set_model",
        "set_max_thinking_tokens",
        "rewind_files",
        "stop_task",
        "mcp_message",
        "mcp_status",
        "list_permission_rules",
        "get_session_cost",
        "get_context_usage",
    ];

    /// Reads a request. `Ok(None)` is one that is not known; an error says what is wrong with one that is.
    pub fn read(request: &Map<String, Value>) -> Result<Option<Self>, String> {
        let subtype = request.get("subtype").and_then(Value::as_str).unwrap_or_default();
        if !Self::NAMES.contains(&subtype) {
            return Ok(None);
        }
        let request = Value::Object(request.clone());
        serde_json::from_value(request).map(Some).map_err(|error| format!("{subtype}: {error}"))
    }
}
