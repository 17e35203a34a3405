//! The forms in which a transcript is exported.

pub(super) mod html;
pub(super) mod markdown;

use std::collections::HashMap;

use haft_compat::transcripts::{EntryBody, Transcript, TranscriptEntry};
use haft_tool::{ToolError, Value, json};

use super::super::local_time::local_time_with_offset;

/// The entries of the conversation as it is now.
fn live(transcript: &Transcript) -> impl Iterator<Item = &TranscriptEntry> {
    transcript.entries.iter().filter(|entry| entry.is_live)
}

/// One JSON document.
pub(super) fn json_document(transcript: &Transcript) -> Result<String, ToolError> {
    let entries: Vec<&TranscriptEntry> = live(transcript).collect();
    let mut document = serde_json::to_string_pretty(&json!({ "session": transcript, "entries": entries }))?;
    document.push('\n');
    Ok(document)
}

/// One JSON object per line: the session, then its entries.
pub(super) fn json_lines(transcript: &Transcript) -> Result<String, ToolError> {
    let mut head = serde_json::to_value(transcript)?;
    if let Value::Object(head) = &mut head {
        head.insert("type".to_owned(), json!("session"));
    }
    let mut lines = format!("{head}\n");
    for entry in live(transcript) {
        lines.push_str(&serde_json::to_string(entry)?);
        lines.push('\n');
    }
    Ok(lines)
}

/// The facts about the session, with their names.
fn facts(transcript: &Transcript) -> Vec<(&'static str, String)> {
    let mut facts =
        vec![("Session", transcript.session.clone()), ("From", transcript.source.name().to_owned())];
    let optional = [
        ("Name", transcript.name.clone()),
        ("Workspace", transcript.workspace.clone()),
        ("Model", transcript.model.clone()),
        ("Started", transcript.started_at.map(local_time_with_offset)),
    ];
    facts.extend(optional.into_iter().filter_map(|(name, value)| Some((name, value?))));
    if transcript.invalid_lines > 0 {
        facts.push(("Lines that could not be read", transcript.invalid_lines.to_string()));
    }
    facts
}

/// What an entry is called; `tools` holds the names of the tools by the ids of their calls.
fn title(tools: &HashMap<&str, &str>, body: &EntryBody) -> String {
    match body {
        EntryBody::User { .. } => "User".to_owned(),
        EntryBody::Assistant { .. } => "Model".to_owned(),
        EntryBody::Reasoning { .. } => "Reasoning".to_owned(),
        EntryBody::Notice { .. } => "Notice".to_owned(),
        EntryBody::Call { name, .. } => format!("Call: {name}"),
        EntryBody::Result { call_id, is_error, receipt, .. } => {
            let name = tools.get(call_id.as_str()).copied().unwrap_or(call_id);
            let failed = if *is_error { ", failed" } else { "" };
            let receipt = receipt.map(|receipt| format!(" (haft show {receipt})")).unwrap_or_default();
            format!("Result: {name}{failed}{receipt}")
        }
    }
}

/// The arguments of a call as text: one on its own as it is, else as JSON.
fn arguments_text(arguments: &Value) -> String {
    match arguments {
        Value::String(text) => text.clone(),
        Value::Object(members) => match members.iter().next() {
            Some((name, Value::String(text))) if members.len() == 1 => format!("{name}: {text}"),
            _ => serde_json::to_string_pretty(arguments).unwrap_or_default(),
        },
        other => other.to_string(),
    }
}
