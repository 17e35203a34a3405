//! What all wire formats need to put an answer together.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use haft_tool::Value;
use serde_json::Map;

use crate::schema::wire_name;
use crate::{
    AssistantMessage, AssistantPart, CallArguments, ModelEvent, ModelResponse, ModelStop, Origin, TokenUsage,
    ToolCall, TurnRequest,
};

/// The longest call id that all providers accept.
const MAX_ID_BYTES: usize = 64;

/// Puts one answer together.
pub(super) struct MessageBuilder {
    origin: Origin,
    /// Names on the wire that differ from the tools' own.
    names: HashMap<String, String>,
    /// Ids of calls in the conversation.
    taken: HashSet<String>,
    model: Option<String>,
    response_id: Option<String>,
    has_started: bool,
    pub(super) parts: Vec<AssistantPart>,
    pub(super) usage: TokenUsage,
    pub(super) stop: Option<ModelStop>,
}

/// A call as it came from the wire.
pub(super) struct WireCall {
    /// From [`MessageBuilder::new_id`].
    pub(super) id: String,
    pub(super) wire_id: Option<String>,
    pub(super) wire_name: String,
    pub(super) arguments: (CallArguments, Option<String>),
}

impl MessageBuilder {
    pub(super) fn new(origin: Origin, request: &TurnRequest<'_>) -> Self {
        let mut names = HashMap::new();
        for tool in request.tools {
            let on_wire = wire_name(&tool.name);
            if on_wire != tool.name {
                names.insert(on_wire.into_owned(), tool.name.clone());
            }
        }
        Self {
            origin,
            names,
            taken: request.conversation.calls().map(|call| call.id.clone()).collect(),
            model: None,
            response_id: None,
            has_started: false,
            parts: Vec::new(),
            usage: TokenUsage::default(),
            stop: None,
        }
    }

    /// Notes what the provider says about the response as a whole, and reports its begin once.
    pub(super) fn start(
        &mut self,
        model: Option<&str>,
        response_id: Option<&str>,
        out: &mut Vec<ModelEvent>,
    ) {
        if self.model.is_none() {
            self.model = model.filter(|model| !model.is_empty()).map(str::to_owned);
        }
        if self.response_id.is_none() {
            self.response_id = response_id.filter(|id| !id.is_empty()).map(str::to_owned);
        }
        if !std::mem::replace(&mut self.has_started, true) {
            out.push(ModelEvent::Started { model: self.model.clone() });
        }
    }

    /// An id for a call that is unique within the conversation: the provider's, if that is usable.
    pub(super) fn new_id(&mut self, wire_id: Option<&str>) -> String {
        let is_usable = |id: &&str| {
            (1..=MAX_ID_BYTES).contains(&id.len())
                && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
                && !self.taken.contains(*id)
        };
        let id = wire_id.filter(is_usable).map_or_else(
            || {
                let mut number = self.taken.len() + 1;
                while self.taken.contains(&format!("call_{number}")) {
                    number += 1;
                }
                format!("call_{number}")
            },
            str::to_owned,
        );
        self.taken.insert(id.clone());
        id
    }

    /// The tool that a name on the wire stands for.
    pub(super) fn tool_name(&self, on_wire: &str) -> String {
        self.names.get(on_wire).cloned().unwrap_or_else(|| on_wire.to_owned())
    }

    /// Makes the call. `raw` is the provider's form and `neutral` makes the form that the other fields lead to: the provider's is
    /// kept only if they differ, because most are equal and logs store them.
    pub(super) fn call(
        &self,
        received: WireCall,
        raw: Value,
        neutral: impl Fn(&ToolCall) -> Value,
    ) -> ToolCall {
        let WireCall { id, wire_id, wire_name, arguments: (arguments, note) } = received;
        let name = self.tool_name(&wire_name);
        let mut call = ToolCall { id, wire_id, name, arguments, note, raw: None };
        if neutral(&call) != raw {
            call.raw = Some(raw);
        }
        call
    }

    /// Replaces the usage and reports it, if it changed.
    pub(super) fn set_usage(&mut self, usage: TokenUsage, out: &mut Vec<ModelEvent>) {
        if usage != self.usage {
            self.usage = usage;
            out.push(ModelEvent::Usage(usage));
        }
    }

    /// The response with these parts.
    pub(super) fn response(&self, parts: Vec<AssistantPart>, raw: Map<String, Value>) -> ModelResponse {
        ModelResponse {
            message: AssistantMessage { origin: self.origin.clone(), parts, raw },
            stop: self.stop.clone().unwrap_or(ModelStop::End),
            usage: self.usage,
            model: self.model.clone().unwrap_or_else(|| self.origin.model.clone()),
            response_id: self.response_id.clone(),
            elapsed: Duration::ZERO,
        }
    }
}

/// A text part, if there is text.
pub(super) fn text_part(text: &str) -> Option<AssistantPart> {
    (!text.is_empty()).then(|| AssistantPart::Text { text: text.to_owned(), raw: None })
}

/// A reasoning part, if there is text.
pub(super) fn reasoning_part(text: &str) -> Option<AssistantPart> {
    (!text.is_empty()).then(|| AssistantPart::Reasoning { text: text.to_owned(), raw: None })
}

/// The string in a field, or nothing.
pub(super) fn text_of<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Whether text is a whole JSON object, so that no token limit has cut it.
pub(super) fn is_whole_object(text: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(text).is_ok()
}

/// Takes a field out of an object; null if there is none.
pub(super) fn take_field(value: &mut Value, field: &str) -> Value {
    value.get_mut(field).map(Value::take).unwrap_or_default()
}

/// Sets a field of an object. What a log stored may be no object; then nothing is set.
pub(super) fn set_field(value: &mut Value, field: &str, to: Value) {
    if let Some(object) = value.as_object_mut() {
        object.insert(field.to_owned(), to);
    }
}
