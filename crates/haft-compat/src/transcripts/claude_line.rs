//! One line of Claude Code's transcripts.

use haft_tool::Value;

use super::json_lines::{add_line, image, owned, text_of};
use super::transcript::bounded_arguments;
use super::{EntryBody, TranscriptImage};

/// How texts begin that the program wrote in the user's place.
const PROGRAM_TEXTS: [&str; 5] =
    ["<command-name>", "<command-message>", "<local-command-", "<bash-", "<task-notification>"];

/// What a line says of its place in the conversation.
#[derive(Debug, Default)]
pub(super) struct LineMark {
    pub(super) uuid: Option<String>,
    pub(super) parent: Option<String>,
    /// The id of the answer that the line is a part of.
    pub(super) message_id: Option<String>,
    pub(super) is_message: bool,
    pub(super) is_sidechain: bool,
}

impl LineMark {
    pub(super) fn of(line: &Value) -> Self {
        let message = line.get("message");
        Self {
            uuid: owned(line, "uuid"),
            parent: owned(line, "parentUuid"),
            message_id: message.and_then(|message| owned(message, "id")),
            is_message: matches!(text_of(line, "type"), "user" | "assistant"),
            is_sidechain: flag(line, "isSidechain"),
        }
    }
}

/// What a line of type `user` or `assistant` says; `None` if it has no message.
pub(super) fn bodies(line: &Value) -> Option<Vec<EntryBody>> {
    let message = line.get("message").filter(|message| message.is_object())?;
    let content = message.get("content")?;
    if text_of(line, "type") == "user" { user(line, content) } else { assistant(line, content) }
}

pub(super) fn flag(line: &Value, field: &str) -> bool {
    line.get(field) == Some(&Value::Bool(true))
}

fn user(line: &Value, content: &Value) -> Option<Vec<EntryBody>> {
    let is_programs = |text: &str| {
        flag(line, "isMeta")
            || flag(line, "isCompactSummary")
            || PROGRAM_TEXTS.iter().any(|start| text.starts_with(start))
    };
    let said = |text: String, images: Vec<TranscriptImage>| {
        if is_programs(&text) { EntryBody::Notice { text } } else { EntryBody::User { text, images } }
    };
    if let Some(text) = content.as_str() {
        return Some(vec![said(text.to_owned(), Vec::new())]);
    }
    let (mut results, mut text, mut images) = (Vec::new(), String::new(), Vec::new());
    for block in content.as_array()? {
        match text_of(block, "type") {
            "text" => add_line(&mut text, text_of(block, "text")),
            "image" => images.extend(image_of(block)),
            "tool_result" => results.push(result(block)),
            _ => {}
        }
    }
    if !text.is_empty() || !images.is_empty() {
        results.push(said(text, images));
    }
    Some(results)
}

fn assistant(line: &Value, content: &Value) -> Option<Vec<EntryBody>> {
    let said = |text: String| {
        // The program's own words about a failed request.
        if flag(line, "isApiErrorMessage") {
            EntryBody::Notice { text }
        } else {
            EntryBody::Assistant { text }
        }
    };
    if let Some(text) = content.as_str() {
        return Some(vec![said(text.to_owned())]);
    }
    let body = |block: &Value| match text_of(block, "type") {
        "text" => owned(block, "text").map(said),
        "thinking" => owned(block, "thinking").map(|text| EntryBody::Reasoning { text }),
        "tool_use" => Some(EntryBody::Call {
            id: owned(block, "id")?,
            name: owned(block, "name")?,
            arguments: bounded_arguments(block.get("input").cloned().unwrap_or_default()),
        }),
        _ => None,
    };
    Some(content.as_array()?.iter().filter_map(body).collect())
}

fn result(block: &Value) -> EntryBody {
    let (mut text, mut images) = (String::new(), Vec::new());
    match block.get("content") {
        Some(Value::String(only)) => text.clone_from(only),
        Some(Value::Array(parts)) => {
            for part in parts {
                match text_of(part, "type") {
                    "text" => add_line(&mut text, text_of(part, "text")),
                    "image" => images.extend(image_of(part)),
                    _ => {}
                }
            }
        }
        _ => {}
    }
    let call_id = text_of(block, "tool_use_id").to_owned();
    EntryBody::Result { call_id, text, images, is_error: flag(block, "is_error"), receipt: None }
}

fn image_of(block: &Value) -> Option<TranscriptImage> {
    let source = block.get("source")?;
    image(text_of(source, "media_type"), text_of(source, "data"))
}
