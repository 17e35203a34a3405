//! The events of a thread: one JSON object per line.

use haft_tool::Value;
use serde::Serialize;

/// Something that happens in a thread.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type")]
pub enum ThreadEvent {
    /// The thread is known; always the first event.
    #[serde(rename = "thread.started")]
    ThreadStarted {
        /// The id with which it is resumed.
        thread_id: String,
    },
    /// A prompt is being worked on.
    #[serde(rename = "turn.started")]
    TurnStarted,
    /// The model is done.
    #[serde(rename = "turn.completed")]
    TurnCompleted {
        /// The tokens of the turn.
        usage: ThreadUsage,
    },
    /// The turn ended otherwise.
    #[serde(rename = "turn.failed")]
    TurnFailed {
        /// Why.
        error: ThreadError,
    },
    /// An item is under way.
    #[serde(rename = "item.started")]
    ItemStarted {
        /// The item so far.
        item: ThreadItem,
    },
    /// An item has changed.
    #[serde(rename = "item.updated")]
    ItemUpdated {
        /// The item so far.
        item: ThreadItem,
    },
    /// An item is complete.
    #[serde(rename = "item.completed")]
    ItemCompleted {
        /// The whole item.
        item: ThreadItem,
    },
    /// The thread cannot go on.
    #[serde(rename = "error")]
    Error {
        /// Why.
        message: String,
    },
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ThreadError {
    /// A sentence.
    pub message: String,
}

/// The tokens of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ThreadUsage {
    /// Tokens of requests, cached ones included.
    pub input_tokens: u64,
    /// The part of them that was read from a cache.
    pub cached_input_tokens: u64,
    /// The part of them that was written to a cache.
    pub cache_write_input_tokens: u64,
    /// Tokens of answers, reasoning included.
    pub output_tokens: u64,
    /// The part of them that was reasoning.
    pub reasoning_output_tokens: u64,
}

/// An item of a thread.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ThreadItem {
    /// Unique within the turn.
    pub id: String,
    /// What it is.
    #[serde(flatten)]
    pub body: ThreadItemBody,
}

/// What an item is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ThreadItemBody {
    /// The model said something.
    AgentMessage {
        /// The text.
        text: String,
    },
    /// The model thought something.
    Reasoning {
        /// The text.
        text: String,
    },
    /// A command.
    CommandExecution {
        /// The command line.
        command: String,
        /// Its output so far.
        aggregated_output: String,
        /// How it ended, if it did by itself.
        exit_code: Option<i32>,
        /// How far it is.
        status: ItemStatus,
    },
    /// Files that were changed.
    FileChange {
        /// The paths.
        changes: Vec<ChangedPath>,
        /// How far it is.
        status: ItemStatus,
    },
    /// A call of another tool.
    McpToolCall {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
        /// The arguments.
        arguments: Value,
        /// What it returned.
        result: Option<McpCallResult>,
        /// Why it failed.
        error: Option<ThreadError>,
        /// How far it is.
        status: ItemStatus,
    },
    /// A search of the web.
    WebSearch {
        /// What was searched for.
        query: String,
    },
    /// The model's list of todos.
    TodoList {
        /// The todos.
        items: Vec<ThreadTodo>,
    },
    /// Something that the user should know and that does not end the turn.
    Error {
        /// A sentence.
        message: String,
    },
}

/// How far an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemStatus {
    /// Under way.
    InProgress,
    /// Done.
    Completed,
    /// Failed, denied or interrupted.
    Failed,
}

/// What a tool returned.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct McpCallResult {
    /// Blocks in MCP's form.
    pub content: Vec<Value>,
    /// The same as one value, if the tool has such a form.
    pub structured_content: Option<Value>,
}

/// A path that was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedPath {
    /// The path.
    pub path: String,
    /// How.
    pub kind: PathChangeKind,
}

/// How a path was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PathChangeKind {
    /// It is new.
    Add,
    /// It is gone.
    Delete,
    /// It has other content.
    Update,
}

/// An entry of a list of todos.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ThreadTodo {
    /// What is to be done.
    pub text: String,
    /// Whether it is done.
    pub completed: bool,
}
