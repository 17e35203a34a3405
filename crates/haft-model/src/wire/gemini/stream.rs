//! Responses that arrive in chunks.

use haft_tool::Value;
use serde_json::Map;

use super::super::decoder::Accumulator;
use super::super::failure::WireError;
use super::super::message::{MessageBuilder, WireCall, reasoning_part, text_of, text_part};
use super::request::neutral_call;
use crate::usage::count;
use crate::{AssistantPart, CallArguments, ModelErrorKind, ModelEvent, ModelResponse, ModelStop, TokenUsage};

pub(in super::super) fn accumulator(builder: MessageBuilder) -> Box<dyn Accumulator> {
    Box::new(GeminiAccumulator { builder, is_complete: false })
}

/// An answer that arrives in chunks, each of which is like a whole response.
pub(super) struct GeminiAccumulator {
    pub(super) builder: MessageBuilder,
    is_complete: bool,
}

impl GeminiAccumulator {
    pub(super) fn chunk(&mut self, mut chunk: Value, out: &mut Vec<ModelEvent>) -> Result<(), WireError> {
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(WireError::read(None, &chunk));
        }
        let (model, id) = (text_of(&chunk, "modelVersion"), text_of(&chunk, "responseId"));
        self.builder.start(Some(model), Some(id), out);
        if let Some(usage) = chunk.get("usageMetadata") {
            self.usage(usage, out);
        }
        if let Some(reason) = chunk.pointer("/promptFeedback/blockReason").and_then(Value::as_str) {
            let why = chunk.pointer("/promptFeedback/blockReasonMessage").and_then(Value::as_str);
            let message = format!("The request was blocked: {}", why.unwrap_or(reason));
            return Err(WireError { kind: ModelErrorKind::Refused, message, retry_after: None });
        }
        let Some(candidate) = chunk.pointer_mut("/candidates/0") else { return Ok(()) };
        if let Some(Value::Array(parts)) = candidate.pointer_mut("/content/parts").map(Value::take) {
            for part in parts {
                self.part(part, out);
            }
        }
        let reason = text_of(candidate, "finishReason");
        if !matches!(reason, "" | "FINISH_REASON_UNSPECIFIED") {
            self.builder.stop = Some(stop(reason, text_of(candidate, "finishMessage")));
            self.is_complete = true;
        }
        Ok(())
    }

    fn part(&mut self, part: Value, out: &mut Vec<ModelEvent>) {
        if part.get("functionCall").is_some_and(Value::is_object) {
            self.call(part, out);
            return;
        }
        let Some(text) = part.get("text").and_then(Value::as_str).map(str::to_owned) else {
            if part.is_object() {
                self.builder.parts.push(AssistantPart::Opaque { raw: part });
            }
            return;
        };
        let is_thought = part.get("thought") == Some(&Value::Bool(true));
        if !text.is_empty() {
            let delta = text.clone();
            out.push(if is_thought { ModelEvent::Reasoning { delta } } else { ModelEvent::Text { delta } });
        }
        // Text alone continues the part before it. Anything else, such as a signature, stays on its own part.
        let is_plain = part.as_object().is_some_and(|part| part.len() == 1 + usize::from(is_thought));
        match (self.builder.parts.last_mut(), is_plain, is_thought) {
            (Some(AssistantPart::Text { text: known, raw: None }), true, false)
            | (Some(AssistantPart::Reasoning { text: known, raw: None }), true, true) => {
                known.push_str(&text);
            }
            (_, true, false) => self.builder.parts.extend(text_part(&text)),
            (_, true, true) => self.builder.parts.extend(reasoning_part(&text)),
            (_, false, false) => self.builder.parts.push(AssistantPart::Text { text, raw: Some(part) }),
            (_, false, true) => self.builder.parts.push(AssistantPart::Reasoning { text, raw: Some(part) }),
        }
    }

    fn call(&mut self, part: Value, out: &mut Vec<ModelEvent>) {
        let function = part.get("functionCall").cloned().unwrap_or_default();
        // Arguments in pieces come only to those who ask for them; such a call is not whole.
        if function.get("willContinue") == Some(&Value::Bool(true)) || text_of(&function, "name").is_empty() {
            return;
        }
        let wire_id = Some(text_of(&function, "id").to_owned()).filter(|id| !id.is_empty());
        let id = self.builder.new_id(wire_id.as_deref());
        let wire_name = text_of(&function, "name").to_owned();
        // A call without parameters may lack its arguments.
        let arguments = match function.get("args") {
            None => (CallArguments::Object(Map::new()), None),
            Some(arguments) => CallArguments::from_value(arguments.clone()),
        };
        let name = self.builder.tool_name(&wire_name);
        out.push(ModelEvent::CallBegun { id: id.clone(), name });
        let received = WireCall { id, wire_id, wire_name, arguments };
        let call = self.builder.call(received, part, |call| neutral_call(call, call.wire_id.as_deref()));
        out.push(ModelEvent::CallComplete(call.clone()));
        self.builder.parts.push(AssistantPart::ToolCall(call));
    }

    fn usage(&mut self, usage: &Value, out: &mut Vec<ModelEvent>) {
        let number = |pointer: &str| count(usage, pointer).unwrap_or(0);
        let cache_read = number("/cachedContentTokenCount");
        let reasoning = number("/thoughtsTokenCount");
        let prompt = number("/promptTokenCount").saturating_add(number("/toolUsePromptTokenCount"));
        let usage = TokenUsage {
            input: prompt.saturating_sub(cache_read),
            output: number("/candidatesTokenCount").saturating_add(reasoning),
            cache_read,
            cache_write: 0,
            reasoning,
        };
        self.builder.set_usage(usage, out);
    }
}

fn stop(reason: &str, message: &str) -> ModelStop {
    let explanation = if message.is_empty() { reason.to_owned() } else { message.to_owned() };
    match reason {
        "STOP" => ModelStop::End,
        "MAX_TOKENS" => ModelStop::Length,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY" => {
            ModelStop::Refused { explanation }
        }
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS" | "MALFORMED_RESPONSE" => {
            ModelStop::InvalidCall { explanation }
        }
        other => ModelStop::Other { name: other.to_owned() },
    }
}

impl Accumulator for GeminiAccumulator {
    fn event(&mut self, event: Value, out: &mut Vec<ModelEvent>) -> Result<(), WireError> {
        self.chunk(event, out)
    }

    fn whole(&mut self, body: Value, out: &mut Vec<ModelEvent>) -> Result<(), WireError> {
        self.take_whole(body, out)
    }

    fn is_complete(&self) -> bool {
        self.is_complete
    }

    fn is_ended(&self) -> bool {
        // The usage may follow.
        false
    }

    fn response(&mut self) -> ModelResponse {
        self.builder.response(self.builder.parts.clone(), Map::new())
    }
}
