//! What the caller of a subagent sees of it while it runs.

use std::sync::Mutex;

use haft_model::{CallArguments, ToolCall};
use haft_tool::{Progress, Value, clip_chars, lock};

use super::table::AgentStatus;
use crate::{LoopEvent, RunObserver};

/// How much of a call's argument is shown.
const MAX_ARGUMENT_CHARS: usize = 80;

/// Turns what happens in a subagent into the progress of the call that started it.
pub(super) struct AgentProgress<'a> {
    pub(super) name: &'a str,
    pub(super) progress: &'a dyn Fn(Progress),
    pub(super) status: &'a Mutex<AgentStatus>,
}

impl AgentProgress<'_> {
    fn say(&self, what: &str) {
        what.clone_into(&mut lock(self.status).text);
        (self.progress)(Progress::message(format!("{}: {what}", self.name)));
    }
}

impl RunObserver for AgentProgress<'_> {
    fn on_event(&mut self, event: &LoopEvent) {
        match event {
            LoopEvent::CallStarted(call) => self.say(&about(call)),
            LoopEvent::CallProgress { progress: Progress { message: Some(message), .. }, .. } => {
                self.say(message);
            }
            LoopEvent::Notice { text } => self.say(text),
            LoopEvent::Summarising => self.say("its context is full, and is being summarised"),
            _ => {}
        }
    }
}

/// A call on one line: the tool, and its first argument that is text.
fn about(call: &ToolCall) -> String {
    let text = match &call.arguments {
        CallArguments::Object(object) => object.values().find_map(Value::as_str).unwrap_or_default(),
        CallArguments::Invalid(text) => text,
    };
    let line = text.lines().next().unwrap_or_default();
    format!("{} {}", call.name, clip_chars(line, MAX_ARGUMENT_CHARS, 0))
}
