//! Requests.

use std::collections::HashMap;

use haft_tool::{Definition, Value, json};
use serde_json::Map;

use super::super::WireOptions;
use super::super::history::ProviderHistory;
use super::super::message::set_field;
use crate::schema::{strict_schema, wire_name};
use crate::{
    AssistantMessage, AssistantPart, ChatMessage, ContentPart, ReasoningEffort, ToolCall, ToolChoice,
    ToolResult, TurnOptions, TurnRequest,
};

/// Fields of a call that its result must repeat.
const REPEATED_FIELDS: &[&str] = &["caller", "namespace"];

pub(in super::super) fn encode(
    request: &TurnRequest<'_>,
    history: &ProviderHistory<'_>,
    wire: &WireOptions,
    model: &str,
) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    let system = history.system_text();
    if !system.is_empty() {
        body.insert("instructions".to_owned(), json!(system));
    }
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), tools(request.tools, wire));
        add_tool_choice(&mut body, request.options);
    }
    body.insert("input".to_owned(), Value::Array(input(history)));
    body.insert("store".to_owned(), json!(false));
    add_options(&mut body, request.options);
    Value::Object(body)
}

/// The definitions of tools. `strict` is always said, because its default is true here.
pub(in super::super) fn tools(definitions: &[Definition], wire: &WireOptions) -> Value {
    let tool = |tool: &Definition| {
        let strict = wire.strict_tools.then(|| strict_schema(&tool.input_schema)).flatten();
        json!({
            "type": "function",
            "name": wire_name(&tool.name),
            "description": tool.description,
            "parameters": strict.as_ref().unwrap_or(&tool.input_schema),
            "strict": strict.is_some(),
        })
    };
    Value::Array(definitions.iter().map(tool).collect())
}

/// One result; `call` is the provider's form of the call.
pub(in super::super) fn result(result: &ToolResult, id: &str, call: Option<&Value>) -> Value {
    let is_text = result.content.iter().all(|part| matches!(part, ContentPart::Text { .. }));
    let output = if is_text {
        json!(result.flagged_text())
    } else {
        let mut parts: Vec<Value> = result.content.iter().map(part).collect();
        if result.is_error {
            parts.insert(0, part(&ContentPart::text("Error:")));
        }
        Value::Array(parts)
    };
    let mut item = json!({"type": "function_call_output", "call_id": id, "output": output});
    for field in REPEATED_FIELDS {
        if let Some(value) = call.and_then(|call| call.get(field)).filter(|value| !value.is_null()) {
            set_field(&mut item, field, value.clone());
        }
    }
    item
}

fn add_tool_choice(body: &mut Map<String, Value>, options: &TurnOptions) {
    let choice = match &options.tool_choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!("none")),
        ToolChoice::Required => Some(json!("required")),
        ToolChoice::Tool(name) => Some(json!({"type": "function", "name": wire_name(name)})),
    };
    if let Some(choice) = choice {
        body.insert("tool_choice".to_owned(), choice);
    }
    if let Some(parallel) = options.parallel_calls {
        body.insert("parallel_tool_calls".to_owned(), json!(parallel));
    }
}

fn add_options(body: &mut Map<String, Value>, options: &TurnOptions) {
    let mut add = |name: &str, value: Value| drop(body.insert(name.to_owned(), value));
    match options.effort {
        None => {}
        Some(ReasoningEffort::None) => add("reasoning", json!({"effort": "none"})),
        Some(effort) => add("reasoning", json!({"effort": effort.name(), "summary": "auto"})),
    }
    if let Some(output) = &options.output_schema {
        let strict = strict_schema(&output.schema);
        let schema = strict.as_ref().unwrap_or(&output.schema);
        let name = wire_name(&output.name);
        add(
            "text",
            json!({"format": {
                "type": "json_schema", "name": name, "schema": schema, "strict": strict.is_some(),
            }}),
        );
    }
    if let Some(max_tokens) = options.max_tokens {
        add("max_output_tokens", json!(max_tokens));
    }
    if let Some(temperature) = options.temperature {
        add("temperature", json!(temperature));
    }
    if let Some(key) = &options.cache_key {
        add("prompt_cache_key", json!(key));
    }
    add("stream", json!(options.stream));
}

fn input(history: &ProviderHistory<'_>) -> Vec<Value> {
    let mut input = Vec::new();
    let mut calls: HashMap<&str, &Value> = HashMap::new();
    for message in history.messages() {
        match message {
            ChatMessage::User { content } => input.extend(user(content)),
            ChatMessage::Assistant(answer) => {
                let is_own = history.is_own(answer);
                let own = answer.calls().filter(|_| is_own);
                calls.extend(own.filter_map(|call| Some((call.id.as_str(), call.raw.as_ref()?))));
                input.extend(assistant(answer, history));
            }
            ChatMessage::ToolResults { results, content } => {
                for it in results {
                    let call = calls.get(it.call_id.as_str()).copied();
                    input.push(result(it, history.id(&it.call_id), call));
                }
                input.extend(user(content));
            }
        }
    }
    input
}

fn user(content: &[ContentPart]) -> Option<Value> {
    let content = match content {
        [] => return None,
        [ContentPart::Text { text }] => json!(text),
        parts => parts.iter().map(part).collect(),
    };
    Some(json!({"type": "message", "role": "user", "content": content}))
}

fn part(part: &ContentPart) -> Value {
    match part {
        ContentPart::Text { text } => json!({"type": "input_text", "text": text}),
        ContentPart::Image { media_type, data } => json!({
            "type": "input_image", "detail": "auto", "image_url": format!("data:{media_type};base64,{data}"),
        }),
    }
}

fn assistant(answer: &AssistantMessage, history: &ProviderHistory<'_>) -> Vec<Value> {
    let is_own = history.is_own(answer);
    let item = |part: &AssistantPart| match part {
        AssistantPart::Text { raw: Some(raw), .. } if is_own => Some(raw.clone()),
        AssistantPart::Text { text, .. } if text.is_empty() => None,
        AssistantPart::Text { text, .. } => {
            Some(json!({"type": "message", "role": "assistant", "content": text}))
        }
        AssistantPart::ToolCall(call) => {
            let mut item = call.raw.clone().filter(|_| is_own).unwrap_or_else(|| neutral_call(call));
            set_field(&mut item, "call_id", json!(history.id(&call.id)));
            Some(item)
        }
        AssistantPart::Reasoning { raw, .. } => raw.clone(),
        AssistantPart::Opaque { raw } => Some(raw.clone()),
    };
    history.parts(answer).into_iter().filter_map(item).collect()
}

/// A call without anything that only its provider understands.
pub(super) fn neutral_call(call: &ToolCall) -> Value {
    json!({
        "type": "function_call",
        "call_id": call.wire_id.as_ref().unwrap_or(&call.id),
        "name": wire_name(&call.name),
        "arguments": call.arguments.to_text(),
    })
}
