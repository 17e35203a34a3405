//! What happens in a run, as the items of a thread on standard output.

use std::collections::HashMap;

use haft_agent::{LoopEvent, RunObserver, TodoEntry};
use haft_compat::exec::{ItemStatus, ThreadEvent, ThreadItem, ThreadItemBody, ThreadTodo};
use haft_model::{ModelEvent, ToolCall, ToolResult};
use haft_runtime::Runtime;
use haft_tool::{Cancel, Change, Value};

use super::super::screen;
use super::item_kind::{ItemEnd, ItemKind, changed_paths, clip_output};

/// Prints the items.
pub(super) struct ItemEvents {
    runtime: Runtime,
    /// Stops the run when nothing reads the events any more.
    cancel: Cancel,
    count: usize,
    calls: HashMap<String, OpenItem>,
    text: String,
    reasoning: String,
    /// The last text that was printed.
    last_text: String,
    todos: Option<ThreadItem>,
}

/// The item of a call that runs.
struct OpenItem {
    id: String,
    kind: ItemKind,
    output: String,
}

impl ItemEvents {
    pub(super) fn new(runtime: Runtime, cancel: Cancel) -> Self {
        Self {
            runtime,
            cancel,
            count: 0,
            calls: HashMap::new(),
            text: String::new(),
            reasoning: String::new(),
            last_text: String::new(),
            todos: None,
        }
    }

    pub(super) fn emit(&self, event: &ThreadEvent) {
        match serde_json::to_string(event) {
            Ok(line) => screen::result(&line),
            Err(error) => tracing::warn!(%error, "an event could not be written"),
        }
        if screen::output_error().is_some() {
            self.cancel.cancel();
        }
    }

    /// Completes what is open at the end of the turn. A final answer that had to be JSON is said once more, if it was wrapped in
    /// something else.
    pub(super) fn finish(&mut self, structured: Option<&Value>) {
        self.flush();
        let is_json = serde_json::from_str::<Value>(&self.last_text).is_ok();
        if let Some(value) = structured.filter(|_| !is_json) {
            self.complete_new(ThreadItemBody::AgentMessage { text: value.to_string() });
        }
        let ids: Vec<String> = self.calls.keys().cloned().collect();
        for id in ids {
            self.close_call(&id);
        }
        if let Some(item) = self.todos.take() {
            self.emit(&ThreadEvent::ItemCompleted { item });
        }
    }

    fn next_id(&mut self) -> String {
        self.count += 1;
        format!("item_{}", self.count - 1)
    }

    fn complete_new(&mut self, body: ThreadItemBody) {
        let id = self.next_id();
        self.emit(&ThreadEvent::ItemCompleted { item: ThreadItem { id, body } });
    }

    /// Prints what the model has said and thought so far.
    fn flush(&mut self) {
        let reasoning = std::mem::take(&mut self.reasoning);
        if !reasoning.trim().is_empty() {
            self.complete_new(ThreadItemBody::Reasoning { text: reasoning });
        }
        let text = std::mem::take(&mut self.text);
        if !text.trim().is_empty() {
            self.last_text.clone_from(&text);
            self.complete_new(ThreadItemBody::AgentMessage { text });
        }
    }

    fn on_model(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Text { delta } => self.text.push_str(delta),
            ModelEvent::Reasoning { delta } => {
                if !self.text.is_empty() {
                    self.flush();
                }
                self.reasoning.push_str(delta);
            }
            ModelEvent::Restarted => {
                self.text.clear();
                self.reasoning.clear();
            }
            ModelEvent::Retrying(pause) => screen::note(&screen::escape(&pause.line())),
            ModelEvent::Notice { text } => self.notice(text),
            _ => {}
        }
    }

    fn notice(&mut self, text: &str) {
        self.complete_new(ThreadItemBody::Error { message: text.to_owned() });
    }

    fn start_call(&mut self, call: &ToolCall) {
        self.flush();
        let kind = ItemKind::of(call, &self.runtime);
        let running = kind.running("");
        if running.is_none() {
            return;
        }
        let id = self.next_id();
        if let Some(body) = running {
            self.emit(&ThreadEvent::ItemStarted { item: ThreadItem { id: id.clone(), body } });
        }
        self.calls.insert(call.id.clone(), OpenItem { id, kind, output: String::new() });
    }

    fn add_output(&mut self, call_id: &str, more: &str) {
        let Some(open) = self.calls.get_mut(call_id) else { return };
        open.output.push_str(more);
        clip_output(&mut open.output);
        if !matches!(open.kind, ItemKind::Command(_)) {
            return;
        }
        let item = open.kind.running(&open.output).map(|body| ThreadItem { id: open.id.clone(), body });
        if let Some(item) = item {
            self.emit(&ThreadEvent::ItemUpdated { item });
        }
    }

    fn finish_call(&mut self, result: &ToolResult, receipt: Option<i64>) {
        let Some(open) = self.calls.remove(&result.call_id) else { return };
        let receipt = receipt.and_then(|id| self.runtime.ledger().ok()?.receipt(id).ok());
        let changes: &[Change] =
            receipt.as_ref().map(|receipt| receipt.changes.as_slice()).unwrap_or_default();
        let exit_code = receipt.as_ref().and_then(|receipt| receipt.exit_code);
        let end = ItemEnd { text: result.text(), is_error: result.is_error, exit_code, changes };
        if let Some(body) = open.kind.complete(&end) {
            self.emit(&ThreadEvent::ItemCompleted { item: ThreadItem { id: open.id, body } });
        }
        // What a command changed is known here, and is an item as a change by a tool is.
        if matches!(open.kind, ItemKind::Command(_)) && !changes.is_empty() {
            let (changes, status) = (changed_paths(changes), ItemStatus::Completed);
            self.complete_new(ThreadItemBody::FileChange { changes, status });
        }
    }

    /// Completes the item of a call that has no result.
    fn close_call(&mut self, call_id: &str) {
        let Some(open) = self.calls.remove(call_id) else { return };
        let end = ItemEnd { text: open.output, is_error: true, exit_code: None, changes: &[] };
        if let Some(body) = open.kind.complete(&end) {
            self.emit(&ThreadEvent::ItemCompleted { item: ThreadItem { id: open.id, body } });
        }
    }

    fn show_todos(&mut self, todos: &[TodoEntry]) {
        let todo = |entry: &TodoEntry| ThreadTodo {
            text: entry.content.clone(),
            completed: entry.status == "completed",
        };
        let body = ThreadItemBody::TodoList { items: todos.iter().map(todo).collect() };
        let known = self.todos.take();
        let is_new = known.is_none();
        let item = ThreadItem { id: known.map_or_else(|| self.next_id(), |known| known.id), body };
        self.todos = Some(item.clone());
        self.emit(&if is_new {
            ThreadEvent::ItemStarted { item }
        } else {
            ThreadEvent::ItemUpdated { item }
        });
    }
}

impl RunObserver for ItemEvents {
    fn on_event(&mut self, event: &LoopEvent) {
        match event {
            LoopEvent::Model(event) => self.on_model(event),
            LoopEvent::Answered { .. } => self.flush(),
            LoopEvent::CallStarted(call) => self.start_call(call),
            LoopEvent::CallProgress { call_id, progress } => {
                if let Some(output) = &progress.output {
                    self.add_output(call_id, output);
                }
            }
            LoopEvent::CallDropped { call_id } => self.close_call(call_id),
            LoopEvent::CallFinished { result, receipt, .. } => self.finish_call(result, *receipt),
            LoopEvent::TodosChanged { todos } => self.show_todos(todos),
            LoopEvent::Notice { text } => self.notice(text),
            _ => {}
        }
    }
}
