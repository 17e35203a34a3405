//! Requests.

use haft_tool::{Definition, Value, json};
use serde_json::Map;

use super::super::WireOptions;
use super::super::history::ProviderHistory;
use super::super::message::set_field;
use super::OLD_ANTHROPIC_VERSION;
use crate::schema::wire_name;
use crate::{
    AssistantMessage, AssistantPart, ChatMessage, ContentPart, ReasoningEffort, ToolCall, ToolChoice,
    ToolResult, TurnOptions, TurnRequest,
};

/// The limit of an answer if the caller sets none: the format requires one.
const DEFAULT_MAX_TOKENS: u32 = 16_000;
/// Fields that the current version refuses with any value.
const REMOVED_FIELDS: &[&str] = &[TEMPERATURE, "top_p", "top_k"];
const TEMPERATURE: &str = "temperature";

/// Fields of the body that a request in this version must not have.
pub(in super::super) fn refused_fields(wire: &WireOptions) -> &'static [&'static str] {
    // Versions are dates.
    if wire.anthropic_version.as_str() > OLD_ANTHROPIC_VERSION { REMOVED_FIELDS } else { &[] }
}

pub(in super::super) fn encode(
    request: &TurnRequest<'_>,
    history: &ProviderHistory<'_>,
    wire: &WireOptions,
    model: &str,
) -> Value {
    let options = request.options;
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    body.insert("max_tokens".to_owned(), json!(options.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS)));
    let mut system: Vec<Value> =
        history.system().map(|section| json!({"type": "text", "text": section})).collect();
    let mut tools = tools(request.tools);
    // The prefix of tools and stable instructions ends here.
    match (system.first_mut(), tools.as_array_mut().and_then(|tools| tools.last_mut())) {
        (Some(stable), _) => mark(stable),
        (None, Some(last)) => mark(last),
        (None, None) => {}
    }
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), tools);
        add_tool_choice(&mut body, options);
    }
    if !system.is_empty() {
        body.insert("system".to_owned(), Value::Array(system));
    }
    let mut messages = messages(history);
    if let Some(last) = messages.last_mut().filter(|last| last["role"] == "user")
        && let Some(block) = last["content"].as_array_mut().and_then(|blocks| blocks.last_mut())
    {
        mark(block);
    }
    body.insert("messages".to_owned(), Value::Array(messages));
    if let Some(container) = container(history) {
        body.insert("container".to_owned(), container);
    }
    if let Some(temperature) = options.temperature.filter(|_| !refused_fields(wire).contains(&TEMPERATURE)) {
        body.insert(TEMPERATURE.to_owned(), json!(temperature));
    }
    add_options(&mut body, options);
    Value::Object(body)
}

/// Marks the end of a prefix that is cached.
fn mark(block: &mut Value) {
    set_field(block, "cache_control", json!({"type": "ephemeral"}));
}

/// The definitions of tools.
pub(in super::super) fn tools(definitions: &[Definition]) -> Value {
    let tool = |tool: &Definition| {
        json!({
            "name": wire_name(&tool.name),
            "description": tool.description,
            "input_schema": tool.input_schema,
        })
    };
    Value::Array(definitions.iter().map(tool).collect())
}

/// One result.
pub(in super::super) fn result(result: &ToolResult, id: &str) -> Value {
    let content: Vec<Value> = result.content.iter().filter_map(block).collect();
    json!({"type": "tool_result", "tool_use_id": id, "content": content, "is_error": result.is_error})
}

fn add_tool_choice(body: &mut Map<String, Value>, options: &TurnOptions) {
    let mut choice = match &options.tool_choice {
        ToolChoice::Auto => json!({"type": "auto"}),
        ToolChoice::None => json!({"type": "none"}),
        ToolChoice::Required => json!({"type": "any"}),
        ToolChoice::Tool(name) => json!({"type": "tool", "name": wire_name(name)}),
    };
    if options.parallel_calls == Some(false) && options.tool_choice != ToolChoice::None {
        choice["disable_parallel_tool_use"] = json!(true);
    } else if options.tool_choice == ToolChoice::Auto {
        return;
    }
    body.insert("tool_choice".to_owned(), choice);
}

fn add_options(body: &mut Map<String, Value>, options: &TurnOptions) {
    let mut output = Map::new();
    if let Some(effort) = options.effort {
        let level = match effort {
            ReasoningEffort::None => None,
            ReasoningEffort::Minimal | ReasoningEffort::Low => Some("low"),
            other => Some(other.name()),
        };
        let thinking = if level.is_some() { "adaptive" } else { "disabled" };
        body.insert("thinking".to_owned(), json!({"type": thinking}));
        output.extend(level.map(|level| ("effort".to_owned(), json!(level))));
    }
    if let Some(schema) = &options.output_schema {
        output.insert("format".to_owned(), json!({"type": "json_schema", "schema": schema.schema}));
    }
    if !output.is_empty() {
        body.insert("output_config".to_owned(), Value::Object(output));
    }
    body.insert("stream".to_owned(), json!(options.stream));
}

/// The container of the last answer that had one.
fn container(history: &ProviderHistory<'_>) -> Option<Value> {
    history.messages().iter().rev().find_map(|message| match message {
        ChatMessage::Assistant(answer) if history.is_own(answer) => {
            answer.raw.get("container")?.get("id").cloned()
        }
        _ => None,
    })
}

fn messages(history: &ProviderHistory<'_>) -> Vec<Value> {
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in history.messages() {
        let (role, blocks) = match message {
            ChatMessage::User { content } => ("user", content.iter().filter_map(block).collect()),
            ChatMessage::Assistant(answer) => ("assistant", assistant(answer, history)),
            ChatMessage::ToolResults { results, content } => {
                // Results come first, in one message.
                let results = results.iter().map(|it| result(it, history.id(&it.call_id)));
                ("user", results.chain(content.iter().filter_map(block)).collect::<Vec<_>>())
            }
        };
        match messages.last_mut() {
            _ if blocks.is_empty() => {}
            Some((last, known)) if *last == role => known.extend(blocks),
            _ => messages.push((role, blocks)),
        }
    }
    messages.into_iter().map(|(role, blocks)| json!({"role": role, "content": blocks})).collect()
}

/// A block of the user. Empty texts are refused.
fn block(part: &ContentPart) -> Option<Value> {
    match part {
        ContentPart::Text { text } if text.trim().is_empty() => None,
        ContentPart::Text { text } => Some(json!({"type": "text", "text": text})),
        ContentPart::Image { media_type, data } => Some(json!({
            "type": "image", "source": {"type": "base64", "media_type": media_type, "data": data},
        })),
    }
}

fn assistant(answer: &AssistantMessage, history: &ProviderHistory<'_>) -> Vec<Value> {
    let is_own = history.is_own(answer);
    let mut parts = history.parts(answer);
    // An answer that was cut off while it thought must not end with that.
    while matches!(parts.last(), Some(AssistantPart::Reasoning { .. })) {
        parts.pop();
    }
    let block = |part: &AssistantPart| match part {
        AssistantPart::Text { raw: Some(raw), .. } if is_own => Some(raw.clone()),
        AssistantPart::Text { text, .. } if text.trim().is_empty() => None,
        AssistantPart::Text { text, .. } => Some(json!({"type": "text", "text": text})),
        AssistantPart::ToolCall(call) => {
            let mut block = call.raw.clone().filter(|_| is_own).unwrap_or_else(|| neutral_call(call));
            set_field(&mut block, "id", json!(history.id(&call.id)));
            Some(block)
        }
        AssistantPart::Reasoning { raw, .. } => raw.clone(),
        AssistantPart::Opaque { raw } => Some(raw.clone()),
    };
    parts.into_iter().filter_map(block).collect()
}

/// A call without anything that only its provider understands.
pub(super) fn neutral_call(call: &ToolCall) -> Value {
    json!({
        "type": "tool_use",
        "id": call.wire_id.as_ref().unwrap_or(&call.id),
        "name": wire_name(&call.name),
        "input": call.arguments.to_object(),
    })
}
