//! Asking the model. A call that only reads starts as soon as its arguments are complete, while the answer still arrives.

use std::collections::HashSet;
use std::time::Instant;

use haft_model::{
    AssistantMessage, AssistantPart, Conversation, Model, ModelError, ModelErrorKind, ModelEvent,
    ModelResponse, ToolCall, TurnOptions, TurnRequest,
};
use haft_runtime::Runtime;
use haft_tool::{Cancel, Definition};

use crate::calls::CallPool;
use crate::live_answer::LiveAnswer;
use crate::schedule::only_reads;
use crate::{AllowedTools, AnswerArrival, LoopEvent, RunObserver};

/// Calls of one answer. More come from a model or a server that repeats itself.
const MAX_CALLS: usize = 1_000;

/// One request to the model.
pub(crate) struct ModelQuestion<'a> {
    pub(crate) model: &'a dyn Model,
    pub(crate) conversation: &'a Conversation,
    pub(crate) tools: &'a [Definition],
    pub(crate) options: &'a TurnOptions,
    pub(crate) runtime: &'a Runtime,
    pub(crate) allowed: &'a AllowedTools,
    pub(crate) cancel: &'a Cancel,
    /// The session of the run.
    pub(crate) session: &'a str,
}

impl ModelQuestion<'_> {
    /// Asks the model. The pool then has exactly the early calls that are part of the answer.
    pub(crate) fn ask(
        &self,
        pool: &mut CallPool,
        observer: &mut dyn RunObserver,
    ) -> Result<(ModelResponse, AnswerArrival), ModelError> {
        let (start, mut arrival) = (Instant::now(), AnswerArrival::default());
        let mut early = EarlyCalls { question: self, started: Vec::new(), may_start: true };
        let request =
            TurnRequest { conversation: self.conversation, tools: self.tools, options: self.options };
        let ledger = self.runtime.ledger().ok();
        let mut live = LiveAnswer::new(ledger.as_ref(), self.session);
        let mut on_event = |event: ModelEvent| {
            pool.report_progress(observer);
            note_arrival(&mut arrival, &event, start);
            live.on_event(&event);
            let complete = match &event {
                ModelEvent::CallComplete(call) => Some(call.clone()),
                ModelEvent::Restarted => {
                    early.keep_only(&[], pool, observer);
                    None
                }
                _ => None,
            };
            observer.on_event(&LoopEvent::Model(event));
            if let Some(call) = complete {
                early.offer(&call, pool, observer);
            }
        };
        let answer = self.model.respond(&request, &mut on_event, self.cancel);
        // Before the answer becomes an event, so that what is shown is never older than that.
        drop(live);
        let mut answer = answer.and_then(|response| self.check_count(response));
        let message = match &mut answer {
            Ok(response) => Some(&mut response.message),
            Err(error) => error.partial.as_mut().map(|partial| &mut partial.message),
        };
        let calls: Vec<ToolCall> = match message {
            Some(message) => {
                make_ids_unique(message, self.conversation);
                message.calls().cloned().collect()
            }
            None => Vec::new(),
        };
        early.keep_only(&calls, pool, observer);
        answer.map(|response| (response, arrival))
    }

    fn check_count(&self, response: ModelResponse) -> Result<ModelResponse, ModelError> {
        let count = response.message.calls().count();
        if count <= MAX_CALLS {
            return Ok(response);
        }
        let message = format!(
            "The answer has {count} calls, more than {MAX_CALLS}; none of them that changes anything was made"
        );
        let advice = "Ask for less at once, or use another model.";
        Err(ModelError::new(ModelErrorKind::Protocol, self.model.provider(), message).with_advice(advice))
    }
}

fn note_arrival(arrival: &mut AnswerArrival, event: &ModelEvent, start: Instant) {
    match event {
        ModelEvent::Text { .. }
        | ModelEvent::Reasoning { .. }
        | ModelEvent::CallBegun { .. }
        | ModelEvent::CallComplete(_) => {
            let now = || u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
            arrival.first_part_ms.get_or_insert_with(now);
        }
        ModelEvent::Retrying(_) => arrival.retries += 1,
        _ => {}
    }
}

/// The calls that were started before the answer was complete.
struct EarlyCalls<'a> {
    question: &'a ModelQuestion<'a>,
    started: Vec<ToolCall>,
    /// Whether no call before the next one changes anything.
    may_start: bool,
}

impl EarlyCalls<'_> {
    /// Starts the call if it only reads and nothing before it changes anything.
    fn offer(&mut self, call: &ToolCall, pool: &mut CallPool, observer: &mut dyn RunObserver) {
        let ModelQuestion { runtime, allowed, cancel, conversation, .. } = self.question;
        if !self.may_start {
            return;
        }
        let effects = runtime.planned_effects(&call.to_call()).ok();
        self.may_start &= only_reads(&effects) && allowed.refusal(&call.name, runtime).is_none();
        let is_new = !pool.has(&call.id) && !conversation.calls().any(|earlier| earlier.id == call.id);
        if self.may_start && is_new && pool.has_room() && !cancel.is_cancelled() {
            pool.start(call, cancel);
            self.started.push(call.clone());
            observer.on_event(&LoopEvent::CallStarted(call.clone()));
        }
    }

    /// Drops those that are not among `calls`.
    fn keep_only(&mut self, calls: &[ToolCall], pool: &mut CallPool, observer: &mut dyn RunObserver) {
        self.may_start = true;
        self.started.retain(|call| {
            let is_kept = calls.contains(call);
            if !is_kept {
                pool.drop_call(&call.id);
                observer.on_event(&LoopEvent::CallDropped { call_id: call.id.clone() });
            }
            is_kept
        });
    }
}

/// Gives a call another id if the conversation has that id already: each id gets exactly one result.
fn make_ids_unique(message: &mut AssistantMessage, conversation: &Conversation) {
    let mut taken: HashSet<String> = conversation.calls().map(|call| call.id.clone()).collect();
    for part in &mut message.parts {
        let AssistantPart::ToolCall(call) = part else { continue };
        let mut number = 2;
        let id = call.id.clone();
        while !taken.insert(call.id.clone()) {
            call.wire_id.get_or_insert_with(|| id.clone());
            call.id = format!("{id}_{number}");
            number += 1;
        }
    }
}
