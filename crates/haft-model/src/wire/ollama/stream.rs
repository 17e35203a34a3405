//! Responses, one JSON value per line.

use haft_tool::Value;
use serde_json::Map;

use super::super::decoder::Accumulator;
use super::super::failure::WireError;
use super::super::message::{MessageBuilder, WireCall, reasoning_part, take_field, text_of, text_part};
use super::request::neutral_call;
use crate::usage::count;
use crate::{AssistantPart, CallArguments, ModelEvent, ModelResponse, ModelStop, TokenUsage};

pub(in super::super) fn accumulator(builder: MessageBuilder) -> Box<dyn Accumulator> {
    Box::new(OllamaAccumulator {
        builder,
        text: String::new(),
        thinking: String::new(),
        fields: Map::new(),
        is_complete: false,
    })
}

struct OllamaAccumulator {
    builder: MessageBuilder,
    text: String,
    thinking: String,
    /// Fields of the message that only the provider understands.
    fields: Map<String, Value>,
    is_complete: bool,
}

impl OllamaAccumulator {
    fn message(&mut self, message: Value, out: &mut Vec<ModelEvent>) {
        let Value::Object(message) = message else { return };
        for (name, value) in message {
            match (name.as_str(), value) {
                ("role", _) | (_, Value::Null) => {}
                ("content", Value::String(delta)) if !delta.is_empty() => {
                    self.text.push_str(&delta);
                    out.push(ModelEvent::Text { delta });
                }
                ("thinking", Value::String(delta)) if !delta.is_empty() => {
                    self.thinking.push_str(&delta);
                    out.push(ModelEvent::Reasoning { delta });
                }
                ("content" | "thinking", _) => {}
                ("tool_calls", Value::Array(calls)) => {
                    for call in calls {
                        self.call(call, out);
                    }
                }
                (_, value) => drop(self.fields.insert(name, value)),
            }
        }
    }

    fn call(&mut self, raw: Value, out: &mut Vec<ModelEvent>) {
        let function = raw.get("function").cloned().unwrap_or_default();
        let wire_name = text_of(&function, "name").to_owned();
        if wire_name.is_empty() {
            return;
        }
        let wire_id = Some(text_of(&raw, "id").to_owned()).filter(|id| !id.is_empty());
        let id = self.builder.new_id(wire_id.as_deref());
        let name = self.builder.tool_name(&wire_name);
        out.push(ModelEvent::CallBegun { id: id.clone(), name });
        let arguments = match function.get("arguments") {
            Some(Value::String(text)) => CallArguments::parse(text),
            other => CallArguments::from_value(other.cloned().unwrap_or_default()),
        };
        let received = WireCall { id, wire_id, wire_name, arguments };
        let call = self.builder.call(received, raw, |call| neutral_call(call, call.wire_id.as_deref()));
        out.push(ModelEvent::CallComplete(call.clone()));
        self.builder.parts.push(AssistantPart::ToolCall(call));
    }
}

impl Accumulator for OllamaAccumulator {
    fn event(&mut self, mut event: Value, out: &mut Vec<ModelEvent>) -> Result<(), WireError> {
        if event.get("error").is_some_and(|error| !error.is_null()) {
            return Err(WireError::read(None, &event));
        }
        if self.is_complete {
            return Ok(());
        }
        self.builder.start(Some(text_of(&event, "model")), None, out);
        self.message(take_field(&mut event, "message"), out);
        if event.get("done") == Some(&Value::Bool(true)) {
            let number = |pointer: &str| count(&event, pointer).unwrap_or(0);
            let usage = TokenUsage {
                input: number("/prompt_eval_count"),
                output: number("/eval_count"),
                ..TokenUsage::default()
            };
            self.builder.set_usage(usage, out);
            self.builder.stop = Some(match text_of(&event, "done_reason") {
                "" | "stop" => ModelStop::End,
                "length" => ModelStop::Length,
                other => ModelStop::Other { name: other.to_owned() },
            });
            self.is_complete = true;
        }
        Ok(())
    }

    fn whole(&mut self, body: Value, out: &mut Vec<ModelEvent>) -> Result<(), WireError> {
        self.event(body, out)
    }

    fn is_complete(&self) -> bool {
        self.is_complete
    }

    fn response(&mut self) -> ModelResponse {
        let mut parts: Vec<AssistantPart> = reasoning_part(&self.thinking).into_iter().collect();
        parts.extend(text_part(&self.text));
        parts.extend(self.builder.parts.iter().cloned());
        self.builder.response(parts, self.fields.clone())
    }
}
