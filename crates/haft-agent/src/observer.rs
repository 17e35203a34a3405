//! What a run reports while it goes on.

use std::time::Duration;

use haft_model::{ModelEvent, ModelResponse, ToolCall, ToolResult};
use haft_tool::{Progress, Value, Verdict};

use crate::{RunStop, RunTotals, TodoEntry};

/// What happens in a run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum LoopEvent {
    /// Something of the model's answer arrived, or its provider is asked again.
    Model(ModelEvent),
    /// The answer is complete and recorded.
    Answered {
        /// Tokens and cost of this turn so far.
        turn: RunTotals,
        /// The answer.
        response: Box<ModelResponse>,
    },
    /// A call runs. It may start while the model still answers.
    CallStarted(ToolCall),
    /// A running call reports something.
    CallProgress {
        /// The id of the model's call.
        call_id: String,
        /// What it reports.
        progress: Progress,
    },
    /// A call that started early is not part of the answer; its result does not count.
    CallDropped {
        /// The id of the model's call.
        call_id: String,
    },
    /// A call has its result.
    CallFinished {
        /// The result, as the model sees it.
        result: ToolResult,
        /// The number of the call in the ledger, if it was made.
        receipt: Option<i64>,
        /// How many changes it made.
        changes: usize,
        /// How long it took.
        elapsed: Duration,
        /// The structured result, if the tool has one.
        structured: Option<Value>,
        /// What was decided about it, if the call came that far.
        verdict: Option<Verdict>,
    },
    /// The model has changed its list of todos.
    TodosChanged {
        /// The new list.
        todos: Vec<TodoEntry>,
    },
    /// Old results were elided, to make room.
    Elided {
        /// How many.
        results: usize,
    },
    /// The history is being summarised, to make room.
    Summarising,
    /// The history was summarised.
    Compacted {
        /// How many messages were replaced.
        messages: usize,
    },
    /// Something that the user should know.
    Notice {
        /// A sentence.
        text: String,
    },
    /// The turn is over.
    TurnEnded {
        /// Why.
        stop: RunStop,
    },
}

/// Receives what happens in a run, on the thread that drives it.
pub trait RunObserver {
    /// Something happened.
    fn on_event(&mut self, event: &LoopEvent);
}

/// Looks at nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl RunObserver for NoObserver {
    fn on_event(&mut self, _event: &LoopEvent) {}
}

impl<F: FnMut(&LoopEvent)> RunObserver for F {
    fn on_event(&mut self, event: &LoopEvent) {
        self(event);
    }
}
