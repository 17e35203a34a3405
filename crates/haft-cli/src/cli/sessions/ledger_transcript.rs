//! A session of the ledger as a transcript: the events of its run, or its calls if it has none.

use haft_agent::{RunEvent, read_run_events};
use haft_compat::transcripts::{EntryBody, Transcript, TranscriptImage};
use haft_ledger::{Ledger, ReceiptQuery, SessionInfo};
use haft_model::{AssistantPart, CallArguments, ChatMessage, ContentPart, ToolCall, ToolResult};
use haft_tool::{Receipt, ToolError, Value};

/// The transcript of a session.
pub(super) fn read(ledger: &Ledger, session: &SessionInfo) -> Result<Transcript, ToolError> {
    let mut transcript = Transcript {
        session: session.id.clone(),
        name: session.name.clone(),
        workspace: Some(session.workspace.display().to_string()),
        started_at: Some(session.started_at),
        ..Transcript::default()
    };
    let events = read_run_events(ledger, &session.id)?;
    if events.is_empty() {
        add_calls(&mut transcript, ledger, session)?;
        return Ok(transcript);
    }
    for logged in events {
        match &logged.event {
            RunEvent::Started(start) => transcript.model = Some(start.model.clone()),
            RunEvent::ModelChanged { model, .. } => transcript.model = Some(model.clone()),
            _ => {}
        }
        for body in bodies(&logged.event) {
            transcript.push(logged.seq, Some(logged.at), body);
        }
    }
    Ok(transcript)
}

/// What an event says.
pub(super) fn bodies(event: &RunEvent) -> Vec<EntryBody> {
    match event {
        RunEvent::UserMessage { content, .. } => {
            let (text, images) = content_of(content);
            vec![EntryBody::User { text, images }]
        }
        RunEvent::Answer { response, .. } => response.message.parts.iter().filter_map(part).collect(),
        RunEvent::CallFinished { result, receipt } => vec![finished(result, *receipt)],
        RunEvent::LoopMessage { text }
        | RunEvent::Instructions { text, .. }
        | RunEvent::HookMessage { text, .. } => {
            vec![EntryBody::Notice { text: text.clone() }]
        }
        RunEvent::Compacted { summary, .. } => vec![EntryBody::Notice { text: summary.clone() }],
        RunEvent::Imported { messages, .. } => messages.iter().flat_map(message).collect(),
        _ => Vec::new(),
    }
}

fn message(message: &ChatMessage) -> Vec<EntryBody> {
    let said = |content: &[ContentPart]| {
        let (text, images) = content_of(content);
        (!content.is_empty()).then_some(EntryBody::User { text, images })
    };
    match message {
        ChatMessage::User { content } => said(content).into_iter().collect(),
        ChatMessage::Assistant(answer) => answer.parts.iter().filter_map(part).collect(),
        ChatMessage::ToolResults { results, content } => {
            results.iter().map(|result| finished(result, None)).chain(said(content)).collect()
        }
    }
}

fn part(part: &AssistantPart) -> Option<EntryBody> {
    match part {
        AssistantPart::Text { text, .. } => Some(EntryBody::Assistant { text: text.clone() }),
        AssistantPart::Reasoning { text, .. } if text.is_empty() => None,
        AssistantPart::Reasoning { text, .. } => Some(EntryBody::Reasoning { text: text.clone() }),
        AssistantPart::ToolCall(ToolCall { id, name, arguments, .. }) => Some(EntryBody::Call {
            id: id.clone(),
            name: name.clone(),
            arguments: match arguments {
                CallArguments::Object(object) => Value::Object(object.clone()),
                CallArguments::Invalid(text) => Value::String(text.clone()),
            },
        }),
        AssistantPart::Opaque { .. } => None,
    }
}

fn finished(result: &ToolResult, receipt: Option<i64>) -> EntryBody {
    let (text, images) = content_of(&result.content);
    EntryBody::Result { call_id: result.call_id.clone(), text, images, is_error: result.is_error, receipt }
}

fn content_of(content: &[ContentPart]) -> (String, Vec<TranscriptImage>) {
    let (mut text, mut images) = (String::new(), Vec::new());
    for part in content {
        match part {
            ContentPart::Text { text: more } => {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(more);
            }
            ContentPart::Image { media_type, data } => {
                images.push(TranscriptImage { media_type: media_type.clone(), data: data.clone() });
            }
        }
    }
    (text, images)
}

fn add_calls(transcript: &mut Transcript, ledger: &Ledger, session: &SessionInfo) -> Result<(), ToolError> {
    let query =
        ReceiptQuery { session: Some(session.id.clone()), limit: usize::MAX, ..ReceiptQuery::default() };
    for summary in ledger.summaries(&query)?.into_iter().rev() {
        let receipt = summary.receipt;
        let result = ledger.result(receipt.id)?;
        for body in call_bodies(&receipt, result) {
            transcript.push(u64::try_from(receipt.id).unwrap_or(0), Some(receipt.started_at), body);
        }
    }
    Ok(())
}

/// A call that no run made, with its result.
pub(super) fn call_bodies(receipt: &Receipt, result: Option<String>) -> [EntryBody; 2] {
    let id = format!("call_{}", receipt.id);
    let is_error = receipt.error.is_some();
    let text = result.or_else(|| receipt.error.clone()).unwrap_or_default();
    let (call_id, receipt_id) = (id.clone(), Some(receipt.id));
    [
        EntryBody::Call { id, name: receipt.tool.clone(), arguments: receipt.input.clone() },
        EntryBody::Result { call_id, text, images: Vec::new(), is_error, receipt: receipt_id },
    ]
}
