//! A transcript of Claude Code, with whose conversation a new run begins.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use haft_compat::transcripts::{EntryBody, MessageRole, Transcript, TranscriptImage, TranscriptMessage};
use haft_files::is_directory;
use haft_model::{
    AssistantMessage, AssistantPart, CallArguments, ChatMessage, ContentPart, Origin, ToolCall, ToolResult,
};
use haft_tool::ToolError;

use super::super::screen;
use super::super::sessions::foreign::ForeignFiles;

/// Who answered in an imported conversation, as far as providers are concerned: none of them.
const IMPORTED: &str = "transcript";

/// A conversation from elsewhere.
pub(super) struct ImportedConversation {
    /// The session's id there, by which the new run is known from then on.
    pub(super) id: String,
    pub(super) workspace: PathBuf,
    pub(super) messages: Vec<ChatMessage>,
}

impl ImportedConversation {
    /// The conversation of Claude Code's session with this id; `None` if there is none on this machine.
    pub(super) fn find(id: &str, folder: &Path) -> Result<Option<Self>, ToolError> {
        let Some(file) = ForeignFiles::claude_session(id, folder) else { return Ok(None) };
        let transcript = file.read()?;
        if transcript.invalid_lines > 0 {
            let lines = screen::count(transcript.invalid_lines as u64, "line");
            screen::warnings(&[format!("{lines} of the transcript could not be read")]);
        }
        let own = transcript.workspace.as_ref().map(PathBuf::from);
        let own = own.filter(|own| own.is_absolute() && is_directory(own).unwrap_or(false));
        let messages = chat_messages(&transcript);
        let id = transcript.session;
        Ok(Some(Self { id, workspace: own.unwrap_or_else(|| folder.to_owned()), messages }))
    }
}

/// The conversation in the form in which models are sent it.
fn chat_messages(transcript: &Transcript) -> Vec<ChatMessage> {
    let mut tools: HashMap<String, String> = HashMap::new();
    let model = transcript.model.clone().unwrap_or_default();
    let origin = Origin { wire: IMPORTED.to_owned(), provider: IMPORTED.to_owned(), model };
    let mut chat = Vec::new();
    for message in transcript.messages() {
        chat.push(match message.role {
            MessageRole::Assistant => {
                let parts: Vec<AssistantPart> =
                    message.parts.iter().filter_map(|part| answer_part(part)).collect();
                let calls = parts.iter().filter_map(AssistantPart::as_call);
                tools.extend(calls.map(|call| (call.id.clone(), call.name.clone())));
                let origin = origin.clone();
                ChatMessage::Assistant(AssistantMessage { origin, parts, raw: serde_json::Map::new() })
            }
            MessageRole::User => user_message(&message, &tools),
        });
    }
    chat
}

fn answer_part(body: &EntryBody) -> Option<AssistantPart> {
    match body {
        EntryBody::Assistant { text } => Some(AssistantPart::Text { text: text.clone(), raw: None }),
        EntryBody::Call { id, name, arguments } => {
            let (arguments, note) = CallArguments::from_value(arguments.clone());
            let (id, name) = (id.clone(), name.clone());
            Some(AssistantPart::ToolCall(ToolCall { id, wire_id: None, name, arguments, note, raw: None }))
        }
        _ => None,
    }
}

fn user_message(message: &TranscriptMessage<'_>, tools: &HashMap<String, String>) -> ChatMessage {
    let result = |part: &Cow<'_, EntryBody>| match &**part {
        EntryBody::Result { call_id, text, images, is_error, .. } => Some(ToolResult {
            call_id: call_id.clone(),
            name: tools.get(call_id).cloned().unwrap_or_default(),
            content: content(text, images),
            is_error: *is_error,
        }),
        _ => None,
    };
    let said = |part: &Cow<'_, EntryBody>| match &**part {
        EntryBody::User { text, images } => content(text, images),
        EntryBody::Notice { text } => content(text, &[]),
        _ => Vec::new(),
    };
    let results: Vec<ToolResult> = message.parts.iter().filter_map(result).collect();
    let content: Vec<ContentPart> = message.parts.iter().flat_map(said).collect();
    if results.is_empty() {
        ChatMessage::User { content }
    } else {
        ChatMessage::ToolResults { results, content }
    }
}

fn content(text: &str, images: &[TranscriptImage]) -> Vec<ContentPart> {
    let text = (!text.is_empty() || images.is_empty()).then(|| ContentPart::text(text));
    let image = |image: &TranscriptImage| ContentPart::Image {
        media_type: image.media_type.clone(),
        data: image.data.clone(),
    };
    text.into_iter().chain(images.iter().map(image)).collect()
}
