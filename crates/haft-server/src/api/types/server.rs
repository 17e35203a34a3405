//! The server, its tools, its errors.

use haft_tool::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// The server, and what the token allows.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Meta {
    /// The version of Haft.
    pub(crate) version: String,
    /// What the token allows: `view`, `approve` (also answer questions) or `act` (also undo, change rules, start runs).
    pub(crate) role: String,
    /// The position of the newest entry of the feed, for `/events?after=`.
    pub(crate) position: u64,
    /// The folder in which the server was started; runs start there unless they name another.
    pub(crate) workspace: String,
    /// The time of the server's clock, in milliseconds since 1970.
    pub(crate) now: u64,
    /// The providers that a run can use.
    pub(crate) providers: Vec<Provider>,
}

/// A provider of models.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Provider {
    /// Its name.
    pub name: String,
    /// The model that is used unless another is named.
    pub model: Option<String>,
    /// Whether a key for it was found, or none is needed.
    pub is_ready: bool,
    /// Whether it is used unless another is named.
    pub is_default: bool,
}

/// A tool.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ToolDefinition {
    /// Its name.
    pub(crate) name: String,
    /// What the model is told.
    pub(crate) description: String,
    /// The JSON schema of its arguments.
    pub(crate) input_schema: Value,
}

/// Tools.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ToolList {
    /// The dialect.
    pub(crate) dialect: String,
    /// The tools.
    pub(crate) tools: Vec<ToolDefinition>,
}

/// An empty object.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Nothing {}

/// An error.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ErrorBody {
    /// What happened.
    pub(crate) error: ErrorInfo,
}

/// What happened.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ErrorInfo {
    /// The kind of error, for programs.
    pub(crate) kind: String,
    /// What happened and what to do, for people.
    pub(crate) message: String,
    /// More data, where the route's description says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) details: Option<Value>,
}
