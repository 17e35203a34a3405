//! Content blocks and what they become.

use haft_tool::{Value, json};
use serde_json::Map;

use super::super::message::{MessageBuilder, WireCall, set_field, text_of};
use super::request::neutral_call;
use crate::{AssistantPart, CallArguments};

/// A block that arrives.
pub(super) struct ContentBlock {
    /// The block so far.
    pub(super) block: Value,
    /// The input of a call, as JSON text that arrives in fragments.
    pub(super) input: String,
    /// The id of a call of ours.
    pub(super) call_id: Option<String>,
    pub(super) is_stopped: bool,
    /// What it became; a call only when it is known to be complete.
    pub(super) part: Option<AssistantPart>,
}

impl ContentBlock {
    pub(super) fn kind(&self) -> &str {
        text_of(&self.block, "type")
    }

    /// Adds a delta of a type that is not known: texts are continued, other fields are set.
    pub(super) fn add_unknown(&mut self, delta: &Value) {
        for (name, value) in delta.as_object().into_iter().flatten().filter(|(name, _)| *name != "type") {
            self.append(name, value);
        }
    }

    pub(super) fn append(&mut self, name: &str, value: &Value) {
        match (self.block.get_mut(name), value) {
            (Some(Value::String(known)), Value::String(more)) => known.push_str(more),
            (_, Value::Null) => {}
            (_, value) => set_field(&mut self.block, name, value.clone()),
        }
    }

    /// The part that the block becomes.
    pub(super) fn to_part(&self, builder: &MessageBuilder) -> AssistantPart {
        let mut block = self.block.clone();
        match (self.kind(), &self.call_id) {
            ("text", _) => {
                let text = text_of(&block, "text").to_owned();
                let is_plain = without_nulls(&block) == json!({"type": "text", "text": text});
                AssistantPart::Text { text, raw: (!is_plain).then_some(block) }
            }
            ("thinking", _) => {
                AssistantPart::Reasoning { text: text_of(&block, "thinking").to_owned(), raw: Some(block) }
            }
            ("redacted_thinking", _) => AssistantPart::Reasoning { text: String::new(), raw: Some(block) },
            ("tool_use", Some(id)) => {
                let arguments = if self.input.is_empty() {
                    CallArguments::from_value(block.get("input").cloned().unwrap_or_default())
                } else {
                    CallArguments::parse(&self.input)
                };
                set_field(&mut block, "input", arguments.0.to_object());
                let received = WireCall {
                    id: id.clone(),
                    wire_id: Some(text_of(&block, "id").to_owned()).filter(|id| !id.is_empty()),
                    wire_name: text_of(&block, "name").to_owned(),
                    arguments,
                };
                AssistantPart::ToolCall(builder.call(received, block, neutral_call))
            }
            _ => {
                // The input of a tool that the provider runs arrives in fragments too.
                if let Ok(input) = serde_json::from_str::<Value>(&self.input) {
                    set_field(&mut block, "input", input);
                }
                AssistantPart::Opaque { raw: block }
            }
        }
    }
}

fn without_nulls(block: &Value) -> Value {
    let fields = block.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    Value::Object(fields.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>())
}
