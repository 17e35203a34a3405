//! Responses that arrive as events.

use std::collections::BTreeMap;

use haft_tool::{Value, json};
use serde_json::Map;

use super::super::decoder::Accumulator;
use super::super::failure::WireError;
use super::super::message::{MessageBuilder, is_whole_object, set_field, take_field, text_of, text_part};
use super::blocks::ContentBlock;
use crate::usage::count;
use crate::{AssistantPart, ModelEvent, ModelResponse, ModelStop};

/// Blocks of one answer; further ones are skipped.
const MAX_BLOCKS_COUNT: usize = 10_000;

pub(in super::super) fn accumulator(builder: MessageBuilder) -> Box<dyn Accumulator> {
    Box::new(AnthropicAccumulator {
        builder,
        blocks: BTreeMap::new(),
        fields: Map::new(),
        is_complete: false,
    })
}

/// An answer that arrives as events.
pub(super) struct AnthropicAccumulator {
    pub(super) builder: MessageBuilder,
    blocks: BTreeMap<u64, ContentBlock>,
    /// Fields of the message that only the provider understands.
    fields: Map<String, Value>,
    pub(super) is_complete: bool,
}

impl AnthropicAccumulator {
    /// Takes what a message says about itself, at its begin and at its end.
    pub(super) fn facts(&mut self, message: &Value, usage: &Value, out: &mut Vec<ModelEvent>) {
        if let Some(container) = message.get("container").filter(|container| container.is_object()) {
            self.fields.insert("container".to_owned(), container.clone());
        }
        if let Some(reason) = message.pointer("/diagnostics/cache_miss_reason/type").and_then(Value::as_str) {
            let tokens =
                count(message, "/diagnostics/cache_miss_reason/cache_missed_input_tokens").unwrap_or(0);
            let text = format!("The prompt cache was missed ({reason}, {tokens} tokens).");
            out.push(ModelEvent::Notice { text });
        }
        // Numbers are cumulative, and an event may lack some.
        let mut sum = self.builder.usage;
        for (total, pointer) in [
            (&mut sum.input, "/input_tokens"),
            (&mut sum.output, "/output_tokens"),
            (&mut sum.cache_read, "/cache_read_input_tokens"),
            (&mut sum.cache_write, "/cache_creation_input_tokens"),
            (&mut sum.reasoning, "/output_tokens_details/thinking_tokens"),
        ] {
            *total = count(usage, pointer).unwrap_or(*total);
        }
        self.builder.set_usage(sum, out);
        let reason = text_of(message, "stop_reason");
        if !reason.is_empty() {
            self.builder.stop = Some(stop(reason, message));
        }
    }

    /// A block begins.
    pub(super) fn begin(&mut self, index: u64, block: Value, out: &mut Vec<ModelEvent>) {
        if !block.is_object() || self.blocks.contains_key(&index) || self.blocks.len() >= MAX_BLOCKS_COUNT {
            return;
        }
        let mut call_id = None;
        match text_of(&block, "type") {
            "tool_use" => {
                let id = self.builder.new_id(block.get("id").and_then(Value::as_str));
                let name = self.builder.tool_name(text_of(&block, "name"));
                out.push(ModelEvent::CallBegun { id: id.clone(), name });
                call_id = Some(id);
            }
            "text" => show_text(text_of(&block, "text"), out),
            "thinking" => show_reasoning(text_of(&block, "thinking"), out),
            _ => {}
        }
        let block = ContentBlock { block, input: String::new(), call_id, is_stopped: false, part: None };
        self.blocks.insert(index, block);
    }

    fn delta(&mut self, index: u64, delta: &Value, out: &mut Vec<ModelEvent>) {
        let Some(block) = self.blocks.get_mut(&index).filter(|block| !block.is_stopped) else { return };
        match text_of(delta, "type") {
            "text_delta" => {
                show_text(text_of(delta, "text"), out);
                block.append("text", &json!(text_of(delta, "text")));
            }
            "thinking_delta" => {
                show_reasoning(text_of(delta, "thinking"), out);
                block.append("thinking", &json!(text_of(delta, "thinking")));
            }
            "signature_delta" => block.append("signature", &json!(text_of(delta, "signature"))),
            "input_json_delta" => block.input.push_str(text_of(delta, "partial_json")),
            "citations_delta" => {
                let mut citations = match take_field(&mut block.block, "citations") {
                    Value::Array(citations) => citations,
                    _ => Vec::new(),
                };
                citations.extend(delta.get("citation").cloned());
                set_field(&mut block.block, "citations", Value::Array(citations));
            }
            _ => block.add_unknown(delta),
        }
    }

    /// A block is over. A call whose input is no object yet may have been cut, which only the end of the message says.
    pub(super) fn end(&mut self, index: u64, out: &mut Vec<ModelEvent>) {
        let Some(block) = self.blocks.get_mut(&index) else { return };
        block.is_stopped = true;
        if block.call_id.is_none() || is_whole_object(&block.input) {
            self.complete(index, out);
        }
    }

    fn complete(&mut self, index: u64, out: &mut Vec<ModelEvent>) {
        let Some(block) = self.blocks.get_mut(&index).filter(|block| block.part.is_none()) else { return };
        let part = block.to_part(&self.builder);
        if let AssistantPart::ToolCall(call) = &part {
            out.push(ModelEvent::CallComplete(call.clone()));
        }
        block.part = Some(part);
    }

    /// The message is over.
    pub(super) fn finish(&mut self, out: &mut Vec<ModelEvent>) {
        let is_cut = matches!(self.builder.stop, Some(ModelStop::Length | ModelStop::ContextFull));
        let last = self.blocks.keys().next_back().copied();
        let open: Vec<u64> = self
            .blocks
            .iter()
            .filter(|(index, block)| block.is_stopped && !(is_cut && Some(**index) == last))
            .map(|(index, _)| *index)
            .collect();
        for index in open {
            self.complete(index, out);
        }
        self.is_complete = true;
    }
}

fn stop(reason: &str, message: &Value) -> ModelStop {
    let detail = |field: &str| {
        message.get("stop_details").and_then(|details| details.get(field)).and_then(Value::as_str)
    };
    match reason {
        "end_turn" | "tool_use" | "stop_sequence" => ModelStop::End,
        "max_tokens" => ModelStop::Length,
        "model_context_window_exceeded" => ModelStop::ContextFull,
        "pause_turn" => ModelStop::Paused,
        "refusal" => ModelStop::Refused {
            explanation: detail("explanation").or(detail("category")).unwrap_or_default().to_owned(),
        },
        other => ModelStop::Other { name: other.to_owned() },
    }
}

fn show_text(delta: &str, out: &mut Vec<ModelEvent>) {
    if !delta.is_empty() {
        out.push(ModelEvent::Text { delta: delta.to_owned() });
    }
}

fn show_reasoning(delta: &str, out: &mut Vec<ModelEvent>) {
    if !delta.is_empty() {
        out.push(ModelEvent::Reasoning { delta: delta.to_owned() });
    }
}

impl Accumulator for AnthropicAccumulator {
    fn event(&mut self, mut event: Value, out: &mut Vec<ModelEvent>) -> Result<(), WireError> {
        let index = count(&event, "/index").unwrap_or(0);
        match text_of(&event, "type") {
            "message_start" => {
                let message = take_field(&mut event, "message");
                self.builder.start(Some(text_of(&message, "model")), Some(text_of(&message, "id")), out);
                self.facts(&message, message.get("usage").unwrap_or(&Value::Null), out);
            }
            "content_block_start" => self.begin(index, take_field(&mut event, "content_block"), out),
            "content_block_delta" => self.delta(index, &take_field(&mut event, "delta"), out),
            "content_block_stop" => self.end(index, out),
            "message_delta" => {
                let usage = take_field(&mut event, "usage");
                self.facts(&take_field(&mut event, "delta"), &usage, out);
            }
            "message_stop" => self.finish(out),
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
        let unfinished = |block: &ContentBlock| {
            (block.kind() == "text").then(|| text_part(text_of(&block.block, "text"))).flatten()
        };
        let parts = self.blocks.values().filter_map(|block| block.part.clone().or_else(|| unfinished(block)));
        self.builder.response(parts.collect(), self.fields.clone())
    }
}
