//! Incoming messages: checks that a request comes from its service, and reads the message in it. One file per service.

mod discord;
mod signature;
mod slack;
mod telegram;
mod webhook;

use haft_tool::{ToolError, Value, json};

pub(crate) use discord::DiscordInbound;
pub(crate) use slack::SlackInbound;
pub(crate) use telegram::TelegramInbound;
pub(crate) use webhook::WebhookInbound;

/// Longest id of a message, a chat or a sender.
const MAX_ID_CHARS: usize = 200;

/// A request as it arrived.
pub struct InboundRequest<'a> {
    /// Returns a header that occurs once, by its name in lower case.
    pub header: &'a dyn Fn(&str) -> Option<&'a str>,
    /// The body, byte for byte.
    pub body: &'a [u8],
    /// Seconds since 1970.
    pub now: u64,
}

/// A message from a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboundMessage {
    /// The id by which a second delivery in the same chat is known.
    pub message_id: String,
    /// The chat, which replies go to.
    pub chat_id: String,
    /// The id of the sender, as `allow_from` has it. Names are not compared, because another person may take one.
    pub sender: Option<String>,
    /// What was said.
    pub text: String,
}

/// What a request is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InboundEvent {
    /// A message.
    Message(InboundMessage),
    /// Something that is answered with this body.
    Answer(Value),
    /// Nothing that a run could answer, and why.
    Ignored(&'static str),
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboundError {
    /// The HTTP status.
    pub status: u16,
    /// What is wrong.
    pub message: String,
}

impl InboundError {
    fn unauthorized(message: impl Into<String>) -> Self {
        Self { status: 401, message: message.into() }
    }

    fn invalid(message: impl Into<String>) -> Self {
        Self { status: 400, message: message.into() }
    }
}

/// The format of one service.
pub(crate) trait InboundFormat: Send + Sync {
    /// Checks the signature, then reads the request.
    fn receive(&self, request: &InboundRequest<'_>) -> Result<InboundEvent, InboundError>;

    /// The body of the response to a message that was accepted.
    fn accepted(&self) -> Value {
        json!({"status": "accepted"})
    }

    /// The body of the response to a sender who is not allowed; without one, the response is an error. Services repeat requests
    /// that fail.
    fn not_allowed(&self) -> Option<Value> {
        Some(json!({"status": "ignored"}))
    }
}

/// A channel that receives messages.
pub struct InboundChannel {
    pub(crate) format: Box<dyn InboundFormat>,
    pub(crate) allow_from: Vec<String>,
    pub(crate) is_signed: bool,
}

/// A request that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InboundVerdict {
    /// A message, and the body of the response once it is stored.
    Message(InboundMessage, Value),
    /// A message of a sender who is not allowed, and the body of the response, if that is not an error.
    NotAllowed(Option<String>, Option<Value>),
    /// Something that is answered with this body.
    Answer(Value),
    /// Nothing that a run could answer, and why.
    Ignored(&'static str),
}

impl InboundChannel {
    /// Whether its requests are signed.
    pub fn is_signed(&self) -> bool {
        self.is_signed
    }

    /// Checks a request and reads the message in it.
    pub fn receive(&self, request: &InboundRequest<'_>) -> Result<InboundVerdict, InboundError> {
        let message = match self.format.receive(request)? {
            InboundEvent::Message(message) => message,
            InboundEvent::Answer(body) => return Ok(InboundVerdict::Answer(body)),
            InboundEvent::Ignored(why) => return Ok(InboundVerdict::Ignored(why)),
        };
        let ids = [Some(&message.message_id), Some(&message.chat_id), message.sender.as_ref()];
        for id in ids.into_iter().flatten() {
            if id.is_empty() || id.chars().count() > MAX_ID_CHARS || id.chars().any(char::is_control) {
                let why = format!(
                    "An id must have 1 to {MAX_ID_CHARS} characters, and none that is a control character"
                );
                return Err(InboundError::invalid(why));
            }
        }
        if message.text.trim().is_empty() {
            return Ok(InboundVerdict::Ignored("the message has no text"));
        }
        let is_allowed = self.allow_from.is_empty()
            || message.sender.as_ref().is_some_and(|sender| self.allow_from.contains(sender));
        if !is_allowed {
            return Ok(InboundVerdict::NotAllowed(message.sender, self.format.not_allowed()));
        }
        Ok(InboundVerdict::Message(message, self.format.accepted()))
    }
}

/// Reads a body that is a JSON object.
fn object(body: &[u8]) -> Result<Value, InboundError> {
    match serde_json::from_slice::<Value>(body) {
        Ok(value) if value.is_object() => Ok(value),
        Ok(_) => Err(InboundError::invalid("The body must be a JSON object")),
        Err(error) => Err(InboundError::invalid(format!("The body is not JSON: {error}"))),
    }
}

/// An id, which some services write as a number.
fn id(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) if number.is_i64() || number.is_u64() => Some(number.to_string()),
        _ => None,
    }
}

/// Refuses an empty secret, with which every signature could be made.
fn not_empty(secret: &str, name: &str) -> Result<(), ToolError> {
    if secret.trim().is_empty() {
        return Err(ToolError::invalid_arguments(format!("{name} is empty")));
    }
    Ok(())
}
