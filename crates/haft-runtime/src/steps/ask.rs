//! ask: the user, or a program in their place, answers what policy left open.

use haft_tool::net::Authority;
use haft_tool::{Cancel, Decision, Effect, ToolError, Value, Verdict};

use super::preview::ProposedChange;

/// A call that needs an answer before it may run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Question {
    /// The tool's name.
    pub tool: String,
    /// The arguments of the call.
    pub input: Value,
    /// What it will touch; a path is followed by what it leads to, if that is another path.
    pub effects: Vec<Effect>,
    /// Why policy asks.
    pub reason: String,
    /// What it would change in files and settings, or why that is not known before it runs.
    pub changes: Result<Vec<ProposedChange>, ToolError>,
}

/// The answer to a [`Question`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PermissionAnswer {
    /// Run it.
    Allow {
        /// The origin of the answer, for the receipt.
        by: String,
    },
    /// Do not run it.
    Deny {
        /// Why, and how to allow it; whole sentences.
        why: String,
    },
}

/// Answers questions: a person at a terminal, an MCP client.
pub trait Asker: Send + Sync {
    /// Answers one question. Blocks, but returns soon after `cancel` fires. Questions of a session come one after the other.
    fn ask(&self, question: &Question, cancel: &Cancel) -> PermissionAnswer;
}

/// Denies every call and names the rule that would allow it.
#[derive(Debug, Clone, Copy, Default)]
pub struct DenyAll;

impl Asker for DenyAll {
    fn ask(&self, question: &Question, _cancel: &Cancel) -> PermissionAnswer {
        PermissionAnswer::Deny { why: format!("No one can be asked here. {}", how_to_allow(question)) }
    }
}

/// How the user can allow the call without being asked.
pub(crate) fn how_to_allow(question: &Question) -> String {
    // For an earlier effect the tool's name may be enough; a later one may need more than that.
    let rule = question.effects.iter().rev().find_map(|effect| match effect {
        Effect::Configure { setting, .. } => Some(format!("{}({setting})", question.tool)),
        Effect::Unsandboxed => Some(format!("{}(unsandboxed)", question.tool)),
        Effect::Read { path } | Effect::Write { path } => {
            Some(format!("{}(/{})", question.tool, path.display()))
        }
        Effect::Run { .. } => Some(question.tool.clone()),
        Effect::Reach { host } => {
            let host = Authority::parse(host).map_or_else(|_| host.clone(), |place| place.peer.to_string());
            Some(format!("{}(domain:{host})", question.tool))
        }
        _ => None,
    });
    let rule = rule.unwrap_or_else(|| question.tool.clone());
    format!("To allow it: --allowedTools '{rule}'")
}

/// The decision after the answer.
pub(crate) fn answered(asked: Decision, answer: PermissionAnswer) -> Decision {
    match answer {
        PermissionAnswer::Allow { by } => {
            Decision::new(Verdict::Allow, format!("{}; allowed by {by}", asked.reason), asked.rule)
        }
        PermissionAnswer::Deny { why } => {
            Decision::new(Verdict::Deny, format!("{}. {why}", asked.reason), asked.rule)
        }
    }
}
