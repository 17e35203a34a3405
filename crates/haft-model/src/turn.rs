//! One request to a model and what comes of it.

use std::sync::Arc;
use std::time::Duration;

use haft_tool::{Cancel, Definition, Pause};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{AssistantMessage, Conversation, ModelAddress, ModelError, TokenUsage, ToolCall};

/// A model, wherever it runs.
pub trait Model: Send + Sync {
    /// The provider's name.
    fn provider(&self) -> &str;

    /// The model that is asked unless a request names another.
    fn model(&self) -> &str;

    /// Where it is reached; `None` for a model that is not reached over HTTP.
    fn address(&self) -> Option<ModelAddress> {
        None
    }

    /// Whether its provider holds the text of an answer to this schema, also while it may call tools.
    fn holds_schema(&self, _schema: &OutputSchema) -> bool {
        false
    }

    /// Asks the model for the next message of the conversation. Blocks; reports what arrives, and returns soon after `cancel`.
    fn respond(
        &self,
        request: &TurnRequest<'_>,
        on_event: &mut dyn FnMut(ModelEvent),
        cancel: &Cancel,
    ) -> Result<ModelResponse, ModelError>;

    /// Who answers for a part of the run with one of these names: a subagent, a summary.
    fn for_part(&self, _names: &[&str]) -> PartModel {
        PartModel::Same
    }
}

/// The model of a part of a run.
pub enum PartModel {
    /// The run's own.
    Same,
    /// Another one.
    Other(Arc<dyn Model>),
    /// There is none.
    Missing,
}

/// A model under another name: it is asked for that model in every request.
pub struct NamedModel {
    model: Arc<dyn Model>,
    name: String,
}

impl NamedModel {
    /// The model of this name of the same provider.
    pub fn new(model: Arc<dyn Model>, name: impl Into<String>) -> Self {
        Self { model, name: name.into() }
    }
}

impl Model for NamedModel {
    fn provider(&self) -> &str {
        self.model.provider()
    }

    fn model(&self) -> &str {
        &self.name
    }

    fn holds_schema(&self, schema: &OutputSchema) -> bool {
        self.model.holds_schema(schema)
    }

    fn respond(
        &self,
        request: &TurnRequest<'_>,
        on_event: &mut dyn FnMut(ModelEvent),
        cancel: &Cancel,
    ) -> Result<ModelResponse, ModelError> {
        let model = Some(request.options.model.clone().unwrap_or_else(|| self.name.clone()));
        let options = TurnOptions { model, ..request.options.clone() };
        self.model.respond(&TurnRequest { options: &options, ..*request }, on_event, cancel)
    }

    fn for_part(&self, names: &[&str]) -> PartModel {
        self.model.for_part(names)
    }
}

/// What a model is asked.
#[derive(Debug, Clone, Copy)]
pub struct TurnRequest<'a> {
    /// The conversation so far.
    pub conversation: &'a Conversation,
    /// The tools that it may call. Their order is kept, so that equal lists make equal requests.
    pub tools: &'a [Definition],
    /// Everything else.
    pub options: &'a TurnOptions,
}

/// Options of one request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnOptions {
    /// Another model than the configured one.
    pub model: Option<String>,
    /// The most tokens of the answer.
    pub max_tokens: Option<u32>,
    /// How freely the model answers, from 0 to 2. It is left out, with a notice, where the provider does not accept it.
    pub temperature: Option<f64>,
    /// How much the model thinks; its default if there is none.
    pub effort: Option<ReasoningEffort>,
    /// The form of the answer's text.
    pub output_schema: Option<OutputSchema>,
    /// Which tools the model may call.
    pub tool_choice: ToolChoice,
    /// Whether the answer may contain several calls; the provider's default if there is none.
    pub parallel_calls: Option<bool>,
    /// Requests with the same key have the same beginning, for providers that cache by key.
    pub cache_key: Option<String>,
    /// Whether the answer is sent as it is made.
    pub stream: bool,
    /// Further fields of the request's body, in the form of the wire. They replace Haft's own.
    pub extra: Map<String, Value>,
}

impl Default for TurnOptions {
    fn default() -> Self {
        Self {
            model: None,
            max_tokens: None,
            temperature: None,
            effort: None,
            output_schema: None,
            tool_choice: ToolChoice::Auto,
            parallel_calls: None,
            cache_key: None,
            stream: true,
            extra: Map::new(),
        }
    }
}

/// How much a model thinks before it answers. Wires that know fewer levels get the nearest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReasoningEffort {
    /// Not at all.
    None,
    /// Hardly.
    Minimal,
    /// Little.
    Low,
    /// As most tasks need.
    Medium,
    /// Much.
    High,
    /// Very much.
    XHigh,
    /// As much as it can.
    Max,
}

/// The form that the text of an answer must have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutputSchema {
    /// A name of letters, digits, `_` and `-`.
    pub name: String,
    /// A JSON Schema.
    pub schema: Value,
}

/// Which tools a model may call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// Any or none.
    #[default]
    Auto,
    /// None, although they are defined.
    None,
    /// At least one.
    Required,
    /// This one.
    Tool(String),
}

/// What arrives while a model answers.
///
/// Calls are reported as soon as their arguments are complete. Only the calls of the [`ModelResponse`] count in the end: a
/// response that turns out to be incomplete, or that starts again, may lack calls that were reported.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ModelEvent {
    /// The provider began to answer.
    Started {
        /// The model as the provider names it.
        model: Option<String>,
    },
    /// More text for the user.
    Text {
        /// The next characters.
        delta: String,
    },
    /// More of what the model thinks.
    Reasoning {
        /// The next characters.
        delta: String,
    },
    /// A call begins; its arguments are still to come.
    CallBegun {
        /// Unique within the conversation.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// A call is complete.
    CallComplete(ToolCall),
    /// The tokens so far.
    Usage(TokenUsage),
    /// The request failed and is made again after a wait.
    Retrying(Pause),
    /// Everything that was reported of this message since the last `Started` is void: it starts again.
    Restarted,
    /// Something that the user should know, such as a fallback to an older protocol version.
    Notice {
        /// A sentence.
        text: String,
    },
}

/// Why a model stopped. Whether it called tools is said by the message, not by this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelStop {
    /// It was done, or waits for results.
    End,
    /// It reached the limit of tokens; a call that was cut is not part of the message.
    Length,
    /// The context window is full.
    ContextFull,
    /// The provider wants to be asked again with the same conversation and this message.
    Paused,
    /// The model or its provider refused.
    Refused {
        /// Why, if that was said.
        explanation: String,
    },
    /// The model wrote a call that the provider could not read.
    InvalidCall {
        /// What the provider said.
        explanation: String,
    },
    /// Something else, in the provider's words.
    Other {
        /// The provider's word.
        name: String,
    },
}

/// What a model answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelResponse {
    /// The message, to be added to the conversation.
    pub message: AssistantMessage,
    /// Why the model stopped.
    pub stop: ModelStop,
    /// The tokens it took.
    pub usage: TokenUsage,
    /// The model as the provider names it, else as it was asked for.
    pub model: String,
    /// The provider's name for this response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// The time from the request to the end of the answer, retries included.
    pub elapsed: Duration,
}

/// The facts about an answer that a caller without an interest in its parts needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseSummary {
    /// All text for the user.
    pub text: String,
    /// The provider.
    pub provider: String,
    /// All tokens, in and out.
    pub total_tokens: u64,
    /// How long it took.
    pub elapsed_ms: u64,
    /// The model.
    pub model: Option<String>,
}

impl ModelResponse {
    /// The text with who made it, how long it took, and how many tokens.
    pub fn summary(&self) -> ResponseSummary {
        ResponseSummary {
            text: self.message.text(),
            provider: self.message.origin.provider.clone(),
            total_tokens: self.usage.total(),
            elapsed_ms: u64::try_from(self.elapsed.as_millis()).unwrap_or(u64::MAX),
            model: Some(self.model.clone()).filter(|model| !model.is_empty()),
        }
    }
}

impl ReasoningEffort {
    /// The name in settings and requests.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
            Self::Max => "max",
        }
    }
}
