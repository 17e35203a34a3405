//! Rules.

use haft_tool::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The rules of a workspace.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ListedRules {
    /// The workspace.
    pub(crate) workspace: String,
    /// The mode, which says who is asked.
    pub(crate) mode: String,
    /// The rules, in the order of their lists.
    pub(crate) rules: Vec<RuleInfo>,
    /// Problems in the settings.
    pub(crate) warnings: Vec<String>,
}

/// A rule.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct RuleInfo {
    /// `deny`, `ask` or `allow`.
    pub(crate) verdict: String,
    /// The rule as written.
    pub(crate) text: String,
    /// Its file and line, or the flag.
    pub(crate) origin: String,
    /// Whether it can be removed here.
    pub(crate) is_removable: bool,
    /// How many of the workspace's newest calls it decided.
    pub(crate) matched: u64,
    /// The newest of those.
    pub(crate) last_matched: Option<i64>,
}

/// A rule to add to the user's settings, or to remove from them.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleChange {
    /// The workspace whose settings apply.
    pub workspace: String,
    /// `deny`, `ask` or `allow`.
    pub verdict: String,
    /// The rule, or a shorthand such as a command.
    pub text: String,
}

/// What adding or removing a rule did.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RuleChanged {
    /// The rule as it was written or removed.
    pub rule: String,
    /// The file.
    pub file: String,
}

/// A call to explain.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExplainRequest {
    /// The workspace.
    pub(crate) workspace: String,
    /// The tool.
    pub(crate) tool: String,
    /// The arguments.
    pub(crate) input: Value,
}

/// What would be decided about a call.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Explained {
    /// `allow`, `ask` or `deny`.
    pub(crate) verdict: String,
    /// Why.
    pub(crate) reason: String,
    /// The rule that decides, with its file and line.
    pub(crate) rule: Option<String>,
    /// What the call would touch, one line each.
    pub(crate) effects: Vec<String>,
}
