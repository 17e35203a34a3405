//! The messages of a run, and what it cost.

use haft_agent::{RunEvent, RunState, RunStop};
use haft_ledger::{EventLog as _, Ledger, SessionInfo, StoredEvent};
use haft_model::{AssistantPart, CallArguments, ChatMessage, ContentPart, ModelResponse, ToolCall};
use haft_tool::Value;

use super::describe::{clipped, text_of};
use super::error::ApiError;
use super::query::Query;
use super::types::{MessageCall, MessageList, Run, RunMessage};
use super::{Api, runs};

/// Messages per answer.
const MAX_MESSAGES: usize = 500;
/// Events per read while messages are collected.
const READ_EVENT_COUNT: usize = 200;
/// Bytes of a message's text; the rest is not sent.
const MAX_TEXT_BYTES: usize = 256 << 10;
/// Bytes of a text in an event.
const MAX_EVENT_TEXT_BYTES: usize = 16 << 10;
/// Calls of a message in an event.
const MAX_EVENT_CALLS: usize = 100;
/// Characters of what a call in a message is about.
const MAX_ABOUT_CHARS: usize = 200;
/// The arguments that say what a call is about.
const TELLING_ARGUMENTS: [&str; 8] =
    ["command", "file_path", "path", "pattern", "url", "query", "prompt", "description"];

/// The messages after an event.
pub(super) fn list(ledger: &Ledger, session: &str, query: &Query) -> Result<MessageList, ApiError> {
    let after: u64 = query.number("after")?.unwrap_or(0);
    let limit = query.limit(MAX_MESSAGES, MAX_MESSAGES)?;
    let mut found = MessageList { messages: Vec::new(), next: after, more: false };
    loop {
        let events = ledger.read(session, found.next.saturating_add(1), READ_EVENT_COUNT)?;
        let is_last = events.len() < READ_EVENT_COUNT;
        for event in events {
            if found.messages.len() >= limit {
                found.more = true;
                return Ok(found);
            }
            found.next = event.seq;
            found.messages.extend(message(&event));
        }
        if is_last {
            return Ok(found);
        }
    }
}

/// The message in an event; `None` if people need not see it.
pub(crate) fn message(event: &StoredEvent) -> Option<RunMessage> {
    let parsed: RunEvent = serde_json::from_value(event.body.clone()).ok()?;
    let says = |role: &str, text: &str| RunMessage {
        seq: event.seq,
        at: event.at,
        role: role.to_owned(),
        text: cut(text),
        is_cut: false,
        thinking: None,
        calls: Vec::new(),
        images: 0,
        model: None,
        input_tokens: None,
        output_tokens: None,
        cost_usd: None,
    };
    let images = |content: &[ContentPart]| {
        content.iter().filter(|part| matches!(part, ContentPart::Image { .. })).count() as u64
    };
    Some(match &parsed {
        RunEvent::UserMessage { content, .. } => {
            RunMessage { images: images(content), ..says("user", &text_of(content)) }
        }
        RunEvent::Answer { response, cost_usd, .. } => answer(response, *cost_usd, says("assistant", "")),
        RunEvent::LoopMessage { text } | RunEvent::HookMessage { text, .. } => says("note", text),
        RunEvent::Imported { from, messages } => says("note", &imported(from, messages)),
        RunEvent::Compacted { summary, .. } => says("note", summary),
        RunEvent::ModelChanged { provider, model, .. } => {
            says("note", &format!("From here on, {model} ({provider}) answers."))
        }
        RunEvent::Rewound { to } => says("note", &format!("Everything after event {to} was rewound.")),
        RunEvent::TurnEnded { stop } => says("end", &stop.explanation().unwrap_or_default()),
        _ => return None,
    })
}

/// The message, shortened for the event stream.
pub(crate) fn listed_message(event: &StoredEvent) -> Option<RunMessage> {
    let mut message = message(event)?;
    let mut shorten = |text: &mut String| {
        let end = text.floor_char_boundary(MAX_EVENT_TEXT_BYTES);
        let is_long = end < text.len();
        text.truncate(end);
        is_long
    };
    let is_long = shorten(&mut message.text) | message.thinking.as_mut().is_some_and(&mut shorten);
    let has_many_calls = message.calls.len() > MAX_EVENT_CALLS;
    message.calls.truncate(MAX_EVENT_CALLS);
    message.is_cut = is_long || has_many_calls;
    Some(message)
}

fn answer(response: &ModelResponse, cost_usd: Option<f64>, mut message: RunMessage) -> RunMessage {
    let (mut text, mut thinking) = (String::new(), String::new());
    for part in &response.message.parts {
        match part {
            AssistantPart::Text { text: more, .. } => text.push_str(more),
            AssistantPart::Reasoning { text: more, .. } => thinking.push_str(more),
            AssistantPart::ToolCall(call) => message.calls.push(MessageCall {
                call_id: call.id.clone(),
                tool: call.name.clone(),
                about: about_call(call),
            }),
            AssistantPart::Opaque { .. } => {}
        }
    }
    message.text = cut(&text);
    message.thinking = (!thinking.is_empty()).then(|| cut(&thinking));
    message.model = Some(response.model.clone());
    message.input_tokens = Some(response.usage.context());
    message.output_tokens = Some(response.usage.output);
    message.cost_usd = cost_usd;
    message
}

/// What a call is about, from its arguments: it may not be planned yet.
fn about_call(call: &ToolCall) -> String {
    let CallArguments::Object(arguments) = &call.arguments else { return String::new() };
    let telling = TELLING_ARGUMENTS.iter().find_map(|name| arguments.get(*name).and_then(Value::as_str));
    clipped(telling.unwrap_or_default(), MAX_ABOUT_CHARS)
}

fn imported(from: &str, messages: &[ChatMessage]) -> String {
    let count = match messages.len() {
        1 => "1 message".to_owned(),
        count => format!("{count} messages"),
    };
    format!("The run continues with {count} from {from}.")
}

/// The text, cut if it is too long to be sent.
fn cut(text: &str) -> String {
    if text.len() <= MAX_TEXT_BYTES {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(MAX_TEXT_BYTES);
    format!("{}\n… ({} more bytes are not shown)", &text[..end], text.len() - end)
}

/// The run of a session, if it has one.
pub(super) fn run(api: &Api, session: &SessionInfo) -> Result<Option<Run>, ApiError> {
    let Some(state) = haft_agent::read_run(&api.ledger, &session.id)? else { return Ok(None) };
    let can_interrupt = runs::interruptible(api, session, Some(&state), &api.ledger.driven_runs()?).is_ok();
    let RunState { provider, model, turns, is_turn_open, totals, last_stop, .. } = &state;
    let finished = turns.len() - usize::from(*is_turn_open && !turns.is_empty());
    Ok(Some(Run {
        provider: provider.clone(),
        model: model.clone(),
        turns: finished as u64,
        input_tokens: totals.usage.context(),
        output_tokens: totals.usage.output,
        cost_usd: totals.cost_usd,
        in_turn: *is_turn_open,
        can_interrupt,
        stopped: last_stop.as_ref().and_then(RunStop::explanation),
    }))
}
