//! Codex's transcripts (rollouts): each line is an item of the model's API, or an event.

use haft_tool::Value;

use super::json_lines::{add_line, image_of_url, objects, owned, text_of};
use super::timestamp::milliseconds;
use super::transcript::bounded_arguments;
use super::{EntryBody, Transcript, TranscriptSource};

/// How messages begin that the program wrote in the user's place.
const PROGRAM_TEXTS: [&str; 6] = [
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "# AGENTS.md instructions",
    "<turn_aborted>",
    "<skill>",
];

/// Reads a transcript of Codex.
pub fn read_codex_transcript(bytes: &[u8]) -> Transcript {
    let mut transcript = Transcript { source: TranscriptSource::Codex, ..Transcript::default() };
    for (number, line) in objects(bytes) {
        match line {
            Some(line) => add(&mut transcript, number, &line),
            None => transcript.invalid_lines += 1,
        }
    }
    transcript
}

fn add(transcript: &mut Transcript, number: u64, line: &Value) {
    let at = milliseconds(text_of(line, "timestamp"));
    let payload = line.get("payload").filter(|payload| payload.is_object());
    match (text_of(line, "type"), payload) {
        ("session_meta", Some(meta)) => head(transcript, meta, at),
        ("turn_context", Some(context)) => {
            transcript.model = owned(context, "model").or(transcript.model.take());
            transcript.workspace = transcript.workspace.take().or_else(|| owned(context, "cwd"));
        }
        ("response_item", Some(item)) => add_item(transcript, number, at, item),
        ("compacted", Some(compacted)) => {
            let text = text_of(compacted, "message").to_owned();
            transcript.push(number, at, EntryBody::Notice { text });
        }
        // Older versions wrote the head and the items as they are.
        ("", None) if line.get("id").is_some() && number == 1 => head(transcript, line, at),
        (_, None) if body(line).is_some() => add_item(transcript, number, at, line),
        ("session_meta" | "turn_context" | "response_item" | "compacted", None) => {
            transcript.invalid_lines += 1;
        }
        _ => transcript.skipped_lines += 1,
    }
}

fn head(transcript: &mut Transcript, meta: &Value, at: Option<u64>) {
    if !transcript.session.is_empty() {
        return;
    }
    text_of(meta, "id").clone_into(&mut transcript.session);
    transcript.workspace = owned(meta, "cwd");
    transcript.started_at = milliseconds(text_of(meta, "timestamp")).or(at);
}

fn add_item(transcript: &mut Transcript, number: u64, at: Option<u64>, item: &Value) {
    match body(item) {
        Some(body) => transcript.push(number, at, body),
        None => transcript.skipped_lines += 1,
    }
}

fn body(item: &Value) -> Option<EntryBody> {
    let id = || owned(item, "call_id").or_else(|| owned(item, "id"));
    match text_of(item, "type") {
        "message" => message(item),
        "reasoning" => {
            let mut text = String::new();
            for part in
                ["summary", "content"].iter().filter_map(|field| item.get(*field)?.as_array()).flatten()
            {
                add_line(&mut text, text_of(part, "text"));
            }
            Some(text).filter(|text| !text.is_empty()).map(|text| EntryBody::Reasoning { text })
        }
        "function_call" => {
            let written = text_of(item, "arguments");
            let parsed = serde_json::from_str(written).ok().filter(Value::is_object);
            let arguments = parsed.map_or_else(|| Value::String(written.to_owned()), bounded_arguments);
            Some(EntryBody::Call { id: id()?, name: owned(item, "name")?, arguments })
        }
        "custom_tool_call" => {
            let arguments = Value::String(text_of(item, "input").to_owned());
            Some(EntryBody::Call { id: id()?, name: owned(item, "name")?, arguments })
        }
        kind @ ("local_shell_call" | "web_search_call") => {
            let arguments = bounded_arguments(item.get("action").cloned().unwrap_or_default());
            let name = kind.trim_end_matches("_call").to_owned();
            Some(EntryBody::Call { id: id().unwrap_or_else(|| name.clone()), name, arguments })
        }
        "function_call_output" | "custom_tool_call_output" => Some(result(item, id()?)),
        _ => None,
    }
}

fn message(item: &Value) -> Option<EntryBody> {
    let (mut text, mut images) = (String::new(), Vec::new());
    for part in item.get("content")?.as_array()? {
        match text_of(part, "type") {
            "input_text" | "output_text" | "text" => add_line(&mut text, text_of(part, "text")),
            "input_image" => images.extend(image_of_url(text_of(part, "image_url"))),
            _ => {}
        }
    }
    let is_programs = PROGRAM_TEXTS.iter().any(|start| text.trim_start().starts_with(start));
    Some(match text_of(item, "role") {
        "assistant" => EntryBody::Assistant { text },
        "user" if !is_programs => EntryBody::User { text, images },
        _ => EntryBody::Notice { text },
    })
}

/// The result of a call: its output is a text, a list of parts, or an object, which older versions wrote into the text.
fn result(item: &Value, call_id: String) -> EntryBody {
    let (mut text, mut images) = (String::new(), Vec::new());
    let output = item.get("output");
    let older = output.and_then(Value::as_str).and_then(|output| serde_json::from_str::<Value>(output).ok());
    let older = older
        .filter(|older| older.get("output").is_some_and(Value::is_string) && older.get("metadata").is_some());
    match older.as_ref().or(output) {
        Some(Value::String(only)) => text.clone_from(only),
        Some(Value::Array(parts)) => {
            for part in parts {
                add_line(&mut text, text_of(part, "text"));
                images.extend(image_of_url(text_of(part, "image_url")));
            }
        }
        Some(object) => {
            let content = ["output", "content"]
                .iter()
                .map(|field| text_of(object, field))
                .find(|text| !text.is_empty());
            content.unwrap_or_default().clone_into(&mut text);
        }
        None => {}
    }
    let failed = |object: &Value| {
        let exit_code =
            object.get("metadata").and_then(|metadata| metadata.get("exit_code")).and_then(Value::as_i64);
        exit_code.is_some_and(|code| code != 0) || object.get("success") == Some(&Value::Bool(false))
    };
    let is_error = older.as_ref().or(output).is_some_and(failed);
    EntryBody::Result { call_id, text, images, is_error, receipt: None }
}
