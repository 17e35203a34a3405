//! Questions and their answers.

use haft_tool::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A question that waits for a person.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct QuestionInfo {
    /// Its number.
    pub(crate) id: i64,
    /// The session that asks.
    pub(crate) session: String,
    /// The session's folder.
    pub(crate) workspace: String,
    /// When it was asked, in milliseconds since 1970.
    pub(crate) asked_at: u64,
    /// Whether it still waits for an answer.
    pub(crate) is_open: bool,
    /// Who answered, if it was answered.
    pub(crate) answered_by: Option<String>,
    /// What is asked. `kind` is `permission` (`tool`, `input`, `effects`, `reason`, `rule`, `asked_by`, `changes`,
    /// `changes_unknown`, `agent`, `call_id`, and whether it is `irreversible`), `host` (`command`, `host`, `port`, `entry`),
    /// `choices` (`questions`) or `plan` (`plan`, `allow`).
    pub(crate) body: Value,
    /// Whether `body` is left out of a list or an event because it is long; `/questions/ID` has it.
    pub(crate) is_cut: bool,
}

/// Open questions.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct QuestionList {
    /// The questions, oldest first.
    pub(crate) questions: Vec<QuestionInfo>,
}

/// The answer to a question.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum QuestionAnswer {
    /// Yes.
    Allow {
        /// How long it holds: `once`, `session`, or `always`, which adds the question's rule to the user's settings.
        #[serde(default)]
        hold: AnswerHold,
    },
    /// No.
    Deny {
        /// Why; the agent is told.
        #[serde(default)]
        reason: Option<String>,
    },
    /// The chosen labels, or other texts, for each question.
    Choices {
        /// The answers.
        choices: Vec<Vec<String>>,
    },
}

/// How long a permission holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AnswerHold {
    /// For this call.
    #[default]
    Once,
    /// Until the session ends.
    Session,
    /// Also for later sessions, by a rule in the user's settings.
    Always,
}

/// The outcome of an answer.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Answered {
    /// The rule that was added, with its file.
    pub(crate) rule_added: Option<String>,
    /// Why the rule could not be added; the answer still holds for the session.
    pub(crate) rule_failed: Option<String>,
}
