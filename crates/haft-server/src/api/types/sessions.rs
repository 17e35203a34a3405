//! Sessions, and what happens now.

use haft_tool::JsonSchema;
use serde::Serialize;

use super::{CallSummary, OutputPart, QuestionInfo};

/// What happens now, in all sessions.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Now {
    /// The feed position at which this was true.
    pub(crate) position: u64,
    /// The time of the server's clock, in milliseconds since 1970.
    pub(crate) now: u64,
    /// Questions that wait for an answer, oldest first.
    pub(crate) questions: Vec<QuestionInfo>,
    /// Running calls, oldest first.
    pub(crate) calls: Vec<CallSummary>,
    /// The sessions of these calls and questions, and those whose runs are driven.
    pub(crate) sessions: Vec<SessionEntry>,
}

/// A session.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct SessionEntry {
    /// Its id.
    pub(crate) id: String,
    /// Its name, if it has one.
    pub(crate) name: Option<String>,
    /// The first message of its run, or its only call if it was made for one call; shortened.
    pub(crate) title: Option<String>,
    /// The folder it works in.
    pub(crate) workspace: String,
    /// Its dialect.
    pub(crate) dialect: String,
    /// How it was started: `cli`, `mcp`, `run`, `agent of ID`, …
    pub(crate) entry_point: String,
    /// The session that started it, if it is a subagent's.
    pub(crate) parent: Option<String>,
    /// When it started, in milliseconds since 1970.
    pub(crate) started_at: u64,
    /// How many calls it made.
    pub(crate) calls: u64,
    /// Whether it has a run, with messages and a model.
    pub(crate) has_run: bool,
    /// Whether a process drives its run now.
    pub(crate) is_driven: bool,
}

/// A page of a list of sessions, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionList {
    /// The sessions.
    pub(crate) sessions: Vec<SessionEntry>,
    /// What to give as `before` for the next page; `null` at the end.
    pub(crate) next: Option<String>,
}

/// A session with its run.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionDetail {
    /// The session.
    pub(crate) session: SessionEntry,
    /// Its run, if it has one.
    pub(crate) run: Option<Run>,
    /// The answer that its model is writing now, as far as it is written; events have the rest.
    pub(crate) answer: Option<OutputPart>,
    /// Its subagents, oldest first.
    pub(crate) agents: Vec<SubagentInfo>,
}

/// A run.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Run {
    /// The provider.
    pub(crate) provider: String,
    /// The model.
    pub(crate) model: String,
    /// Finished turns.
    pub(crate) turns: u64,
    /// Tokens of all requests, including those read from a cache.
    pub(crate) input_tokens: u64,
    /// Tokens of all answers.
    pub(crate) output_tokens: u64,
    /// What the run cost in US dollars; `null` if a price is not known.
    pub(crate) cost_usd: Option<f64>,
    /// Whether a turn has begun and not ended.
    pub(crate) in_turn: bool,
    /// Whether `/sessions/ID/interrupt` ends that turn.
    pub(crate) can_interrupt: bool,
    /// Why the last turn ended, for people, unless the model was simply done.
    pub(crate) stopped: Option<String>,
}

/// A subagent.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SubagentInfo {
    /// Its session.
    pub(crate) session: SessionEntry,
    /// The kind of agent.
    pub(crate) kind: String,
    /// What it is for.
    pub(crate) description: String,
    /// The call that started it, if it is known.
    pub(crate) call: Option<i64>,
}
