//! Writes what happens in a run as messages.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_agent::{LoopEvent, RunObserver, RunTotals};
use haft_model::{AssistantPart, ModelEvent, ModelResponse, TokenUsage, ToolCall, ToolResult};
use haft_tool::{Progress, Value, Verdict, json};

use super::ids::{new_uuid, timestamp};
use super::messages;
use super::partial::PartialMessages;
use super::session::{CallAnswer, HostSession};

/// The variable by which an SDK says which one it is.
const ENTRY_POINT: &str = "CLAUDE_CODE_ENTRYPOINT";

/// What the result tells of a turn, besides the report.
#[derive(Debug, Default)]
pub(super) struct TurnFacts {
    pub(super) api_time: Duration,
    pub(super) denials: Vec<Value>,
    /// Why the last answer ended.
    pub(super) stop_reason: Option<&'static str>,
    /// Tokens and cost by model.
    pub(super) models: Vec<ModelTotals>,
}

/// What one model used in a turn.
#[derive(Debug)]
pub(super) struct ModelTotals {
    pub(super) model: String,
    pub(super) usage: TokenUsage,
    pub(super) cost_usd: Option<f64>,
}

/// Writes what happens.
pub(super) struct StreamObserver {
    session: Arc<HostSession>,
    /// Whether the reader drops `tool_progress`.
    is_python: bool,
    partial: Option<PartialMessages>,
    model: String,
    message_id: String,
    /// Text and thoughts of the answer that no line has yet.
    unwritten: Vec<AssistantPart>,
    /// The calls that have their lines, of all answers.
    written_calls: HashSet<String>,
    calls: HashMap<String, (ToolCall, Instant)>,
    cost_before: Option<f64>,
    pub(super) facts: TurnFacts,
}

impl StreamObserver {
    pub(super) fn new(session: &Arc<HostSession>, has_partial: bool) -> Self {
        Self {
            session: Arc::clone(session),
            is_python: std::env::var(ENTRY_POINT).is_ok_and(|name| name.starts_with("sdk-py")),
            partial: has_partial.then(|| PartialMessages::new(Arc::clone(session))),
            model: String::new(),
            message_id: new_message_id(),
            unwritten: Vec::new(),
            written_calls: HashSet::new(),
            calls: HashMap::new(),
            cost_before: Some(0.0),
            facts: TurnFacts::default(),
        }
    }

    /// A turn of this model begins.
    pub(super) fn begin_turn(&mut self, model: &str) {
        model.clone_into(&mut self.model);
        // Tokens and cost by model are those of all turns.
        let models = std::mem::take(&mut self.facts.models);
        self.facts = TurnFacts { models, ..TurnFacts::default() };
        self.cost_before = Some(0.0);
        self.begin_answer();
    }

    fn begin_answer(&mut self) {
        self.message_id = new_message_id();
        self.unwritten.clear();
    }

    fn on_model(&mut self, event: &ModelEvent) {
        if let Some(partial) = &mut self.partial {
            partial.on_model(event, &self.model, &self.message_id);
        }
        match event {
            ModelEvent::Started { model: Some(model) } => model.clone_into(&mut self.model),
            ModelEvent::Text { delta } => match self.unwritten.last_mut() {
                Some(AssistantPart::Text { text, .. }) => text.push_str(delta),
                _ => self.unwritten.push(AssistantPart::Text { text: delta.clone(), raw: None }),
            },
            ModelEvent::Reasoning { delta } => match self.unwritten.last_mut() {
                Some(AssistantPart::Reasoning { text, .. }) => text.push_str(delta),
                _ => self.unwritten.push(AssistantPart::Reasoning { text: delta.clone(), raw: None }),
            },
            // The call may run at once, and what it asks comes behind its line.
            ModelEvent::CallComplete(call) if !self.written_calls.contains(&call.id) => {
                for part in std::mem::take(&mut self.unwritten) {
                    self.write_part(&part, &TokenUsage::default());
                }
                self.write_part(&AssistantPart::ToolCall(call.clone()), &TokenUsage::default());
            }
            ModelEvent::Restarted => self.begin_answer(),
            ModelEvent::Retrying(pause) => {
                self.session.send_system("api_retry", json!({ "message": pause.line() }));
            }
            ModelEvent::Notice { text } => self.notice(text),
            _ => {}
        }
    }

    fn write_part(&mut self, part: &AssistantPart, usage: &TokenUsage) {
        if let AssistantPart::ToolCall(call) = part {
            self.written_calls.insert(call.id.clone());
        }
        if let Some(block) = messages::block(part) {
            let mut line = messages::assistant(&self.message_id, &self.model, &block, usage);
            line["timestamp"] = timestamp().into();
            self.session.send(line);
        }
    }

    fn on_answer(&mut self, response: &ModelResponse, turn: &RunTotals) {
        if let Some(partial) = &mut self.partial {
            partial.end(response);
        }
        let parts = &response.message.parts;
        let is_written = |part: &AssistantPart| match part {
            AssistantPart::ToolCall(call) => self.written_calls.contains(&call.id),
            _ => false,
        };
        let written = parts.iter().rposition(is_written).map_or(0, |at| at + 1);
        for part in parts.iter().skip(written) {
            self.write_part(part, &response.usage);
        }
        self.facts.stop_reason =
            Some(messages::stop_word(&response.stop, response.message.calls().next().is_some()));
        self.facts.api_time += response.elapsed;
        let cost = turn.cost_usd.zip(self.cost_before).map(|(now, before)| now - before);
        self.cost_before = turn.cost_usd;
        match self.facts.models.iter_mut().find(|totals| totals.model == response.model) {
            Some(totals) => {
                totals.usage.add(&response.usage);
                totals.cost_usd = totals.cost_usd.zip(cost).map(|(sum, more)| sum + more);
            }
            None => self.facts.models.push(ModelTotals {
                model: response.model.clone(),
                usage: response.usage,
                cost_usd: cost,
            }),
        }
        self.begin_answer();
    }

    fn on_result(&mut self, result: &ToolResult, structured: Option<&Value>, verdict: Option<Verdict>) {
        let id = &result.call_id;
        let call = self.calls.remove(id);
        let answer = self.session.take_answer(id);
        let is_denied = verdict == Some(Verdict::Deny);
        if is_denied {
            let input = call.as_ref().map(|(call, _)| messages::arguments(call)).unwrap_or_default();
            self.facts
                .denials
                .push(json!({"tool_name": result.name, "tool_use_id": id, "tool_input": input}));
            let message = result.text();
            self.session.send_system(
                "permission_denied",
                json!({"tool_name": result.name, "tool_use_id": id, "message": message}),
            );
        }
        let source = match answer {
            None => "config",
            Some(CallAnswer::Accepted) => "user_temporary",
            Some(CallAnswer::Rejected) => "user_reject",
        };
        let content = messages::result_content(result);
        let mut structured = structured.cloned().unwrap_or_else(|| content.clone());
        if let (Value::Object(members), "Bash") = (&mut structured, result.name.as_str()) {
            // Both streams are one text here.
            members.entry("stdout").or_insert_with(|| result.text().into());
            members.entry("stderr").or_insert_with(|| "".into());
            members.entry("isImage").or_insert(false.into());
        }
        let decision = if is_denied { "reject" } else { "accept" };
        self.session.send(json!({
            "type": "user",
            "message": {"role": "user", "content": [
                {"tool_use_id": id, "type": "tool_result", "content": content, "is_error": result.is_error},
            ]},
            "parent_tool_use_id": null,
            "timestamp": timestamp(),
            "tool_use_result": structured,
            "tool_result_meta": [{"id": id, "permission_decision": {"decision": decision, "source": source}}],
        }));
    }

    fn on_progress(&self, call_id: &str, progress: &Progress) {
        let call = self.calls.get(call_id);
        let name = call.map(|(call, _)| call.name.as_str()).unwrap_or_default();
        let elapsed = call.map_or(Duration::ZERO, |(_, since)| since.elapsed());
        let mut message = json!({
            "tool_use_id": call_id, "tool_name": name, "parent_tool_use_id": null,
            "elapsed_time_seconds": elapsed.as_secs_f64(),
        });
        if let (Value::Object(message), Ok(Value::Object(progress))) =
            (&mut message, serde_json::to_value(progress))
        {
            message.extend(progress);
        }
        if self.is_python {
            self.session.send_system("haft_tool_output", message);
        } else {
            message["type"] = "tool_progress".into();
            self.session.send(message);
        }
    }

    fn notice(&self, text: &str) {
        self.session.send_system("haft_notice", json!({ "text": text }));
    }
}

impl RunObserver for StreamObserver {
    fn on_event(&mut self, event: &LoopEvent) {
        match event {
            LoopEvent::Model(event) => self.on_model(event),
            LoopEvent::Answered { turn, response } => self.on_answer(response, turn),
            LoopEvent::CallStarted(call) => {
                self.session.note_call(&call.name, &call.id);
                self.calls.insert(call.id.clone(), (call.clone(), Instant::now()));
            }
            LoopEvent::CallProgress { call_id, progress } => self.on_progress(call_id, progress),
            LoopEvent::CallDropped { call_id } => {
                let dropped = self.calls.remove(call_id).map(|(call, _)| call);
                if let Some(call) = dropped.filter(|call| self.written_calls.contains(&call.id)) {
                    let why = "The call is not part of the answer; its result does not count.";
                    let result = ToolResult {
                        call_id: call.id.clone(),
                        name: call.name.clone(),
                        content: vec![haft_model::ContentPart::text(why)],
                        is_error: true,
                    };
                    self.on_result(&result, None, None);
                }
            }
            LoopEvent::CallFinished { result, structured, verdict, .. } => {
                self.on_result(result, structured.as_ref(), *verdict);
            }
            LoopEvent::TodosChanged { todos } => {
                let todos: Vec<Value> = todos
                    .iter()
                    .map(|todo| {
                        json!({"content": todo.content, "activeForm": todo.active_form, "status": todo.status})
                    })
                    .collect();
                self.session.send_system("haft_todos", json!({ "todos": todos }));
            }
            LoopEvent::Summarising => {
                self.session.send_system("status", json!({"status": "compacting"}));
            }
            LoopEvent::Compacted { messages } => {
                self.session.send_system(
                    "compact_boundary",
                    json!({"compact_metadata": {"trigger": "auto", "messages": messages}}),
                );
            }
            LoopEvent::Notice { text } => self.notice(text),
            LoopEvent::TurnEnded { .. } => {
                if let Some(partial) = &mut self.partial {
                    partial.abandon();
                }
            }
            _ => {}
        }
    }
}

fn new_message_id() -> String {
    format!("msg_{}", new_uuid().replace('-', ""))
}
