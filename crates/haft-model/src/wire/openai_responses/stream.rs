//! Responses that arrive as events.

use std::collections::BTreeMap;

use haft_tool::Value;
use serde_json::Map;

use super::super::decoder::Accumulator;
use super::super::failure::WireError;
use super::super::message::{MessageBuilder, take_field, text_of, text_part};
use super::items::{is_complete_call, message_text, part, without_calls, without_dangling_reasoning};
use crate::usage::count;
use crate::{AssistantPart, ModelEvent, ModelResponse, ModelStop, TokenUsage};

/// Items of one answer; further ones are not told apart.
const MAX_ITEMS_COUNT: u64 = 10_000;

pub(in super::super) fn accumulator(builder: MessageBuilder) -> Box<dyn Accumulator> {
    Box::new(ResponsesAccumulator {
        builder,
        items: BTreeMap::new(),
        refusal: String::new(),
        is_complete: false,
        is_cut: false,
    })
}

/// An answer that arrives as events.
pub(super) struct ResponsesAccumulator {
    pub(super) builder: MessageBuilder,
    /// By their place in the output.
    items: BTreeMap<u64, ReceivedItem>,
    refusal: String,
    pub(super) is_complete: bool,
    /// Whether the response is incomplete by its own account.
    is_cut: bool,
}

/// An item that arrives.
#[derive(Default)]
struct ReceivedItem {
    /// Text that was reported before the item was done.
    text: String,
    has_reasoning: bool,
    /// The id of a call.
    call_id: Option<String>,
    /// What it became.
    done: Option<AssistantPart>,
}

impl ResponsesAccumulator {
    fn item(&mut self, index: u64) -> &mut ReceivedItem {
        self.items.entry(index.min(MAX_ITEMS_COUNT)).or_default()
    }

    fn text(&mut self, index: u64, delta: &str, out: &mut Vec<ModelEvent>) {
        if !delta.is_empty() {
            self.item(index).text.push_str(delta);
            out.push(ModelEvent::Text { delta: delta.to_owned() });
        }
    }

    fn reasoning(&mut self, index: u64, delta: &str, out: &mut Vec<ModelEvent>) {
        if !delta.is_empty() {
            self.item(index).has_reasoning = true;
            out.push(ModelEvent::Reasoning { delta: delta.to_owned() });
        }
    }

    /// An item begins. What it contains may be incomplete.
    fn added(&mut self, index: u64, item: &Value, out: &mut Vec<ModelEvent>) {
        if text_of(item, "type") != "function_call" || self.item(index).call_id.is_some() {
            return;
        }
        let id = self.builder.new_id(item.get("call_id").and_then(Value::as_str));
        let name = self.builder.tool_name(text_of(item, "name"));
        out.push(ModelEvent::CallBegun { id: id.clone(), name });
        self.item(index).call_id = Some(id);
    }

    /// An item is done.
    pub(super) fn done(&mut self, index: u64, item: Value, out: &mut Vec<ModelEvent>) {
        if !item.is_object() || self.item(index).done.is_some() {
            return;
        }
        self.added(index, &item, out);
        if text_of(&item, "type") == "function_call" && !is_complete_call(&item) {
            return;
        }
        self.refusal.push_str(&message_text(&item, "refusal"));
        let call_id = self.item(index).call_id.clone();
        let part = part(item, call_id, &self.builder);
        // A server that sends no deltas has not shown anything yet.
        match &part {
            AssistantPart::Text { text, .. } if self.item(index).text.is_empty() => {
                let text = text.clone();
                self.text(index, &text, out);
            }
            AssistantPart::Reasoning { text, .. } if !self.item(index).has_reasoning => {
                let text = text.clone();
                self.reasoning(index, &text, out);
            }
            AssistantPart::ToolCall(call) => out.push(ModelEvent::CallComplete(call.clone())),
            _ => {}
        }
        self.item(index).done = Some(part);
    }

    /// The response is over.
    pub(super) fn end(&mut self, mut response: Value, out: &mut Vec<ModelEvent>) -> Result<(), WireError> {
        let status = text_of(&response, "status").to_owned();
        if status == "failed" || response.get("error").is_some_and(|error| !error.is_null()) {
            return Err(WireError::read(None, &response));
        }
        let reason = response.pointer("/incomplete_details/reason").and_then(Value::as_str);
        self.is_cut = reason.is_some() || status == "incomplete";
        let stop = match reason {
            Some("max_output_tokens") => ModelStop::Length,
            Some("content_filter") => ModelStop::Refused { explanation: "content_filter".to_owned() },
            Some(other) => ModelStop::Other { name: other.to_owned() },
            None if self.is_cut => ModelStop::Length,
            None => ModelStop::End,
        };
        // Some servers list the items only here.
        if let Value::Array(output) = take_field(&mut response, "output") {
            for (index, item) in output.into_iter().enumerate() {
                self.done(index as u64, item, out);
            }
        }
        let refusal = std::mem::take(&mut self.refusal);
        self.builder.stop =
            Some(if refusal.is_empty() { stop } else { ModelStop::Refused { explanation: refusal } });
        if let Some(usage) = response.get("usage").filter(|usage| usage.is_object()) {
            self.usage(usage, out);
        }
        self.is_complete = true;
        Ok(())
    }

    fn usage(&mut self, usage: &Value, out: &mut Vec<ModelEvent>) {
        let number = |pointer: &str| count(usage, pointer).unwrap_or(0);
        let cache_read = number("/input_tokens_details/cached_tokens");
        let cache_write = number("/input_tokens_details/cache_write_tokens");
        let usage = TokenUsage {
            input: number("/input_tokens").saturating_sub(cache_read).saturating_sub(cache_write),
            output: number("/output_tokens"),
            cache_read,
            cache_write,
            reasoning: number("/output_tokens_details/reasoning_tokens"),
        };
        self.builder.set_usage(usage, out);
    }
}

impl Accumulator for ResponsesAccumulator {
    fn event(&mut self, mut event: Value, out: &mut Vec<ModelEvent>) -> Result<(), WireError> {
        let kind = text_of(&event, "type").to_owned();
        let index = count(&event, "/output_index").unwrap_or(0);
        match kind.as_str() {
            "response.created" | "response.in_progress" => {
                let response = take_field(&mut event, "response");
                self.builder.start(Some(text_of(&response, "model")), Some(text_of(&response, "id")), out);
            }
            "response.output_item.added" => self.added(index, &take_field(&mut event, "item"), out),
            "response.output_item.done" => self.done(index, take_field(&mut event, "item"), out),
            "response.output_text.delta" => self.text(index, text_of(&event, "delta"), out),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.reasoning(index, text_of(&event, "delta"), out);
            }
            "response.reasoning_summary_part.added" if count(&event, "/summary_index") > Some(0) => {
                self.reasoning(index, "\n\n", out);
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                let response = take_field(&mut event, "response");
                self.builder.start(Some(text_of(&response, "model")), Some(text_of(&response, "id")), out);
                if kind == "response.failed" {
                    return Err(WireError::read(None, &response));
                }
                self.end(response, out)?;
            }
            "error" => return Err(WireError::read(None, &event)),
            // A proxy that fails reports it in its own form.
            "" if event.get("error").is_some() => return Err(WireError::read(None, &event)),
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, body: Value, out: &mut Vec<ModelEvent>) -> Result<(), WireError> {
        self.take_whole(body, out)
    }

    fn is_complete(&self) -> bool {
        self.is_complete
    }

    fn response(&mut self) -> ModelResponse {
        let mut parts = Vec::new();
        for item in self.items.values() {
            parts.extend(item.done.clone().or_else(|| text_part(&item.text)));
        }
        let parts = match (self.is_complete, self.is_cut) {
            (_, true) => without_calls(parts),
            (false, _) => without_dangling_reasoning(parts),
            (true, false) => parts,
        };
        self.builder.response(parts, Map::new())
    }
}
