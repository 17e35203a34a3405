//! ask: the user, or a program in their place, answers what policy leaves open.

use haft_policy::{Decided, Policy, Request, command_specifiers, decide};
use haft_tool::net::Authority;
use haft_tool::{Audience, Cancel, Decision, Effect, ToolError, Value, Verdict};

use super::preview::ProposedChange;
use crate::grants::SessionGrants;

/// The longest command that becomes a rule.
const MAX_RULE_CHARS: usize = 200;

/// A call that needs an answer before it may run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Question {
    /// The caller's id for the call.
    pub call_id: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments of the call.
    pub input: Value,
    /// What it will touch. A path is followed by the one that it leads to, if that differs.
    pub effects: Vec<Effect>,
    /// Why policy asks.
    pub reason: String,
    /// The rule that asks, and where it is written, if it is one.
    pub asked_by: Option<String>,
    /// What it would change in files and settings, or why that is not known before it runs.
    pub changes: Result<Vec<ProposedChange>, ToolError>,
    /// The narrowest rule that would allow it without a question, if one can: an ask rule cannot be overridden.
    pub rule: Option<String>,
    /// The subagent that makes the call, if it is one.
    pub agent: Option<String>,
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
    /// Run it, and later calls of the session that the rule matches without a question.
    AllowRule {
        /// The origin of the answer, for the receipts.
        by: String,
        /// The rule.
        rule: String,
    },
    /// Run it with these arguments instead. They are checked and decided again, so that this bypasses no rule.
    AllowInput {
        /// The origin of the answer, for the receipt.
        by: String,
        /// The arguments.
        input: Value,
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

    /// Who answers.
    fn audience(&self) -> Audience {
        Audience::Person
    }

    /// Called after [`Asker::ask`] has returned because the question was answered elsewhere. `by` names the person, `did` what
    /// they did, such as "denied it".
    fn answered_elsewhere(&self, _by: &str, _did: &str) {}
}

/// Denies every call and names the rule that would allow it.
#[derive(Debug, Clone, Copy, Default)]
pub struct DenyAll;

impl Asker for DenyAll {
    fn ask(&self, question: &Question, _cancel: &Cancel) -> PermissionAnswer {
        PermissionAnswer::Deny { why: format!("No one can be asked here. {}", how_to_allow(question)) }
    }

    fn audience(&self) -> Audience {
        Audience::PagesOnly
    }
}

/// Does the same, for a user who does not want to be asked, not even on a page.
#[derive(Debug, Clone, Copy, Default)]
pub struct NeverAsk;

impl Asker for NeverAsk {
    fn ask(&self, question: &Question, cancel: &Cancel) -> PermissionAnswer {
        DenyAll.ask(question, cancel)
    }

    fn audience(&self) -> Audience {
        Audience::NoOne
    }
}

/// How the user can allow the call without being asked.
pub fn how_to_allow(question: &Question) -> String {
    let rule = question.rule.clone();
    let rule = rule.or_else(|| candidate_rules(&question.tool, &question.effects).into_iter().next());
    format!("To allow it: --allowedTools '{}'", rule.unwrap_or_else(|| question.tool.clone()))
}

/// The narrowest rule that would allow a call with these effects without a question, if one can.
pub(crate) fn narrowest_rule(
    tool: &str,
    effects: &[Effect],
    policy: &Policy,
    grants: &SessionGrants,
) -> Option<String> {
    let request = Request { tool, effects };
    candidate_rules(tool, effects).into_iter().find(|rule| {
        let policy = grants.with_rule(policy, rule);
        policy.is_ok_and(|policy| matches!(decide(request, &policy), Decided::Allow(..)))
    })
}

/// Rules that may allow a call with these effects, the narrowest first.
fn candidate_rules(tool: &str, effects: &[Effect]) -> Vec<String> {
    let specifier = |effect: &Effect| match effect {
        Effect::Configure { setting, .. } => Some(setting.clone()),
        Effect::Unsandboxed => Some("unsandboxed".to_owned()),
        Effect::Read { path } | Effect::Write { path } => {
            Some(format!("/{}", without_wildcards(&path.display().to_string())))
        }
        Effect::Run { command } if is_plain(command) => Some(command.clone()),
        Effect::Reach { host } => {
            let host = Authority::parse(host).map_or_else(|_| host.clone(), |place| place.peer.to_string());
            Some(format!("domain:{host}"))
        }
        _ => None,
    };
    // The last effects first: for earlier ones the tool's name may be enough, later ones may need more.
    let specific = effects.iter().rev().flat_map(|effect| match effect {
        Effect::Run { command } => command_specifiers(command).into_iter().chain(specifier(effect)).collect(),
        effect => specifier(effect).into_iter().collect::<Vec<_>>(),
    });
    let fits = |text: &String| text.chars().count() <= MAX_RULE_CHARS;
    specific.filter(fits).map(|text| format!("{tool}({text})")).chain([tool.to_owned()]).collect()
}

/// The path as a pattern that matches only itself, because a file may be called `**`.
fn without_wildcards(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len());
    for c in path.chars() {
        if "*?[]{}!".contains(c) {
            pattern.extend(['[', c, ']']);
        } else {
            pattern.push(c);
        }
    }
    pattern
}

/// Whether a command can be written in a rule as it is and means only itself there.
fn is_plain(command: &str) -> bool {
    !command.contains(['\n', '*', '(', ')', ',', '\'', ':'])
}

/// The decision after the user allowed the call.
pub(crate) fn allowed(asked: Decision, by: &str) -> Decision {
    Decision::new(Verdict::Allow, format!("{}; allowed by {by}", asked.reason), asked.rule)
}

/// The decision after the user denied the call.
pub(crate) fn refused(asked: Decision, why: &str) -> Decision {
    Decision::new(Verdict::Deny, format!("{}. {why}", asked.reason), asked.rule)
}
