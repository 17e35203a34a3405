//! Responses that arrive in chunks.

use haft_tool::Value;
use serde_json::{Map, json};

use super::super::decoder::Accumulator;
use super::super::failure::WireError;
use super::super::message::{
    MessageBuilder, WireCall, is_whole_object, reasoning_part, set_field, take_field, text_of, text_part,
};
use super::pieces::add_field;
use super::request::neutral_call;
use crate::usage::count;
use crate::{AssistantPart, CallArguments, ModelEvent, ModelResponse, ModelStop, TokenUsage, ToolCall};

pub(in super::super) fn accumulator(builder: MessageBuilder) -> Box<dyn Accumulator> {
    Box::new(ChatAccumulator {
        builder,
        text: String::new(),
        reasoning: String::new(),
        calls: Vec::new(),
        fields: Map::new(),
        is_complete: false,
    })
}

/// A message that arrives in chunks.
pub(super) struct ChatAccumulator {
    pub(super) builder: MessageBuilder,
    text: String,
    reasoning: String,
    calls: Vec<ChunkedCall>,
    /// Fields of the message that only the provider understands.
    pub(super) fields: Map<String, Value>,
    is_complete: bool,
}

/// A call whose arguments arrive in fragments.
struct ChunkedCall {
    id: String,
    index: Option<u64>,
    wire_id: Option<String>,
    name: String,
    arguments: String,
    /// The provider's form, without id, name and arguments until those are known.
    fields: Map<String, Value>,
    is_announced: bool,
    complete: Option<ToolCall>,
}

impl ChatAccumulator {
    /// Takes a part of the message, or all of it.
    pub(super) fn delta(&mut self, delta: Value, is_whole: bool, out: &mut Vec<ModelEvent>) {
        let Value::Object(delta) = delta else { return };
        let reasoning = ["reasoning_content", "reasoning"]
            .iter()
            .filter_map(|name| delta.get(*name).and_then(Value::as_str))
            .find(|text| !text.is_empty());
        if let Some(text) = reasoning {
            self.reasoning.push_str(text);
            out.push(ModelEvent::Reasoning { delta: text.to_owned() });
        }
        for (name, value) in delta {
            match (name.as_str(), value) {
                ("role" | "function_call", _) | (_, Value::Null) => {}
                ("content", content) => self.content(&content, out),
                ("tool_calls", Value::Array(calls)) => {
                    for (position, call) in calls.into_iter().enumerate() {
                        // The calls of a whole message have no index.
                        let index = count(&call, "/index").or(is_whole.then_some(position as u64));
                        self.call_delta(index, call, out);
                    }
                }
                (_, value) if is_whole => drop(self.fields.insert(name, value)),
                (_, value) => add_field(&mut self.fields, &name, value),
            }
        }
    }

    fn content(&mut self, content: &Value, out: &mut Vec<ModelEvent>) {
        // Some servers send a list of parts.
        let text = match content {
            Value::String(text) => text.clone(),
            Value::Array(parts) => parts.iter().map(|part| text_of(part, "text")).collect(),
            _ => String::new(),
        };
        if !text.is_empty() {
            self.text.push_str(&text);
            out.push(ModelEvent::Text { delta: text });
        }
    }

    fn call_delta(&mut self, index: Option<u64>, delta: Value, out: &mut Vec<ModelEvent>) {
        let Value::Object(mut delta) = delta else { return };
        let wire_id = match delta.remove("id") {
            Some(Value::String(id)) if !id.is_empty() => Some(id),
            _ => None,
        };
        let position = self.call_position(index, wire_id.as_deref());
        if position + 1 == self.calls.len() && position > 0 {
            self.close(position - 1, out);
        }
        let Some(call) = self.calls.get_mut(position) else { return };
        let mut function = match delta.remove("function") {
            Some(Value::Object(function)) => function,
            _ => Map::new(),
        };
        if let Some(Value::String(name)) = function.remove("name")
            && call.name.is_empty()
        {
            call.name = name;
        }
        match function.remove("arguments") {
            Some(Value::String(fragment)) => call.arguments.push_str(&fragment),
            Some(object @ Value::Object(_)) => call.arguments = object.to_string(),
            _ => {}
        }
        delta.remove("index");
        delta.remove("type");
        for (name, value) in delta {
            add_field(&mut call.fields, &name, value);
        }
        if !function.is_empty() {
            add_field(&mut call.fields, "function", Value::Object(function));
        }
        if !call.is_announced && !call.name.is_empty() {
            call.is_announced = true;
            let (id, name) = (call.id.clone(), self.builder.tool_name(&call.name));
            out.push(ModelEvent::CallBegun { id, name });
        }
    }

    /// The call that a delta belongs to. A new id under a known index is a new call: some servers send index 0 for all.
    fn call_position(&mut self, index: Option<u64>, wire_id: Option<&str>) -> usize {
        let known = match (index, wire_id) {
            (Some(_), _) => self.calls.iter().rposition(|call| call.index == index),
            (None, Some(_)) => self.calls.iter().rposition(|call| call.wire_id.as_deref() == wire_id),
            (None, None) => self.calls.len().checked_sub(1),
        };
        let is_same = |at: &usize| {
            let known_id = self.calls.get(*at).and_then(|call| call.wire_id.as_deref());
            wire_id.is_none() || known_id.is_none() || known_id == wire_id
        };
        if let Some(at) = known.filter(is_same) {
            if let Some(call) = self.calls.get_mut(at).filter(|call| call.wire_id.is_none()) {
                call.wire_id = wire_id.map(str::to_owned);
            }
            return at;
        }
        self.calls.push(ChunkedCall {
            id: self.builder.new_id(wire_id),
            index,
            wire_id: wire_id.map(str::to_owned),
            name: String::new(),
            arguments: String::new(),
            fields: Map::new(),
            is_announced: false,
            complete: None,
        });
        self.calls.len() - 1
    }

    /// Reports a call whose arguments are complete.
    fn close(&mut self, position: usize, out: &mut Vec<ModelEvent>) {
        let Some(call) = self.calls.get_mut(position).filter(|call| call.complete.is_none()) else { return };
        let mut raw = json!({
            "id": call.wire_id.as_ref().unwrap_or(&call.id), "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        });
        for (name, value) in std::mem::take(&mut call.fields) {
            match (name.as_str(), value) {
                ("function", Value::Object(more)) => {
                    if let Some(function) = raw.get_mut("function").and_then(Value::as_object_mut) {
                        function.extend(more);
                    }
                }
                (name, value) => set_field(&mut raw, name, value),
            }
        }
        let received = WireCall {
            id: call.id.clone(),
            wire_id: call.wire_id.clone(),
            wire_name: call.name.clone(),
            arguments: CallArguments::parse(&call.arguments),
        };
        let complete = self.builder.call(received, raw, neutral_call);
        out.push(ModelEvent::CallComplete(complete.clone()));
        call.complete = Some(complete);
    }

    /// Takes the reason why the model stopped. No more of the message comes after it.
    pub(super) fn finish(&mut self, reason: &str, out: &mut Vec<ModelEvent>) {
        let refusal = self.fields.get("refusal").and_then(Value::as_str).unwrap_or_default().to_owned();
        self.builder.stop = Some(match reason {
            "stop" | "tool_calls" | "function_call" if refusal.is_empty() => ModelStop::End,
            "stop" | "content_filter" => ModelStop::Refused { explanation: refusal },
            "length" | "max_tokens" => ModelStop::Length,
            other => ModelStop::Other { name: other.to_owned() },
        });
        if self.builder.stop == Some(ModelStop::Length) {
            self.calls.pop_if(|last| last.complete.is_none() && !is_whole_object(&last.arguments));
        }
        // A call without a name cannot be answered.
        self.calls.retain(|call| !call.name.is_empty());
        (0..self.calls.len()).for_each(|position| self.close(position, out));
        self.is_complete = true;
    }

    pub(super) fn usage(&mut self, body: &Value, out: &mut Vec<ModelEvent>) {
        let Some(usage) = body.get("usage").filter(|usage| usage.is_object()) else { return };
        let either = |one: &str, other: &str| count(usage, one).or_else(|| count(usage, other)).unwrap_or(0);
        let prompt = either("/prompt_tokens", "/input_tokens");
        let cache_read = either("/prompt_tokens_details/cached_tokens", "/cache_read_input_tokens");
        let cache_write = either("/prompt_tokens_details/cache_write_tokens", "/cache_creation_input_tokens");
        let usage = TokenUsage {
            input: prompt.saturating_sub(cache_read).saturating_sub(cache_write),
            output: either("/completion_tokens", "/output_tokens"),
            cache_read,
            cache_write,
            reasoning: count(usage, "/completion_tokens_details/reasoning_tokens").unwrap_or(0),
        };
        self.builder.set_usage(usage, out);
    }
}

impl Accumulator for ChatAccumulator {
    fn event(&mut self, mut event: Value, out: &mut Vec<ModelEvent>) -> Result<(), WireError> {
        if event.get("error").is_some_and(|error| !error.is_null()) {
            return Err(WireError::read(None, &event));
        }
        self.builder.start(Some(text_of(&event, "model")), Some(text_of(&event, "id")), out);
        self.usage(&event, out);
        let Some(choice) = event.pointer_mut("/choices/0") else { return Ok(()) };
        if choice.get("error").is_some_and(|error| !error.is_null()) {
            return Err(WireError::read(None, choice));
        }
        let reason = text_of(choice, "finish_reason").to_owned();
        if !self.is_complete {
            self.delta(take_field(choice, "delta"), false, out);
            if reason == "error" {
                return Err(WireError::protocol("The provider reported an error without an explanation"));
            }
            if !reason.is_empty() {
                self.finish(&reason, out);
            }
        }
        Ok(())
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
        let mut parts: Vec<AssistantPart> = reasoning_part(&self.reasoning).into_iter().collect();
        parts.extend(text_part(&self.text));
        let calls = self.calls.iter().filter_map(|call| call.complete.clone());
        parts.extend(calls.map(AssistantPart::ToolCall));
        // The signatures of a message that was cut off do not fit what is left of it.
        let fields = if self.is_complete { self.fields.clone() } else { Map::new() };
        self.builder.response(parts, fields)
    }
}
