//! The messages that are made from what happens in a run.

use haft_agent::{RunStop, TurnReport};
use haft_model::{AssistantPart, CallArguments, ContentPart, ModelStop, TokenUsage, ToolCall, ToolResult};
use haft_tool::{Value, json};

/// The version of Claude Code whose stream this is.
pub(in crate::cli) const CLAUDE_VERSION: &str = "2.1.325";

/// Tokens in Claude Code's words, and in Haft's.
pub(super) fn usage(usage: &TokenUsage) -> Value {
    json!({
        "input_tokens": usage.input, "output_tokens": usage.output,
        "cache_read_input_tokens": usage.cache_read, "cache_creation_input_tokens": usage.cache_write,
        "input": usage.input, "output": usage.output, "cache_read": usage.cache_read,
        "cache_write": usage.cache_write, "reasoning": usage.reasoning,
    })
}

/// The arguments of a call as an object.
pub(super) fn arguments(call: &ToolCall) -> Value {
    match &call.arguments {
        CallArguments::Object(object) => Value::Object(object.clone()),
        CallArguments::Invalid(text) => json!({ "unreadable": text }),
    }
}

/// The block of a part of an answer; nothing for parts that only their provider understands.
pub(super) fn block(part: &AssistantPart) -> Option<Value> {
    match part {
        AssistantPart::Text { text, .. } if text.is_empty() => None,
        AssistantPart::Text { text, .. } => Some(json!({"type": "text", "text": text})),
        AssistantPart::Reasoning { text, raw } => {
            let signature = raw.as_ref().and_then(|raw| raw["signature"].as_str()).unwrap_or_default();
            (!text.is_empty() || !signature.is_empty())
                .then(|| json!({"type": "thinking", "thinking": text, "signature": signature}))
        }
        AssistantPart::ToolCall(call) => Some(call_block(call)),
        AssistantPart::Opaque { .. } => None,
    }
}

/// The block of a call.
pub(super) fn call_block(call: &ToolCall) -> Value {
    json!({"type": "tool_use", "id": call.id, "name": call.name, "input": arguments(call)})
}

/// The line of one block of an answer.
pub(super) fn assistant(message_id: &str, model: &str, block: &Value, used: &TokenUsage) -> Value {
    json!({
        "type": "assistant",
        "message": {
            "id": message_id, "type": "message", "role": "assistant", "model": model, "content": [block],
            "stop_reason": null, "stop_sequence": null, "usage": usage(used),
        },
        "parent_tool_use_id": null,
    })
}

/// The content of a result.
pub(super) fn result_content(result: &ToolResult) -> Value {
    let is_text = |part: &ContentPart| matches!(part, ContentPart::Text { .. });
    if result.content.iter().all(is_text) {
        return result.text().into();
    }
    result.content.iter().map(content_block).collect()
}

/// The block of a text or an image.
pub(super) fn content_block(part: &ContentPart) -> Value {
    match part {
        ContentPart::Text { text } => json!({"type": "text", "text": text}),
        ContentPart::Image { media_type, data } => {
            json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}})
        }
    }
}

/// Why an answer ended, in the words of Anthropic's API.
pub(super) fn stop_word(stop: &ModelStop, has_calls: bool) -> &'static str {
    match stop {
        _ if has_calls => "tool_use",
        ModelStop::Length => "max_tokens",
        ModelStop::ContextFull => "model_context_window_exceeded",
        ModelStop::Paused => "pause_turn",
        ModelStop::Refused { .. } => "refusal",
        _ => "end_turn",
    }
}

/// The kind of a result.
pub(super) fn result_subtype(stop: &RunStop) -> &'static str {
    match stop {
        // A failure of the provider has this subtype, too, with `is_error`.
        RunStop::Done | RunStop::Failed { .. } | RunStop::Refused { .. } => "success",
        RunStop::MaxTurns { .. } => "error_max_turns",
        RunStop::MaxBudget { .. } => "error_max_budget_usd",
        RunStop::SchemaMismatch { .. } => "error_max_structured_output_retries",
        _ => "error_during_execution",
    }
}

/// Why a turn ended, for readers that show it.
pub(super) fn terminal_reason(stop: &RunStop) -> &'static str {
    match stop {
        RunStop::Done => "completed",
        RunStop::MaxTurns { .. } => "max_turns",
        RunStop::MaxBudget { .. } => "budget_exhausted",
        RunStop::Interrupted | RunStop::Timeout { .. } => "aborted_streaming",
        RunStop::Refused { .. } | RunStop::Unfinished { .. } => "model_error",
        RunStop::SchemaMismatch { .. } => "structured_output_retry_exhausted",
        RunStop::Hook { .. } => "hook_stopped",
        _ => "api_error",
    }
}

/// What the result says: the answer, or why there is none.
pub(super) fn result_text(report: &TurnReport) -> String {
    match report.stop {
        RunStop::Failed { .. } | RunStop::Refused { .. } => report.stop.explanation().unwrap_or_default(),
        _ => report.text.clone(),
    }
}
