//! Questions and answers as they are stored in the ledger, for processes that show them to people.

use haft_tool::{Effect, HostRequest, PlanReady, UserQuestion, Value};
use serde::{Deserialize, Serialize};

use crate::steps::ask::Question;
use crate::steps::preview::ProposedChange;
use crate::text_diff::{TextChanges, text_changes};

/// Lines of a difference that are kept. A longer one says that it is cut, because a person decides by what is shown.
const MAX_DIFF_LINES: usize = 5_000;

/// A question that waits for a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SharedQuestion {
    /// Whether a call may run.
    Permission(Box<PermissionQuestion>),
    /// Whether a command may reach a host.
    Host {
        /// The command.
        command: String,
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// The entry for a list of domains that would allow it.
        entry: String,
    },
    /// Questions with answers to choose from.
    Choices {
        /// The questions.
        questions: Vec<UserQuestion>,
    },
    /// Whether a plan is to be carried out.
    Plan {
        /// The plan, if it is known.
        plan: Option<String>,
        /// The permissions it requests: a tool and what for.
        allow: Vec<(String, String)>,
    },
}

/// The question whether a call may run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PermissionQuestion {
    /// The caller's id for the call.
    pub call_id: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments.
    pub input: Value,
    /// What it will touch.
    pub effects: Vec<Effect>,
    /// Why policy asks.
    pub reason: String,
    /// The rule that asks, if a rule does.
    pub asked_by: Option<String>,
    /// The narrowest rule that would allow it without a question, if one can.
    pub rule: Option<String>,
    /// What it would change in files and settings.
    pub changes: Vec<SharedChange>,
    /// Why the changes are not known before it runs, if they are not.
    pub changes_unknown: Option<String>,
    /// The subagent that makes the call, if one does.
    pub agent: Option<String>,
}

/// A change that a call would make.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum SharedChange {
    /// A file gets new content.
    File {
        /// Its path.
        path: String,
        /// Its size now; `None` if it does not exist.
        old_size: Option<u64>,
        /// Its new size.
        new_size: u64,
        /// The lines that change; `None` if it is not text.
        text: Option<TextChanges>,
    },
    /// A setting gets a new value.
    Setting {
        /// Its name.
        name: String,
        /// Its value now.
        before: Value,
        /// Its new value.
        after: Value,
    },
}

/// The answer of a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedAnswer {
    /// Who gave it, for receipts.
    pub by: String,
    /// What it says.
    pub content: AnswerContent,
}

/// What an answer says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnswerContent {
    /// Yes.
    Allow {
        /// Whether it holds until the session ends, for what the question's rule allows or for the host.
        for_session: bool,
    },
    /// No.
    Deny {
        /// The reason, if one was given.
        reason: Option<String>,
    },
    /// The chosen labels, or texts of the person's own, for each question.
    Choices {
        /// The answers.
        choices: Vec<Vec<String>>,
    },
}

impl AnswerContent {
    /// What its author did, in words that follow their name.
    pub(super) fn summary(&self) -> String {
        match self {
            Self::Allow { for_session: false } => "allowed it once".to_owned(),
            Self::Allow { for_session: true } => "allowed it for the session".to_owned(),
            Self::Deny { reason: None } => "denied it".to_owned(),
            Self::Deny { reason: Some(reason) } => format!("denied it: {reason}"),
            Self::Choices { choices } => {
                let answers: Vec<String> = choices.iter().map(|labels| labels.join(", ")).collect();
                format!("answered: {}", answers.join("; "))
            }
        }
    }
}

impl SharedQuestion {
    pub(super) fn of_call(question: &Question) -> Self {
        let (changes, changes_unknown) = match &question.changes {
            Ok(changes) => (changes.iter().map(shared_change).collect(), None),
            Err(error) => (Vec::new(), Some(error.message.clone())),
        };
        Self::Permission(Box::new(PermissionQuestion {
            call_id: question.call_id.clone(),
            tool: question.tool.clone(),
            input: question.input.clone(),
            effects: question.effects.clone(),
            reason: question.reason.clone(),
            asked_by: question.asked_by.clone(),
            rule: question.rule.clone(),
            changes,
            changes_unknown,
            agent: question.agent.clone(),
        }))
    }

    pub(super) fn of_host(request: &HostRequest) -> Self {
        let HostRequest { command, host, port, entry } = request.clone();
        Self::Host { command, host, port, entry }
    }

    pub(super) fn of_plan(plan: &PlanReady) -> Self {
        Self::Plan { plan: plan.plan.clone(), allow: plan.allow.clone() }
    }
}

fn shared_change(change: &ProposedChange) -> SharedChange {
    match change {
        ProposedChange::File { path, before, after } => {
            let old = std::str::from_utf8(before.as_deref().unwrap_or_default());
            let text = old.and_then(|old| Ok(text_changes(old, std::str::from_utf8(after)?, MAX_DIFF_LINES)));
            SharedChange::File {
                path: path.display().to_string(),
                old_size: before.as_ref().map(|bytes| bytes.len() as u64),
                new_size: after.len() as u64,
                text: text.ok(),
            }
        }
        ProposedChange::Setting { name, before, after } => {
            let (name, before, after) = (name.clone(), before.clone(), after.clone());
            SharedChange::Setting { name, before, after }
        }
    }
}
