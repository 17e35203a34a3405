//! Items of an answer and what they become.

use haft_tool::Value;

use super::super::message::{MessageBuilder, WireCall, text_of};
use super::request::neutral_call;
use crate::{AssistantPart, CallArguments};

/// The part that a finished item becomes. A call has the id `call_id`.
pub(super) fn part(item: Value, call_id: Option<String>, builder: &MessageBuilder) -> AssistantPart {
    match (text_of(&item, "type"), call_id) {
        ("message", _) => AssistantPart::Text { text: message_text(&item, "output_text"), raw: Some(item) },
        ("reasoning", _) => AssistantPart::Reasoning { text: reasoning_text(&item), raw: Some(item) },
        ("function_call", Some(id)) => {
            let received = WireCall {
                id,
                wire_id: Some(text_of(&item, "call_id").to_owned()).filter(|id| !id.is_empty()),
                wire_name: text_of(&item, "name").to_owned(),
                arguments: match item.get("arguments") {
                    Some(Value::String(text)) => CallArguments::parse(text),
                    other => CallArguments::from_value(other.cloned().unwrap_or_default()),
                },
            };
            AssistantPart::ToolCall(builder.call(received, item, neutral_call))
        }
        _ => AssistantPart::Opaque { raw: item },
    }
}

/// The text of a message's parts of one type.
pub(super) fn message_text(item: &Value, kind: &str) -> String {
    let field = if kind == "refusal" { "refusal" } else { "text" };
    let parts = item.get("content").and_then(Value::as_array).into_iter().flatten();
    parts.filter(|part| text_of(part, "type") == kind).map(|part| text_of(part, field)).collect()
}

/// The summary, or the reasoning itself where that is shown.
fn reasoning_text(item: &Value) -> String {
    let texts = |field: &str| {
        let parts = item.get(field).and_then(Value::as_array).into_iter().flatten();
        parts
            .map(|part| text_of(part, "text"))
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join("\n\n")
    };
    let summary = texts("summary");
    if summary.is_empty() { texts("content") } else { summary }
}

/// Whether an item is a call that may be run: a call that was cut off is not complete.
pub(super) fn is_complete_call(item: &Value) -> bool {
    text_of(item, "type") == "function_call" && matches!(text_of(item, "status"), "" | "completed")
}

/// Leaves out what a response that was cut off must not contain: calls, and reasoning whose following item is missing, which
/// the provider refuses.
pub(super) fn without_calls(parts: Vec<AssistantPart>) -> Vec<AssistantPart> {
    let kept = parts.into_iter().filter(|part| part.as_call().is_none()).collect();
    without_dangling_reasoning(kept)
}

/// Leaves out reasoning that no item of the provider follows.
pub(super) fn without_dangling_reasoning(parts: Vec<AssistantPart>) -> Vec<AssistantPart> {
    let is_followed = |at: usize| {
        parts.iter().skip(at + 1).find_map(|part| match part {
            AssistantPart::Reasoning { .. } => None,
            AssistantPart::Text { raw, .. } => Some(raw.is_some()),
            AssistantPart::ToolCall(_) | AssistantPart::Opaque { .. } => Some(true),
        }) == Some(true)
    };
    let keep: Vec<bool> = parts
        .iter()
        .enumerate()
        .map(|(at, part)| !matches!(part, AssistantPart::Reasoning { .. }) || is_followed(at))
        .collect();
    parts.into_iter().zip(keep).filter_map(|(part, keep)| keep.then_some(part)).collect()
}
