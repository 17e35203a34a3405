//! ask: somebody answers what policy left open.

use haft_tool::net::Authority;
use haft_tool::{Cancel, Decision, Effect, Verdict};

/// What somebody is asked.
#[derive(Debug, Clone)]
pub struct Question {
    /// The tool's name.
    pub tool: String,
    /// What it will touch.
    pub effects: Vec<Effect>,
    /// Why policy leaves it to somebody.
    pub reason: String,
}

/// What somebody answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Run it.
    Allow {
        /// Who said so, for the receipt.
        by: String,
    },
    /// Do not run it.
    Deny {
        /// Why, and how it could be allowed.
        why: String,
    },
}

/// Answers questions: a person at a terminal, a program over a wire.
pub trait Asker: Send + Sync {
    /// Answers one question. Blocks, but returns soon after `cancel` fires. Questions of a session come one after the other.
    fn ask(&self, question: &Question, cancel: &Cancel) -> Answer;
}

/// Answers every question with no, and with the rule that would allow the call.
#[derive(Debug, Clone, Copy, Default)]
pub struct DenyAll;

impl Asker for DenyAll {
    fn ask(&self, question: &Question, _cancel: &Cancel) -> Answer {
        Answer::Deny { why: format!("nobody is here to be asked; {}", how_to_allow(question)) }
    }
}

/// How the user could allow this without being asked.
pub(crate) fn how_to_allow(question: &Question) -> String {
    // What a later effect asks for is more than the tool's name, which an earlier one may be content with.
    let rule = question.effects.iter().rev().find_map(|effect| match effect {
        Effect::Configure { setting } => Some(format!("{}({setting})", question.tool)),
        Effect::Unsandboxed => Some(format!("{}(unsandboxed)", question.tool)),
        Effect::Write { path } => Some(format!("{}(/{})", question.tool, path.display())),
        Effect::Run { .. } => Some(question.tool.clone()),
        Effect::Reach { host } => {
            let host = Authority::parse(host).map_or_else(|_| host.clone(), |place| place.peer.to_string());
            Some(format!("{}(domain:{host})", question.tool))
        }
        _ => None,
    });
    let rule = rule.unwrap_or_else(|| question.tool.clone());
    format!("allow it beforehand with the rule {rule:?} (--allowedTools)")
}

/// The decision after somebody answered.
pub(crate) fn answered(asked: Decision, answer: Answer) -> Decision {
    match answer {
        Answer::Allow { by } => Decision {
            verdict: Verdict::Allow,
            reason: format!("{}; allowed by {by}", asked.reason),
            rule: asked.rule,
        },
        Answer::Deny { why } => {
            Decision { verdict: Verdict::Deny, reason: format!("{}; {why}", asked.reason), rule: asked.rule }
        }
    }
}
