//! The events of a run, as they are stored.

use std::path::PathBuf;

use haft_model::{
    ChatMessage, ContentPart, ModelAddress, ModelErrorKind, ModelResponse, TokenUsage, ToolResult,
};
use haft_tool::TraceContext;
use serde::{Deserialize, Serialize};

use crate::{AgentOrigin, RunLimits};

/// The version of the events that this crate writes. Logs of a later version are refused.
pub const RUN_LOG_VERSION: u32 = 1;

/// One event of a run. Kinds and fields are only ever added, with a default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunEvent {
    /// The run begins. Always the first event, and only that.
    Started(Box<RunStart>),
    /// The user said something: a turn begins.
    UserMessage {
        /// Texts and images.
        content: Vec<ContentPart>,
        /// The id that its author gave it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        uuid: Option<String>,
        /// Where the turn belongs in a trace.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trace: Option<TurnTrace>,
    },
    /// The run goes on with a conversation from elsewhere. Only before the first turn.
    Imported {
        /// Whose transcript it is, for people.
        from: String,
        /// The messages.
        messages: Vec<ChatMessage>,
    },
    /// The model answered.
    Answer {
        /// The whole answer.
        response: Box<ModelResponse>,
        /// What it cost in US dollars; `None` if the price is not known.
        #[serde(default)]
        cost_usd: Option<f64>,
        /// How it arrived.
        #[serde(default, skip_serializing_if = "AnswerArrival::is_unknown")]
        arrival: AnswerArrival,
    },
    /// The loop told the model something, for example that its answer was cut.
    LoopMessage {
        /// The text.
        text: String,
    },
    /// Instructions: of a directory that the calls work in, or, without files, for the form of the answer.
    Instructions {
        /// The files, with their links resolved.
        files: Vec<PathBuf>,
        /// What the model is told.
        text: String,
    },
    /// A call is about to run.
    CallStarted {
        /// The id of the model's call.
        call_id: String,
    },
    /// A call has its result.
    CallFinished {
        /// The result, as the model sees it.
        result: ToolResult,
        /// The number of the call in the ledger, if it was made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        receipt: Option<i64>,
    },
    /// The turn is over.
    TurnEnded {
        /// Why.
        stop: RunStop,
    },
    /// Another model answers from here on.
    ModelChanged {
        /// Its provider.
        provider: String,
        /// Its name.
        model: String,
        /// Where it is reached, if that is another place than before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        address: Option<ModelAddress>,
    },
    /// The system prompt is another one from here on.
    SystemChanged {
        /// Its sections.
        system: Vec<String>,
    },
    /// Old results were replaced by the number under which the ledger has them.
    Elided {
        /// The calls.
        calls: Vec<ElidedCall>,
    },
    /// Old messages were replaced by a summary.
    Compacted {
        /// The message in their place.
        summary: String,
        /// How many of the newest messages were kept.
        kept: usize,
        /// The tokens of the summary.
        #[serde(default)]
        usage: TokenUsage,
        /// What it cost in US dollars; `None` if the price is not known.
        #[serde(default)]
        cost_usd: Option<f64>,
    },
    /// Something else than an answer of the run was paid for: a subagent, a summary of a page.
    Spent {
        /// What for.
        on: String,
        /// The tokens.
        #[serde(default)]
        usage: TokenUsage,
        /// What it cost in US dollars; `None` if the price is not known.
        #[serde(default)]
        cost_usd: Option<f64>,
    },
    /// Everything after an event does not count any more.
    Rewound {
        /// The sequence number of the last event that counts.
        to: u64,
    },
    /// A hook of the user told the model something.
    HookMessage {
        /// The event at which it ran, by Claude Code's name.
        hook: String,
        /// What the model is told.
        text: String,
    },
    /// An event of a later version of Haft.
    #[serde(other)]
    Unknown,
}

/// How an answer arrived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AnswerArrival {
    /// Milliseconds from the request to the first part of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_part_ms: Option<u64>,
    /// How often the request was made again.
    #[serde(skip_serializing_if = "is_zero")]
    pub retries: u32,
}

impl AnswerArrival {
    /// Whether nothing is known of it.
    fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Where a turn belongs in a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnTrace {
    /// The span of the turn.
    pub own: TraceContext,
    /// The span that it is below: of the program that asked, or of the call that started the subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TraceContext>,
}

/// What a run begins with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunStart {
    /// The version of the events.
    pub version: u32,
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// Where the model is reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<ModelAddress>,
    /// The dialect of the tools.
    pub dialect: String,
    /// The limits at the beginning.
    pub limits: RunLimits,
    /// The sections of the system prompt.
    pub system: Vec<String>,
    /// The hash of the tools' definitions.
    pub tools_hash: String,
    /// The run that this one is a copy of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<String>,
    /// Whose subagent it is, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentOrigin>,
}

/// A call whose result was replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElidedCall {
    /// The id of the model's call.
    pub call_id: String,
    /// The number of the call in the ledger, if it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<i64>,
}

/// Why a turn ended. The work so far is kept in every case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunStop {
    /// The model was done.
    Done,
    /// The limit of rounds was reached.
    MaxTurns {
        /// The limit.
        rounds: u32,
    },
    /// The limit of dollars was reached.
    MaxBudget {
        /// The limit.
        dollars: f64,
    },
    /// The limit of time was reached.
    Timeout {
        /// The limit in milliseconds.
        limit_ms: u64,
    },
    /// The user stopped the turn.
    Interrupted,
    /// The model or its provider refused.
    Refused {
        /// Why, if that was said.
        explanation: String,
    },
    /// The model did not come to an end: its answers were cut, or its calls could not be read, too often in a row.
    Unfinished {
        /// What happened.
        explanation: String,
    },
    /// The final answer does not fit the schema that it must have.
    SchemaMismatch {
        /// What is wrong.
        explanation: String,
    },
    /// A hook of the user ended the turn, or kept it from beginning.
    Hook {
        /// Why.
        explanation: String,
    },
    /// The model could not be asked.
    Failed {
        /// Which kind of failure.
        kind: ModelErrorKind,
        /// What happened, and what the user can do.
        message: String,
    },
}

impl RunStop {
    /// The name in JSON and on the screen.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::MaxTurns { .. } => "max_turns",
            Self::MaxBudget { .. } => "max_budget",
            Self::Timeout { .. } => "timeout",
            Self::Interrupted => "interrupted",
            Self::Refused { .. } => "refused",
            Self::Unfinished { .. } => "unfinished",
            Self::SchemaMismatch { .. } => "schema_mismatch",
            Self::Hook { .. } => "hook",
            Self::Failed { .. } => "failed",
        }
    }

    /// What happened and what to do, for people; nothing if the model was done.
    pub fn explanation(&self) -> Option<String> {
        Some(match self {
            Self::Done => return None,
            Self::MaxTurns { rounds } => {
                format!("The run stopped after {rounds} rounds, its limit. To allow more: --max-turns.")
            }
            Self::MaxBudget { dollars } => {
                format!(
                    "The run stopped because it cost ${dollars}, its limit. To allow more: --max-budget-usd."
                )
            }
            Self::Timeout { limit_ms } => {
                format!("The run stopped after {limit_ms} ms, its limit. To allow more: --timeout.")
            }
            Self::Interrupted => "The run was interrupted.".to_owned(),
            Self::Refused { explanation } if explanation.is_empty() => "The model refused.".to_owned(),
            Self::Refused { explanation } => format!("The model refused: {explanation}"),
            Self::Unfinished { explanation } => explanation.clone(),
            Self::SchemaMismatch { explanation } => {
                format!(
                    "The final answer does not fit the output schema: {explanation}. Simplify the schema, or use another model."
                )
            }
            Self::Hook { explanation } => format!("A hook ended the turn: {explanation}"),
            Self::Failed { message, .. } => message.clone(),
        })
    }
}
