//! Calls.

use haft_tool::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::ChangeList;

/// A call as lists show it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct CallSummary {
    /// Its number in the ledger.
    pub(crate) id: i64,
    /// Its session.
    pub(crate) session: String,
    /// The caller's id for it.
    pub(crate) call_id: String,
    /// The tool.
    pub(crate) tool: String,
    /// What it is about, on one line: the command, the path, the URL.
    pub(crate) about: String,
    /// The folder it works in.
    pub(crate) workspace: String,
    /// `running`, `completed`, `failed`, `denied` or `interrupted`.
    pub(crate) state: String,
    /// When it started, in milliseconds since 1970.
    pub(crate) started_at: u64,
    /// How long it took, in microseconds; 0 while it runs.
    pub(crate) duration_us: u64,
    /// How many paths it changed.
    pub(crate) change_count: u64,
    /// Whether it can be undone: `yes`, `partly` or `no`.
    pub(crate) reversible: String,
    /// The call that undid it.
    pub(crate) undone_by: Option<i64>,
    /// The calls that it undid.
    pub(crate) undoes: Vec<i64>,
    /// The exit code of its command.
    pub(crate) exit_code: Option<i32>,
    /// The kind of its error.
    pub(crate) error_kind: Option<String>,
    /// How often the sandbox refused something to it.
    pub(crate) denials: u64,
    /// The end of its output, while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<OutputPart>,
}

/// A page of a list of calls, newest first, or oldest first if `after` was given.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CallList {
    /// The calls.
    pub(crate) calls: Vec<CallSummary>,
    /// The value of `before` or `after` for the next page; `null` at the end.
    pub(crate) next: Option<i64>,
}

/// A part of a call's output, or of an answer that is being written.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct OutputPart {
    /// The position of its first byte.
    pub(crate) from: u64,
    /// The position after its last byte, where the next part begins.
    pub(crate) next: u64,
    /// The text; bytes that are not UTF-8 are replaced.
    pub(crate) text: String,
}

/// A call.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CallDetail {
    /// The call as lists show it.
    pub(crate) summary: CallSummary,
    /// The arguments; of long strings only the size and the hash.
    pub(crate) input: Value,
    /// How the arguments differ from what the model wrote.
    pub(crate) input_note: Option<String>,
    /// What it declared it would touch, one line each.
    pub(crate) effects: Vec<String>,
    /// What was decided, and why.
    pub(crate) decision: Option<CallDecision>,
    /// The error's message.
    pub(crate) error: Option<String>,
    /// The result as the agent saw it, at most its first megabyte.
    pub(crate) result: Option<String>,
    /// Whether the result is longer than this.
    pub(crate) result_is_cut: bool,
    /// The hash of the whole output, if the agent saw only a part of it.
    pub(crate) full_output: Option<String>,
    /// How the sandbox was enforced.
    pub(crate) enforcement: Option<String>,
    /// What the sandbox refused.
    pub(crate) denials: Vec<CallDenial>,
    /// Files it changed that run when the project is built.
    pub(crate) runs_on_build: Vec<String>,
    /// Why it can be undone only in part or not at all.
    pub(crate) irreversible_why: Option<String>,
    /// Its first changes; `/calls/ID/changes` has the rest.
    pub(crate) changes: ChangeList,
    /// The subagents that it started.
    pub(crate) agents: Vec<String>,
}

/// What was decided about a call.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CallDecision {
    /// `allow`, `ask` or `deny`.
    pub(crate) verdict: String,
    /// Why.
    pub(crate) reason: String,
    /// The rule, with its file and line.
    pub(crate) rule: Option<String>,
}

/// A refusal of the sandbox.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CallDenial {
    /// What was refused.
    pub(crate) what: String,
    /// How to allow it, if that is possible.
    pub(crate) remedy: Option<String>,
}
