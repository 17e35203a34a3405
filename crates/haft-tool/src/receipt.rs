//! What a call did, as the ledger keeps it.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Change, Denial, Effect, ErrorKind, Reversible, TraceContext};

/// How a call ended, or that it has not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReceiptState {
    /// Being performed.
    #[default]
    Running,
    /// Done.
    Completed,
    /// Performed, and failed.
    Failed,
    /// Not performed: policy or the user said no.
    Denied,
    /// Cancelled, or its process died; what it had changed is known.
    Interrupted,
}

impl ReceiptState {
    /// The word in the ledger and on the screen.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::Interrupted => "interrupted",
        }
    }
}

/// What `decide` or the user decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Run it.
    Allow,
    /// Ask the user.
    Ask,
    /// Do not run it.
    Deny,
}

impl Verdict {
    /// `allow`, `ask` or `deny`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// A verdict that explains itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Decision {
    /// The verdict.
    pub verdict: Verdict,
    /// Why, in one sentence.
    pub reason: String,
    /// The rule that decided, and where it is defined, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

impl Decision {
    /// A decision, with the rule that made it.
    pub fn new(verdict: Verdict, reason: impl Into<String>, rule: Option<String>) -> Self {
        Self { verdict, reason: reason.into(), rule }
    }
}

/// What a call did: the decision, the timing, the outcome and every change with the previous state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Receipt {
    /// The number of the call in this ledger; 0 until the ledger has given one.
    pub id: i64,
    /// The session it belongs to.
    pub session: String,
    /// The caller's id for the call.
    pub call_id: String,
    /// The tool's name.
    pub tool: String,
    /// The workspace it ran in.
    #[serde(with = "crate::path_text")]
    pub workspace: PathBuf,
    /// Its arguments; long strings are named by size and hash.
    pub input: Value,
    /// How the arguments differ from what the model wrote, if they had to be repaired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_note: Option<String>,
    /// What it declared it would touch.
    pub effects: Vec<Effect>,
    /// Why it was allowed or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// How it ended.
    pub state: ReceiptState,
    /// The error's kind, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_kind: Option<ErrorKind>,
    /// The error's message, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it started, in milliseconds since 1970.
    pub started_at: u64,
    /// How long it took, in microseconds.
    pub duration_us: u64,
    /// What it changed.
    #[serde(default)]
    pub changes: Vec<Change>,
    /// Whether it can be undone.
    pub reversible: Reversible,
    /// The calls that this one undid, if it is an undo.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undoes: Vec<i64>,
    /// Whether it undid only some paths of those calls, so that they do not count as undone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undoes_partly: bool,
    /// The exit code of its command, as a shell would report it: 128 and the number for a signal, 124 for a timeout, 130
    /// if it was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The hash of the text that `bound` cut, if it cut any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_output: Option<String>,
    /// How the scope was enforced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforcement: Option<String>,
    /// What the scope refused to its commands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denials: Vec<Denial>,
    /// Files that it changed and that run when the project is built or run, as paths in the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs_on_build: Vec<String>,
    /// The span that the call belongs to: of its turn, or of the program that asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_parent: Option<TraceContext>,
    /// Values for the later calls of its session.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub notes: Map<String, Value>,
}

impl Receipt {
    /// The receipt of a call that has not done anything yet.
    pub fn new(
        call_id: impl Into<String>,
        tool: impl Into<String>,
        workspace: impl Into<PathBuf>,
        started_at: u64,
    ) -> Self {
        let (call_id, tool, workspace) = (call_id.into(), tool.into(), workspace.into());
        Self { call_id, tool, workspace, started_at, ..Self::default() }
    }
}
