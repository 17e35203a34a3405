//! Requests.

use haft_tool::{Definition, Value, json};
use serde_json::Map;

use super::super::WireOptions;
use super::super::history::ProviderHistory;
use super::super::message::set_field;
use super::ChatVariant;
use crate::schema::{strict_schema, wire_name};
use crate::{
    AssistantMessage, AssistantPart, CallArguments, ChatMessage, ContentPart, ToolCall, ToolChoice,
    ToolResult, TurnOptions, TurnRequest,
};

/// The field of an OpenAI message that its own API takes back; the others only describe the answer.
const OPENAI_FIELD: &str = "refusal";
/// Describes the answer on every server.
const ANSWER_FIELD: &str = "annotations";

pub(in super::super) fn encode(
    request: &TurnRequest<'_>,
    history: &ProviderHistory<'_>,
    wire: &WireOptions,
    model: &str,
) -> Value {
    let options = request.options;
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), tools(request.tools, wire));
        add_tool_choice(&mut body, options);
    }
    body.insert("messages".to_owned(), Value::Array(messages(history, wire.chat)));
    add_options(&mut body, options, wire.chat);
    Value::Object(body)
}

/// The definitions of tools.
pub(in super::super) fn tools(definitions: &[Definition], wire: &WireOptions) -> Value {
    let tool = |tool: &Definition| {
        let strict = wire.strict_tools.then(|| strict_schema(&tool.input_schema)).flatten();
        let mut function = json!({
            "name": wire_name(&tool.name),
            "description": tool.description,
            "parameters": strict.as_ref().unwrap_or(&tool.input_schema),
        });
        if strict.is_some() {
            function["strict"] = json!(true);
        }
        json!({"type": "function", "function": function})
    };
    Value::Array(definitions.iter().map(tool).collect())
}

/// One result.
pub(in super::super) fn result(result: &ToolResult, id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": result.flagged_text()})
}

fn add_tool_choice(body: &mut Map<String, Value>, options: &TurnOptions) {
    let choice = match &options.tool_choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!("none")),
        ToolChoice::Required => Some(json!("required")),
        ToolChoice::Tool(name) => Some(json!({"type": "function", "function": {"name": wire_name(name)}})),
    };
    if let Some(choice) = choice {
        body.insert("tool_choice".to_owned(), choice);
    }
    if let Some(parallel) = options.parallel_calls {
        body.insert("parallel_tool_calls".to_owned(), json!(parallel));
    }
}

fn add_options(body: &mut Map<String, Value>, options: &TurnOptions, variant: ChatVariant) {
    let mut add = |name: &str, value: Value| drop(body.insert(name.to_owned(), value));
    if let Some(max_tokens) = options.max_tokens {
        let name = if variant == ChatVariant::Openai { "max_completion_tokens" } else { "max_tokens" };
        add(name, json!(max_tokens));
    }
    if let Some(temperature) = options.temperature {
        add("temperature", json!(temperature));
    }
    if let Some(effort) = options.effort {
        match variant {
            ChatVariant::Openrouter => add("reasoning", json!({"effort": effort.name()})),
            _ => add("reasoning_effort", json!(effort.name())),
        }
    }
    if let Some(output) = &options.output_schema {
        let strict = strict_schema(&output.schema);
        let schema = strict.as_ref().unwrap_or(&output.schema);
        add(
            "response_format",
            json!({"type": "json_schema", "json_schema": {
                "name": wire_name(&output.name), "schema": schema, "strict": strict.is_some(),
            }}),
        );
    }
    if let Some(key) = options.cache_key.as_ref().filter(|_| variant == ChatVariant::Openai) {
        add("prompt_cache_key", json!(key));
    }
    if options.stream {
        add("stream", json!(true));
        add("stream_options", json!({"include_usage": true}));
    } else {
        add("stream", json!(false));
    }
}

fn messages(history: &ProviderHistory<'_>, variant: ChatVariant) -> Vec<Value> {
    let mut messages = Vec::new();
    let system = history.system_text();
    if !system.is_empty() {
        messages.push(json!({"role": "system", "content": system}));
    }
    for message in history.messages() {
        match message {
            ChatMessage::User { content } => messages.extend(user(content)),
            ChatMessage::Assistant(answer) => messages.extend(assistant(answer, history, variant)),
            ChatMessage::ToolResults { results, content } => {
                messages.extend(results.iter().map(|it| result(it, history.id(&it.call_id))));
                // A tool's message holds text only, so images follow as the user's.
                let mut shown: Vec<ContentPart> = Vec::new();
                for result in results {
                    let is_image = |part: &&ContentPart| matches!(part, ContentPart::Image { .. });
                    let images: Vec<_> = result.content.iter().filter(is_image).cloned().collect();
                    if !images.is_empty() {
                        let id = history.id(&result.call_id);
                        shown.push(ContentPart::text(format!("Images of the result of {id}:")));
                        shown.extend(images);
                    }
                }
                shown.extend(content.iter().cloned());
                messages.extend(user(&shown));
            }
        }
    }
    messages
}

/// A message of the user; none if it says nothing.
fn user(content: &[ContentPart]) -> Option<Value> {
    let content = match content {
        [] => return None,
        [ContentPart::Text { text }] => json!(text),
        parts => parts.iter().map(part).collect(),
    };
    Some(json!({"role": "user", "content": content}))
}

fn part(part: &ContentPart) -> Value {
    match part {
        ContentPart::Text { text } => json!({"type": "text", "text": text}),
        ContentPart::Image { media_type, data } => {
            json!({"type": "image_url", "image_url": {"url": format!("data:{media_type};base64,{data}")}})
        }
    }
}

fn assistant(
    answer: &AssistantMessage,
    history: &ProviderHistory<'_>,
    variant: ChatVariant,
) -> Option<Value> {
    let parts = history.parts(answer);
    let text: String = parts
        .iter()
        .filter_map(|part| match part {
            AssistantPart::Text { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let calls: Vec<Value> =
        parts.iter().filter_map(|part| Some(call(part.as_call()?, history, answer, variant))).collect();
    let mut message = Map::new();
    message.insert("role".to_owned(), json!("assistant"));
    message.insert("content".to_owned(), if text.is_empty() { Value::Null } else { json!(text) });
    if history.is_own(answer) {
        let is_sent = |field: &str| match variant {
            ChatVariant::Openai => field == OPENAI_FIELD,
            _ => field != ANSWER_FIELD,
        };
        let fields = answer.raw.iter().filter(|(field, _)| is_sent(field));
        message.extend(fields.map(|(field, value)| (field.clone(), value.clone())));
    }
    let has_more = message.len() > 2;
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), Value::Array(calls));
    } else if text.is_empty() && !has_more {
        return None;
    } else if text.is_empty() && !message.contains_key(OPENAI_FIELD) {
        // Without calls, content has to be a text.
        message.insert("content".to_owned(), json!(""));
    }
    Some(Value::Object(message))
}

fn call(
    call: &ToolCall,
    history: &ProviderHistory<'_>,
    answer: &AssistantMessage,
    variant: ChatVariant,
) -> Value {
    // OpenAI takes any text back; other servers parse it and fail on what is no JSON.
    let is_safe = variant == ChatVariant::Openai || matches!(call.arguments, CallArguments::Object(_));
    let own = call.raw.as_ref().filter(|_| history.is_own(answer) && is_safe);
    let mut sent = own.cloned().unwrap_or_else(|| neutral_call(call));
    set_field(&mut sent, "id", json!(history.id(&call.id)));
    sent
}

/// A call without anything that only its provider understands.
pub(super) fn neutral_call(call: &ToolCall) -> Value {
    json!({
        "id": call.wire_id.as_ref().unwrap_or(&call.id),
        "type": "function",
        "function": {"name": wire_name(&call.name), "arguments": call.arguments.to_text()},
    })
}
