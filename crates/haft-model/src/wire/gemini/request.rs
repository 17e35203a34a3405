//! Requests.

use haft_tool::{Definition, Value, json};
use serde_json::Map;

use super::super::WireOptions;
use super::super::history::ProviderHistory;
use super::super::message::set_field;
use crate::schema::{openapi_schema, wire_name};
use crate::{
    AssistantMessage, AssistantPart, ChatMessage, ContentPart, ReasoningEffort, ToolCall, ToolChoice,
    ToolResult, TurnOptions, TurnRequest,
};

/// The documented signature for calls that another model made. Without one, the first call of a turn is refused.
const FOREIGN_SIGNATURE: &str = "skip_thought_signature_validator";

pub(in super::super) fn encode(
    request: &TurnRequest<'_>,
    history: &ProviderHistory<'_>,
    wire: &WireOptions,
) -> Value {
    let options = request.options;
    let mut body = Map::new();
    let system: Vec<Value> = history.system().map(|section| json!({"text": section})).collect();
    if !system.is_empty() {
        body.insert("systemInstruction".to_owned(), json!({"parts": system}));
    }
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), tools(request.tools, wire));
        if let Some(config) = tool_config(options) {
            body.insert("toolConfig".to_owned(), json!({"functionCallingConfig": config}));
        }
    }
    body.insert("contents".to_owned(), Value::Array(contents(history)));
    let config = generation_config(options);
    if !config.is_empty() {
        body.insert("generationConfig".to_owned(), Value::Object(config));
    }
    Value::Object(body)
}

/// The definitions of tools.
pub(in super::super) fn tools(definitions: &[Definition], wire: &WireOptions) -> Value {
    let tool = |tool: &Definition| {
        let mut declaration = json!({"name": wire_name(&tool.name), "description": tool.description});
        let (field, schema) = if wire.gemini_openapi {
            ("parameters", openapi_schema(&tool.input_schema))
        } else {
            ("parametersJsonSchema", tool.input_schema.clone())
        };
        set_field(&mut declaration, field, schema);
        declaration
    };
    json!([{"functionDeclarations": definitions.iter().map(tool).collect::<Vec<_>>()}])
}

/// One result. The id is left out for servers that send none.
pub(in super::super) fn result(result: &ToolResult, id: Option<&str>) -> Value {
    let texts = result.content.iter().filter_map(|part| match part {
        ContentPart::Text { text } => Some(text.as_str()),
        ContentPart::Image { .. } => None,
    });
    let images = result.content.iter().filter_map(|part| match part {
        ContentPart::Image { media_type, data } => Some(inline(media_type, data)),
        ContentPart::Text { .. } => None,
    });
    let key = if result.is_error { "error" } else { "output" };
    let mut response = Map::new();
    if let Some(id) = id {
        response.insert("id".to_owned(), json!(id));
    }
    response.insert("name".to_owned(), json!(wire_name(&result.name)));
    response.insert("response".to_owned(), json!({key: texts.collect::<String>()}));
    let images: Vec<Value> = images.collect();
    if !images.is_empty() {
        response.insert("parts".to_owned(), Value::Array(images));
    }
    json!({"functionResponse": response})
}

fn tool_config(options: &TurnOptions) -> Option<Value> {
    match &options.tool_choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!({"mode": "NONE"})),
        ToolChoice::Required => Some(json!({"mode": "ANY"})),
        ToolChoice::Tool(name) => Some(json!({"mode": "ANY", "allowedFunctionNames": [wire_name(name)]})),
    }
}

fn generation_config(options: &TurnOptions) -> Map<String, Value> {
    let mut config = Map::new();
    if let Some(max_tokens) = options.max_tokens {
        config.insert("maxOutputTokens".to_owned(), json!(max_tokens));
    }
    if let Some(temperature) = options.temperature {
        config.insert("temperature".to_owned(), json!(temperature));
    }
    if let Some(effort) = options.effort {
        let level = match effort {
            ReasoningEffort::None | ReasoningEffort::Minimal => "MINIMAL",
            ReasoningEffort::Low => "LOW",
            ReasoningEffort::Medium => "MEDIUM",
            ReasoningEffort::High | ReasoningEffort::XHigh | ReasoningEffort::Max => "HIGH",
        };
        config.insert("thinkingConfig".to_owned(), json!({"thinkingLevel": level, "includeThoughts": true}));
    }
    if let Some(output) = &options.output_schema {
        config.insert("responseMimeType".to_owned(), json!("application/json"));
        config.insert("responseJsonSchema".to_owned(), output.schema.clone());
    }
    config
}

fn contents(history: &ProviderHistory<'_>) -> Vec<Value> {
    let mut contents: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in history.messages() {
        let (role, parts): (_, Vec<Value>) = match message {
            ChatMessage::User { content } => ("user", content.iter().map(part).collect()),
            ChatMessage::Assistant(answer) => ("model", assistant(answer, history)),
            ChatMessage::ToolResults { results, content } => {
                let results = results.iter().map(|it| result(it, history.known_id(&it.call_id)));
                ("user", results.chain(content.iter().map(part)).collect())
            }
        };
        match contents.last_mut() {
            _ if parts.is_empty() => {}
            Some((last, known)) if *last == role => known.extend(parts),
            _ => contents.push((role, parts)),
        }
    }
    contents.into_iter().map(|(role, parts)| json!({"role": role, "parts": parts})).collect()
}

fn part(part: &ContentPart) -> Value {
    match part {
        ContentPart::Text { text } => json!({"text": text}),
        ContentPart::Image { media_type, data } => inline(media_type, data),
    }
}

fn inline(media_type: &str, data: &str) -> Value {
    json!({"inlineData": {"mimeType": media_type, "data": data}})
}

fn assistant(answer: &AssistantMessage, history: &ProviderHistory<'_>) -> Vec<Value> {
    let is_own = history.is_own(answer);
    let mut needs_signature = !is_own;
    let mut part = |part: &AssistantPart| match part {
        AssistantPart::Text { raw: Some(raw), .. } if is_own => Some(raw.clone()),
        AssistantPart::Text { text, .. } if text.is_empty() => None,
        AssistantPart::Text { text, .. } => Some(json!({"text": text})),
        AssistantPart::ToolCall(call) => {
            let known_id = history.known_id(&call.id);
            let mut part =
                call.raw.clone().filter(|_| is_own).unwrap_or_else(|| neutral_call(call, known_id));
            if let (Some(id), Some(function)) = (known_id, part.get_mut("functionCall")) {
                set_field(function, "id", json!(id));
            }
            if std::mem::take(&mut needs_signature) {
                set_field(&mut part, "thoughtSignature", json!(FOREIGN_SIGNATURE));
            }
            Some(part)
        }
        AssistantPart::Reasoning { raw: Some(raw), .. } | AssistantPart::Opaque { raw } => Some(raw.clone()),
        AssistantPart::Reasoning { text, .. } => Some(json!({"text": text, "thought": true})),
    };
    history.parts(answer).into_iter().filter_map(&mut part).collect()
}

/// A call without anything that only its provider understands.
pub(super) fn neutral_call(call: &ToolCall, id: Option<&str>) -> Value {
    let mut function = json!({"name": wire_name(&call.name), "args": call.arguments.to_object()});
    if let Some(id) = id {
        set_field(&mut function, "id", json!(id));
    }
    json!({"functionCall": function})
}
