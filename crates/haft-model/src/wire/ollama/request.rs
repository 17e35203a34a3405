//! Requests.

use haft_tool::{Definition, Value, json};
use serde_json::Map;

use super::super::history::ProviderHistory;
use super::super::message::set_field;
use crate::schema::{ollama_schema, wire_name};
use crate::{
    AssistantMessage, AssistantPart, ChatMessage, ContentPart, ReasoningEffort, ToolCall, ToolResult,
    TurnOptions, TurnRequest,
};

pub(in super::super) fn encode(
    request: &TurnRequest<'_>,
    history: &ProviderHistory<'_>,
    model: &str,
) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), tools(request.tools));
    }
    body.insert("messages".to_owned(), Value::Array(messages(history)));
    add_options(&mut body, request.options);
    Value::Object(body)
}

/// The definitions of tools.
pub(in super::super) fn tools(definitions: &[Definition]) -> Value {
    let tool = |tool: &Definition| {
        json!({"type": "function", "function": {
            "name": wire_name(&tool.name),
            "description": tool.description,
            "parameters": ollama_schema(&tool.input_schema),
        }})
    };
    Value::Array(definitions.iter().map(tool).collect())
}

/// One result. Old servers send no ids and get none back.
pub(in super::super) fn result(result: &ToolResult, id: Option<&str>) -> Value {
    let mut message = json!({"role": "tool", "tool_name": wire_name(&result.name)});
    if let Some(id) = id {
        set_field(&mut message, "tool_call_id", json!(id));
    }
    set_field(&mut message, "content", json!(result.flagged_text()));
    message
}

fn add_options(body: &mut Map<String, Value>, options: &TurnOptions) {
    if let Some(effort) = options.effort {
        let think = match effort {
            ReasoningEffort::None => json!(false),
            ReasoningEffort::Minimal | ReasoningEffort::Low => json!("low"),
            ReasoningEffort::Medium => json!("medium"),
            ReasoningEffort::High | ReasoningEffort::XHigh | ReasoningEffort::Max => json!("high"),
        };
        body.insert("think".to_owned(), think);
    }
    if let Some(output) = &options.output_schema {
        body.insert("format".to_owned(), output.schema.clone());
    }
    let max_tokens = options.max_tokens.map(|tokens| ("num_predict".to_owned(), json!(tokens)));
    let temperature = options.temperature.map(|value| ("temperature".to_owned(), json!(value)));
    let parameters: Map<String, Value> = max_tokens.into_iter().chain(temperature).collect();
    if !parameters.is_empty() {
        body.insert("options".to_owned(), Value::Object(parameters));
    }
    body.insert("stream".to_owned(), json!(options.stream));
}

fn messages(history: &ProviderHistory<'_>) -> Vec<Value> {
    let mut messages = Vec::new();
    let system = history.system_text();
    if !system.is_empty() {
        messages.push(json!({"role": "system", "content": system}));
    }
    for message in history.messages() {
        match message {
            ChatMessage::User { content } => messages.extend(user(content)),
            ChatMessage::Assistant(answer) => messages.extend(assistant(answer, history)),
            ChatMessage::ToolResults { results, content } => {
                messages.extend(results.iter().map(|it| result(it, history.known_id(&it.call_id))));
                // Templates show images of the user's messages only.
                let is_image = |part: &&ContentPart| matches!(part, ContentPart::Image { .. });
                let images = results.iter().flat_map(|result| result.content.iter().filter(is_image));
                let mut shown: Vec<ContentPart> = images.cloned().collect();
                if !shown.is_empty() {
                    shown.insert(0, ContentPart::text("Images of the results:"));
                }
                shown.extend(content.iter().cloned());
                messages.extend(user(&shown));
            }
        }
    }
    messages
}

fn user(content: &[ContentPart]) -> Option<Value> {
    if content.is_empty() {
        return None;
    }
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for part in content {
        match part {
            ContentPart::Text { text } => texts.push(text.as_str()),
            ContentPart::Image { data, .. } => images.push(json!(data)),
        }
    }
    let mut message = json!({"role": "user", "content": texts.join("\n\n")});
    if !images.is_empty() {
        set_field(&mut message, "images", Value::Array(images));
    }
    Some(message)
}

fn assistant(answer: &AssistantMessage, history: &ProviderHistory<'_>) -> Option<Value> {
    let (mut text, mut thinking, mut calls) = (String::new(), String::new(), Vec::new());
    for part in history.parts(answer) {
        match part {
            AssistantPart::Text { text: more, .. } => text.push_str(more),
            AssistantPart::Reasoning { text: more, .. } => thinking.push_str(more),
            AssistantPart::ToolCall(call) => calls.push(sent_call(call, answer, history)),
            AssistantPart::Opaque { .. } => {}
        }
    }
    if text.is_empty() && thinking.is_empty() && calls.is_empty() {
        return None;
    }
    let mut message = json!({"role": "assistant", "content": text});
    if !thinking.is_empty() {
        set_field(&mut message, "thinking", json!(thinking));
    }
    if history.is_own(answer) {
        for (field, value) in &answer.raw {
            set_field(&mut message, field, value.clone());
        }
    }
    if !calls.is_empty() {
        set_field(&mut message, "tool_calls", Value::Array(calls));
    }
    Some(message)
}

fn sent_call(call: &ToolCall, answer: &AssistantMessage, history: &ProviderHistory<'_>) -> Value {
    let id = history.known_id(&call.id);
    let own = call.raw.clone().filter(|_| history.is_own(answer));
    let mut sent = own.unwrap_or_else(|| neutral_call(call, id));
    if let Some(id) = id {
        set_field(&mut sent, "id", json!(id));
    }
    sent
}

/// A call without anything that only its provider understands.
pub(super) fn neutral_call(call: &ToolCall, id: Option<&str>) -> Value {
    let mut sent = Map::new();
    if let Some(id) = id {
        sent.insert("id".to_owned(), json!(id));
    }
    sent.insert(
        "function".to_owned(),
        json!({"name": wire_name(&call.name), "arguments": call.arguments.to_object()}),
    );
    Value::Object(sent)
}
