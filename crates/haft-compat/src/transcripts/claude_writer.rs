//! Writing a transcript in Claude Code's form, so that `claude --resume` goes on with it.

use std::borrow::Cow;

use haft_tool::{Value, json};

use super::timestamp::rfc3339;
use super::{EntryBody, MessageRole, Transcript, TranscriptImage, TranscriptMessage};

/// The version that the lines name: the first whose form this is.
const CLAUDE_VERSION: &str = "2.1.0";
/// Letters of a project's name; longer ones get a hash in Claude Code, which Haft does not write.
const MAX_PROJECT_NAME_BYTES: usize = 200;

/// What the lines of a transcript have in common.
#[derive(Debug, Clone, Copy)]
pub struct ClaudeTranscriptHead<'a> {
    /// The session's id, which is a UUID and the name of the file.
    pub session: &'a str,
    /// The folder in which it goes on.
    pub cwd: &'a str,
}

/// The name of the folder in `projects` for a working directory: every character that is no letter or digit becomes `-`. `None` if it
/// would be longer than Claude Code keeps it.
pub fn claude_project_name(cwd: &str) -> Option<String> {
    let name: String = cwd.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    (name.len() <= MAX_PROJECT_NAME_BYTES).then_some(name)
}

/// The conversation as lines of Claude Code's transcripts.
pub fn write_claude_transcript(transcript: &Transcript, head: ClaudeTranscriptHead<'_>) -> String {
    let mut lines = String::new();
    let mut parent = Value::Null;
    let mut at = transcript.started_at.unwrap_or(0);
    let model = transcript.model.as_deref().unwrap_or("unknown");
    for (number, message) in (1_u64..).zip(transcript.messages()) {
        // A message without a time has that of the one before it.
        at = message.at.unwrap_or(at);
        let uuid = message_uuid(head.session, number);
        let (kind, body) = match message.role {
            MessageRole::User => ("user", json!({"role": "user", "content": user(&message)})),
            MessageRole::Assistant => ("assistant", assistant(&message, model, &uuid)),
        };
        let line = json!({
            "parentUuid": parent,
            "isSidechain": false,
            "userType": "external",
            "cwd": head.cwd,
            "sessionId": head.session,
            "version": CLAUDE_VERSION,
            "gitBranch": "",
            "type": kind,
            "message": body,
            "uuid": uuid,
            "timestamp": rfc3339(at),
        });
        lines.push_str(&line.to_string());
        lines.push('\n');
        parent = Value::String(uuid);
    }
    lines
}

/// The id of a message: that of the session, with the message's number at its end.
fn message_uuid(session: &str, number: u64) -> String {
    let stem = session.rsplit_once('-').map_or(session, |(stem, _)| stem);
    format!("{stem}-{number:012x}")
}

fn user(message: &TranscriptMessage<'_>) -> Value {
    if let [only] = message.parts.as_slice()
        && let EntryBody::User { text, images } = &**only
        && images.is_empty()
    {
        return json!(text);
    }
    Value::Array(message.parts.iter().flat_map(|part| user_blocks(part)).collect())
}

fn user_blocks(part: &EntryBody) -> Vec<Value> {
    match part {
        EntryBody::User { text, images } => {
            text_block(text).into_iter().chain(images.iter().map(image_block)).collect()
        }
        EntryBody::Notice { text } => text_block(text).into_iter().collect(),
        EntryBody::Result { call_id, text, images, is_error, .. } => {
            let content: Value = if images.is_empty() {
                json!(text)
            } else {
                text_block(text).into_iter().chain(images.iter().map(image_block)).collect()
            };
            let id = tool_use_id(call_id);
            vec![json!({"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error})]
        }
        _ => Vec::new(),
    }
}

fn assistant(message: &TranscriptMessage<'_>, model: &str, uuid: &str) -> Value {
    let block = |part: &Cow<'_, EntryBody>| match &**part {
        EntryBody::Assistant { text } => text_block(text),
        EntryBody::Call { id, name, arguments } => {
            let input = if arguments.is_object() { arguments.clone() } else { json!({ "input": arguments }) };
            Some(json!({"type": "tool_use", "id": tool_use_id(id), "name": tool_name(name), "input": input}))
        }
        _ => None,
    };
    let content: Vec<Value> = message.parts.iter().filter_map(block).collect();
    let has_calls = message.parts.iter().any(|part| matches!(**part, EntryBody::Call { .. }));
    json!({
        "id": format!("msg_{}", uuid.replace('-', "")),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": if has_calls { "tool_use" } else { "end_turn" },
        "stop_sequence": null,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    })
}

/// Anthropic refuses empty text blocks.
fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}))
}

fn image_block(image: &TranscriptImage) -> Value {
    json!({"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.data}})
}

/// The id with the letters that Anthropic accepts.
fn tool_use_id(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' }).collect()
}

/// The name with the letters and the length that Anthropic accepts.
fn tool_name(name: &str) -> String {
    const MAX_NAME_CHARS: usize = 64;
    tool_use_id(name).chars().take(MAX_NAME_CHARS).collect()
}
