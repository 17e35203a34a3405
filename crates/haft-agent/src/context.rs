//! How much of the model's context a conversation takes.

use haft_model::{AssistantPart, CallArguments, ChatMessage, ContentPart, Conversation};
use haft_tool::{Definition, Value};

use crate::RunState;

/// Tokens of a context that is not in the table.
const DEFAULT_WINDOW_TOKENS: u64 = 200_000;

/// Tokens of the context by the beginning of a model's name. The first match counts.
const WINDOWS: &[(&str, u64)] = &[
    ("claude-", 200_000),
    ("gemini-", 1_048_576),
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("gpt-5", 400_000),
    ("gpt-6", 400_000),
];

/// Bytes of text that a token stands for, in tenths.
const TOKEN_BYTES_TENTHS: usize = 35;
/// What an image counts, whatever the length of its base64.
const IMAGE_BYTES: usize = 6_000;

/// Tokens of a model's context, as far as they are known.
pub fn context_window(model: &str) -> u64 {
    // Routers put the vendor before the name.
    let name = model.rsplit('/').next().unwrap_or(model);
    let known = WINDOWS.iter().find(|(beginning, _)| name.starts_with(beginning));
    known.map_or(DEFAULT_WINDOW_TOKENS, |(_, tokens)| *tokens)
}

/// Tokens for so many bytes.
pub(crate) fn tokens_for(bytes: usize) -> u64 {
    bytes.saturating_mul(10).div_ceil(TOKEN_BYTES_TENTHS) as u64
}

/// Bytes for so many tokens.
pub(crate) fn bytes_for(tokens: u64) -> usize {
    usize::try_from(tokens).unwrap_or(usize::MAX).saturating_mul(TOKEN_BYTES_TENTHS) / 10
}

impl RunState {
    /// An estimate of the tokens of the conversation.
    pub fn context_tokens(&self) -> u64 {
        estimated_tokens(self, &[])
    }
}

/// An estimate of the tokens of the next request: what the provider counted for the last answer and what came since, else all bytes.
pub(crate) fn estimated_tokens(state: &RunState, tools: &[Definition]) -> u64 {
    let bytes = bytes_of(&state.conversation);
    match state.measured {
        Some((tokens, then)) if bytes >= then => tokens + tokens_for(bytes - then),
        Some((tokens, then)) => tokens.saturating_sub(tokens_for(then - bytes)),
        None => tokens_for(bytes + tools.iter().map(definition_bytes).sum::<usize>()),
    }
}

/// About how many bytes the conversation takes in a request.
pub(crate) fn bytes_of(conversation: &Conversation) -> usize {
    let system: usize = conversation.system.iter().map(String::len).sum();
    system + conversation.messages.iter().map(message_bytes).sum::<usize>()
}

/// About how many bytes a message takes.
pub(crate) fn message_bytes(message: &ChatMessage) -> usize {
    match message {
        ChatMessage::User { content } => content_bytes(content),
        ChatMessage::Assistant(answer) => answer.parts.iter().map(part_bytes).sum(),
        ChatMessage::ToolResults { results, content } => {
            results.iter().map(|result| content_bytes(&result.content)).sum::<usize>()
                + content_bytes(content)
        }
    }
}

/// About how many bytes a content takes.
pub(crate) fn content_bytes(content: &[ContentPart]) -> usize {
    let bytes = |part: &ContentPart| match part {
        ContentPart::Text { text } => text.len(),
        ContentPart::Image { .. } => IMAGE_BYTES,
    };
    content.iter().map(bytes).sum()
}

fn part_bytes(part: &AssistantPart) -> usize {
    let raw = |raw: &Option<Value>| raw.as_ref().map(value_bytes);
    match part {
        AssistantPart::Text { text, .. } => text.len(),
        AssistantPart::Reasoning { text, raw: form } => raw(form).unwrap_or(text.len()),
        AssistantPart::Opaque { raw } => value_bytes(raw),
        AssistantPart::ToolCall(call) => {
            let arguments = match &call.arguments {
                CallArguments::Object(object) => object.iter().map(|(k, v)| k.len() + value_bytes(v)).sum(),
                CallArguments::Invalid(text) => text.len(),
            };
            call.name.len() + arguments
        }
    }
}

fn definition_bytes(tool: &Definition) -> usize {
    tool.name.len() + tool.description.len() + value_bytes(&tool.input_schema)
}

/// About how many bytes a value takes as JSON, without writing it.
fn value_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 5,
        Value::String(text) => text.len() + 3,
        Value::Array(items) => items.iter().map(|item| value_bytes(item) + 1).sum::<usize>() + 2,
        Value::Object(members) => {
            members.iter().map(|(name, value)| name.len() + 4 + value_bytes(value)).sum::<usize>() + 2
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_found_by_the_beginning_of_the_name() {
        assert_eq!(context_window("claude-sonnet-5-5"), 200_000);
        assert_eq!(context_window("openai/gpt-4.1-mini"), 1_047_576);
        assert_eq!(context_window("qwen3"), DEFAULT_WINDOW_TOKENS);
        assert_eq!((tokens_for(35), tokens_for(36), bytes_for(10)), (10, 11, 35));
    }
}
