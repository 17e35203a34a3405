#![doc = include_str!("../README.md")]
//!
//! Never here: sockets, files and processes (requests go through the [`HttpStreams`](haft_tool::HttpStreams) that a model is
//! given), the loop that runs the calls, and knowledge of particular tools.

mod advice;
mod arguments;
mod claude_cli;
mod client;
mod conversation;
mod endpoint;
mod error;
mod model_set;
mod prices;
mod provider;
pub mod schema;
mod script;
mod temperature;
mod turn;
mod usage;
pub mod wire;

pub use arguments::CallArguments;
pub use claude_cli::{ClaudeCliModel, ClaudeCliResult, ClaudeCliSettings, ClaudeProgram};
pub use client::{HttpModel, MODEL_RETRY, ModelTimeouts};
pub use conversation::{
    AssistantMessage, AssistantPart, ChatMessage, ContentPart, Conversation, Origin, ToolCall, ToolResult,
};
pub use endpoint::{Endpoint, ModelAddress, ProviderSettings};
pub use error::{ModelError, ModelErrorKind};
pub use model_set::{CLAUDE_COMPLEX_MODEL, ModelSet, build_provider};
pub use prices::{ModelPrice, PriceTable};
pub use provider::{PROVIDERS, ProviderInfo, model_names, provider};
pub use script::ScriptModel;
pub use turn::{
    Model, ModelEvent, ModelResponse, ModelStop, NamedModel, OutputSchema, PartModel, ReasoningEffort,
    ResponseSummary, ToolChoice, TurnOptions, TurnRequest,
};
pub use usage::TokenUsage;
pub use wire::Wire;
