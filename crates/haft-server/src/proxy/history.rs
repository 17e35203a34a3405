//! The messages of a request as a conversation that every provider accepts.

use std::collections::{HashMap, HashSet};

use haft_model::{
    AssistantMessage, AssistantPart, CallArguments, ChatMessage, ContentPart, Conversation, Origin, ToolCall,
    ToolResult,
};
use haft_tool::Value;
use serde_json::Map;

use super::failure::ProxyFailure;
use super::fields::Fields;

/// The longest call id that all providers accept.
const MAX_ID_BYTES: usize = 64;
/// The origin of answers in a history, whose provider is not known.
const ORIGIN: &str = "loom";

/// A conversation, with notes for the client.
pub(super) struct LlmHistory {
    pub(super) conversation: Conversation,
    pub(super) notes: Vec<String>,
}

/// Reads messages one after the other; holds what was read so far.
#[derive(Default)]
struct HistoryReader {
    conversation: Conversation,
    /// The tools of calls that have no result yet, by the ids of the calls.
    open: HashMap<String, String>,
    /// The ids of all calls.
    calls: HashSet<String>,
    notes: Vec<String>,
}

impl LlmHistory {
    /// Reads `messages`.
    pub(super) fn read(fields: &mut Fields) -> Result<Self, ProxyFailure> {
        let messages = fields.list("messages")?;
        let messages = messages.ok_or_else(|| fields.error("messages", "expected a list of messages"))?;
        let mut reader = HistoryReader::default();
        for (number, value) in messages.into_iter().enumerate() {
            let mut message = fields.element("messages", number, value)?;
            match message.required_text("role")?.as_str() {
                "system" => reader.system(&mut message)?,
                "user" => reader.user(&mut message)?,
                "assistant" => reader.assistant(&mut message)?,
                "tool" => reader.tool(&mut message)?,
                other => {
                    let shown: String = other.chars().take(80).collect();
                    let what = format!("expected system, user, assistant or tool, got {shown:?}");
                    return Err(message.error("role", &what));
                }
            }
        }
        if let Some(id) = reader.open.keys().min() {
            return Err(fields.error("messages", &format!("the call {id} has no result")));
        }
        if reader.conversation.messages.is_empty() {
            return Err(fields.error("messages", "expected a message of the user"));
        }
        Ok(Self { conversation: reader.conversation, notes: reader.notes })
    }
}

impl HistoryReader {
    fn system(&mut self, message: &mut Fields) -> Result<(), ProxyFailure> {
        let text = message.text("content")?.unwrap_or_default();
        if !text.trim().is_empty() {
            self.conversation.system.push(text);
        }
        Ok(())
    }

    fn user(&mut self, message: &mut Fields) -> Result<(), ProxyFailure> {
        self.refuse_open_calls(message)?;
        let text = message.required_text("content")?;
        self.conversation.say(text);
        Ok(())
    }

    /// Empty answers are left out, because providers refuse them.
    fn assistant(&mut self, message: &mut Fields) -> Result<(), ProxyFailure> {
        self.refuse_open_calls(message)?;
        let text = message.text("content")?.filter(|text| !text.trim().is_empty());
        let mut parts: Vec<AssistantPart> =
            text.into_iter().map(|text| AssistantPart::Text { text, raw: None }).collect();
        for (number, value) in message.list("tool_calls")?.unwrap_or_default().into_iter().enumerate() {
            let mut call = message.element("tool_calls", number, value)?;
            parts.push(AssistantPart::ToolCall(self.call(&mut call)?));
        }
        if !parts.is_empty() {
            let origin =
                Origin { wire: ORIGIN.to_owned(), provider: ORIGIN.to_owned(), model: String::new() };
            let answer = AssistantMessage { origin, parts, raw: Map::new() };
            self.conversation.messages.push(ChatMessage::Assistant(answer));
        }
        Ok(())
    }

    fn call(&mut self, call: &mut Fields) -> Result<ToolCall, ProxyFailure> {
        let id = call.required_text("id")?;
        let is_usable = id.len() <= MAX_ID_BYTES
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        if !is_usable {
            return Err(call.error("id", "expected at most 64 letters, digits, _ and -"));
        }
        if !self.calls.insert(id.clone()) {
            return Err(call.error("id", &format!("{id} is the id of two calls")));
        }
        let name = call.required_text("tool_name")?;
        // Arguments that are not an object are the model's own mistake, which it may see in its history.
        let arguments = call.take("arguments_json").unwrap_or(Value::Null);
        let (arguments, note) = CallArguments::from_value(arguments);
        self.open.insert(id.clone(), name.clone());
        Ok(ToolCall { id, wire_id: None, name, arguments, note, raw: None })
    }

    fn tool(&mut self, message: &mut Fields) -> Result<(), ProxyFailure> {
        let id = message.required_text("tool_call_id")?;
        let text = message.text("content")?.unwrap_or_default();
        if let Some(name) = self.open.remove(&id) {
            let content = vec![ContentPart::text(text)];
            self.result(ToolResult { call_id: id, name, content, is_error: false });
            return Ok(());
        }
        if self.calls.contains(&id) {
            return Err(message.error("tool_call_id", &format!("{id} has a result already")));
        }
        if !self.calls.is_empty() {
            return Err(message.error("tool_call_id", "no call before this message has this id"));
        }
        // Loom's own client keeps results but loses their calls, and providers refuse results without calls.
        if self.notes.is_empty() {
            self.notes.push("Results without calls were sent as text.".to_owned());
        }
        let name = message.text("name")?.map(|name| format!(" of {name}")).unwrap_or_default();
        self.conversation.say(format!("Result{name}:\n{text}"));
        Ok(())
    }

    /// Adds a result to the message that has all results of one answer.
    fn result(&mut self, result: ToolResult) {
        match self.conversation.messages.last_mut() {
            Some(ChatMessage::ToolResults { results, .. }) => results.push(result),
            _ => self
                .conversation
                .messages
                .push(ChatMessage::ToolResults { results: vec![result], content: Vec::new() }),
        }
    }

    fn refuse_open_calls(&self, message: &Fields) -> Result<(), ProxyFailure> {
        match self.open.keys().min() {
            Some(id) => {
                Err(message.error("role", &format!("the call {id} before this message has no result")))
            }
            None => Ok(()),
        }
    }
}
