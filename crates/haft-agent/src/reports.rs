//! What the tools of a run report to its loop, and what a run and its agents spend together.

use std::sync::Mutex;

use haft_model::TokenUsage;
use haft_tool::{Cancel, Value, lock};
use serde::Deserialize;

/// An entry of the list of todos.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TodoEntry {
    /// What is to be done.
    pub content: String,
    /// The same while it is being done.
    #[serde(rename = "activeForm")]
    pub active_form: String,
    /// `pending`, `in_progress` or `completed`.
    pub status: String,
}

/// Tokens and cost of something that is not an answer of the run itself.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spending {
    pub(crate) on: String,
    pub(crate) usage: TokenUsage,
    pub(crate) cost_usd: Option<f64>,
}

/// What the tools of a run report to its loop. Calls run on threads of their own, and only the loop writes the log.
#[derive(Default)]
pub struct RunReports {
    state: Mutex<ReportState>,
}

#[derive(Default)]
struct ReportState {
    spendings: Vec<Spending>,
    todos: Option<Vec<TodoEntry>>,
    /// The cancellation of the turn that is under way.
    turn: Option<Cancel>,
}

impl RunReports {
    pub(crate) fn spend(&self, spending: Spending) {
        lock(&self.state).spendings.push(spending);
    }

    pub(crate) fn set_todos(&self, todos: &Value) {
        if let Ok(todos) = serde_json::from_value(todos.clone()) {
            lock(&self.state).todos = Some(todos);
        }
    }

    pub(crate) fn begin_turn(&self, cancel: &Cancel) {
        lock(&self.state).turn = Some(cancel.clone());
    }

    pub(crate) fn turn(&self) -> Option<Cancel> {
        lock(&self.state).turn.clone()
    }

    pub(crate) fn take(&self) -> (Vec<Spending>, Option<Vec<TodoEntry>>) {
        let mut state = lock(&self.state);
        (std::mem::take(&mut state.spendings), state.todos.take())
    }
}

/// What a run and its agents have spent in the run's turn.
pub struct TurnBudget(Mutex<Option<f64>>);

impl Default for TurnBudget {
    fn default() -> Self {
        Self(Mutex::new(Some(0.0)))
    }
}

impl TurnBudget {
    pub(crate) fn reset(&self, spent: Option<f64>) {
        *lock(&self.0) = spent;
    }

    /// Adds US dollars; an unknown amount makes the sum unknown.
    pub(crate) fn add(&self, dollars: Option<f64>) {
        let mut sum = lock(&self.0);
        *sum = sum.zip(dollars).map(|(sum, more)| sum + more);
    }

    pub(crate) fn spent(&self) -> Option<f64> {
        *lock(&self.0)
    }
}
