//! What a run shows while it goes on: one line per call, retries and notices, on standard error.

use std::collections::HashMap;
use std::io::IsTerminal;

use haft_agent::{LoopEvent, RunObserver, TodoEntry, TurnReport};
use haft_model::{CallArguments, ModelEvent, ToolCall};
use haft_tool::{Progress, Value, clip_chars};

use super::super::screen::{self, BAD, FAINT, NAME, NOTE, styled};

/// How much of a call's argument is shown.
const MAX_ARGUMENT_CHARS: usize = 80;
/// How much of a tool's name is shown, which a model can make up.
const MAX_NAME_CHARS: usize = 64;

/// Prints what happens.
pub(in crate::cli) struct ProgressLines {
    /// Whether calls are shown.
    is_shown: bool,
    calls: HashMap<String, String>,
}

impl ProgressLines {
    /// Shows calls where standard error is a terminal, or everywhere if that is asked for.
    pub(in crate::cli) fn new(verbose: bool) -> Self {
        Self { is_shown: verbose || std::io::stderr().is_terminal(), calls: HashMap::new() }
    }

    fn show(&self, text: &str) {
        if self.is_shown {
            screen::note(text);
        }
    }
}

impl RunObserver for ProgressLines {
    fn on_event(&mut self, event: &LoopEvent) {
        match event {
            LoopEvent::CallStarted(call) => {
                self.calls.insert(call.id.clone(), about(call));
            }
            LoopEvent::CallFinished { result, receipt, changes, elapsed, .. } => {
                let about = self.calls.remove(&result.call_id).unwrap_or_default();
                let style = if result.is_error { BAD } else { NAME };
                let number = receipt.map(|receipt| format!("  call {receipt}")).unwrap_or_default();
                let changed = match changes {
                    0 => String::new(),
                    some => format!(", {}", screen::count(*some as u64, "change")),
                };
                let took = screen::took(u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX));
                let (name, facts) = (
                    screen::escape(&clip_chars(&result.name, MAX_NAME_CHARS, 0)),
                    format!("{took}{number}{changed}"),
                );
                self.show(&format!("{} {about}  {}", styled(style, &name), styled(FAINT, &facts)));
            }
            LoopEvent::Model(ModelEvent::Retrying(pause)) => {
                screen::note(&format!("{}: {}", styled(NOTE, "retry"), screen::escape(&pause.line())));
            }
            LoopEvent::Model(ModelEvent::Notice { text }) | LoopEvent::Notice { text } => {
                screen::warnings(std::slice::from_ref(text));
            }
            LoopEvent::CallProgress { progress: Progress { message: Some(message), .. }, .. } => {
                self.show(&styled(FAINT, &format!("  {}", screen::escape(message))));
            }
            LoopEvent::TodosChanged { todos } => self.show(&styled(FAINT, &todo_line(todos))),
            LoopEvent::Elided { results } => {
                let count = screen::count(*results as u64, "old result");
                self.show(&styled(FAINT, &format!("{count} left out of the context, which is nearly full")));
            }
            LoopEvent::Summarising => {
                self.show(&styled(FAINT, "the context is full: the conversation is being summarised"));
            }
            _ => {}
        }
    }
}

/// The list of todos on one line: how many are done, and what is being done.
fn todo_line(todos: &[TodoEntry]) -> String {
    let done = todos.iter().filter(|todo| todo.status == "completed").count();
    let current = todos.iter().find(|todo| todo.status == "in_progress");
    let current = current.map(|todo| format!(": {}", screen::escape(&todo.active_form))).unwrap_or_default();
    format!("{done} of {} todos done{current}", todos.len())
}

/// What a call is about: its first argument that is text, on one line.
fn about(call: &ToolCall) -> String {
    let text = match &call.arguments {
        CallArguments::Object(object) => object.values().find_map(Value::as_str).unwrap_or_default(),
        CallArguments::Invalid(text) => text,
    };
    let line = text.lines().next().unwrap_or_default();
    screen::escape(&clip_chars(line, MAX_ARGUMENT_CHARS, 0))
}

/// Tokens, cost and time on one line.
pub(super) fn usage_line(report: &TurnReport) -> String {
    let usage = &report.totals.usage;
    let cost = report.totals.cost_usd.map_or_else(|| "cost unknown".to_owned(), |cost| format!("${cost:.4}"));
    let cached = match usage.cache_read {
        0 => String::new(),
        cached => format!(" ({cached} cached)"),
    };
    format!(
        "{} of {}: {}, {} tokens in{cached}, {} out, {cost}, {}",
        screen::escape(&report.model),
        screen::escape(&report.provider),
        screen::count(report.rounds.into(), "round"),
        usage.context(),
        usage.output,
        screen::took(u64::try_from(report.elapsed.as_micros()).unwrap_or(u64::MAX)),
    )
}
