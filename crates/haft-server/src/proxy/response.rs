//! A model's answer in the form that clients get.

use haft_model::{CallArguments, ModelResponse, ModelStop, ToolCall};
use haft_tool::{Value, json};
use serde_json::Map;

/// The answer, with notes for the client.
pub(super) fn answer(response: &ModelResponse, mut notes: Vec<String>) -> Value {
    let message = &response.message;
    let calls: Vec<Value> = message
        .calls()
        .map(|call| {
            json!({"id": call.id, "tool_name": call.name, "arguments_json": arguments(&call.arguments)})
        })
        .collect();
    if let ModelStop::Refused { explanation } | ModelStop::InvalidCall { explanation } = &response.stop
        && !explanation.is_empty()
    {
        notes.push(explanation.clone());
    }
    let mut answer = Map::new();
    answer.insert("message".to_owned(), json!({"role": "assistant", "content": message.text()}));
    let finish_reason = finish_reason(&response.stop, !calls.is_empty());
    answer.insert("tool_calls".to_owned(), Value::Array(calls));
    let usage = &response.usage;
    answer
        .insert("usage".to_owned(), json!({"input_tokens": usage.context(), "output_tokens": usage.output}));
    answer.insert("finish_reason".to_owned(), json!(finish_reason));
    if !notes.is_empty() {
        answer.insert("notes".to_owned(), json!(notes));
    }
    Value::Object(answer)
}

/// A call in a stream. Its arguments are one fragment, because only complete ones are known to be usable.
pub(super) fn call_delta(call: &ToolCall) -> Value {
    let fragment = match &call.arguments {
        CallArguments::Object(object) => json!(object).to_string(),
        CallArguments::Invalid(text) => text.clone(),
    };
    json!({
        "type": "tool_call_delta",
        "call_id": call.id,
        "tool_name": call.name,
        "arguments_fragment": fragment,
    })
}

/// The arguments of a call; text that is not a JSON object is passed on as text.
fn arguments(arguments: &CallArguments) -> Value {
    match arguments {
        CallArguments::Object(object) => Value::Object(object.clone()),
        CallArguments::Invalid(text) => Value::String(text.clone()),
    }
}

fn finish_reason(stop: &ModelStop, has_calls: bool) -> &str {
    match stop {
        ModelStop::End if has_calls => "tool_calls",
        ModelStop::End => "stop",
        ModelStop::Length | ModelStop::ContextFull => "length",
        ModelStop::Paused => "pause",
        ModelStop::Refused { .. } => "content_filter",
        ModelStop::InvalidCall { .. } => "invalid_tool_call",
        ModelStop::Other { name } => name,
        _ => "other",
    }
}
