//! A conversation with a model, in a form that no provider owns.
//!
//! A part of an answer can carry the provider's own JSON (`raw`). It is sent back unchanged to the provider that made it and
//! left out of requests to others. Everything here is stored in event logs, so fields are only ever added, with a default.

use haft_tool::{Call, Content, Output};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::CallArguments;

/// The instructions and all messages so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
    /// Sections of the system prompt, the most stable first: the prefix up to the end of the first one is cached, so what changes
    /// between runs (the date, the state of a repository) belongs into a later one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub system: Vec<String>,
    /// The messages, oldest first.
    #[serde(default)]
    pub messages: Vec<ChatMessage>,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum ChatMessage {
    /// What the user said.
    User {
        /// Texts and images.
        content: Vec<ContentPart>,
    },
    /// What the model answered.
    Assistant(AssistantMessage),
    /// The results of all calls of the answer before.
    ToolResults {
        /// One result per call.
        results: Vec<ToolResult>,
        /// What the user said in addition.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        content: Vec<ContentPart>,
    },
}

/// A piece of what a model is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentPart {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image {
        /// For example `image/png`.
        media_type: String,
        /// The image's bytes in base64.
        data: String,
    },
}

/// The result of one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The id of the [`ToolCall`].
    pub call_id: String,
    /// The tool's name.
    pub name: String,
    /// Texts and images.
    pub content: Vec<ContentPart>,
    /// Whether the call failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// Where an answer came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The name of the format in which it came.
    pub wire: String,
    /// The provider, with its host unless that is the vendor's own.
    pub provider: String,
    /// The model as it was asked for.
    pub model: String,
}

/// What the model answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssistantMessage {
    /// Where it came from.
    pub origin: Origin,
    /// Its parts, in order.
    pub parts: Vec<AssistantPart>,
    /// Fields of the whole message that only its provider understands.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub raw: Map<String, Value>,
}

/// A part of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AssistantPart {
    /// Text for the user.
    Text {
        /// The text.
        text: String,
        /// The provider's form, if the text alone would lose something.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<Value>,
    },
    /// What the model thought, as far as the provider shows it.
    Reasoning {
        /// The text, which may be empty.
        text: String,
        /// The provider's form, with signatures or encrypted content.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<Value>,
    },
    /// A call of a tool.
    ToolCall(ToolCall),
    /// A part that only the provider understands.
    Opaque {
        /// The provider's form.
        raw: Value,
    },
}

/// A call that a model made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique within the conversation.
    pub id: String,
    /// The provider's id; some send none, and some send the same one twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire_id: Option<String>,
    /// The tool's name, as its definition has it.
    pub name: String,
    /// The arguments.
    pub arguments: CallArguments,
    /// How the arguments differ from what the model wrote, if they had to be interpreted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The provider's form, if the other fields would lose something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Value>,
}

impl Conversation {
    /// A conversation that begins with these instructions.
    pub fn new(system: impl Into<String>) -> Self {
        Self { system: vec![system.into()], messages: Vec::new() }
    }

    /// Adds what the user said.
    pub fn say(&mut self, text: impl Into<String>) {
        self.messages.push(ChatMessage::User { content: vec![ContentPart::text(text)] });
    }

    /// The calls of all answers.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.messages
            .iter()
            .flat_map(|message| match message {
                ChatMessage::Assistant(answer) => answer.parts.as_slice(),
                _ => &[],
            })
            .filter_map(AssistantPart::as_call)
    }

    /// The calls of the last answer that have no result yet.
    pub fn unanswered_calls(&self) -> Vec<&ToolCall> {
        let Some(at) = self.messages.iter().rposition(|message| matches!(message, ChatMessage::Assistant(_)))
        else {
            return Vec::new();
        };
        let answered: Vec<&str> = self.messages[at..]
            .iter()
            .flat_map(|message| match message {
                ChatMessage::ToolResults { results, .. } => results.as_slice(),
                _ => &[],
            })
            .map(|result| result.call_id.as_str())
            .collect();
        let ChatMessage::Assistant(answer) = &self.messages[at] else { return Vec::new() };
        answer.calls().filter(|call| !answered.contains(&call.id.as_str())).collect()
    }
}

impl ContentPart {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

impl From<&Content> for ContentPart {
    fn from(piece: &Content) -> Self {
        match piece {
            Content::Text { text } => Self::text(format!("{}{}", text.head, text.tail)),
            Content::Image { media_type, data } => {
                Self::Image { media_type: media_type.clone(), data: data.clone() }
            }
            Content::Block { instead, .. } => Self::text(instead.clone()),
        }
    }
}

impl ToolResult {
    /// What a tool gave back.
    pub fn new(call_id: impl Into<String>, name: impl Into<String>, output: &Output) -> Self {
        let content = output.content.iter().map(ContentPart::from).collect();
        Self { call_id: call_id.into(), name: name.into(), content, is_error: output.is_error() }
    }

    /// All texts as one. A wire that knows no failure gets `Error: …`.
    pub(crate) fn flagged_text(&self) -> String {
        let text = self.text();
        if self.is_error && !text.starts_with("Error: ") { format!("Error: {text}") } else { text }
    }

    /// All texts as one, with a placeholder for each image.
    pub fn text(&self) -> String {
        let piece = |part: &ContentPart| match part {
            ContentPart::Text { text } => text.clone(),
            ContentPart::Image { media_type, data } => {
                format!("[{media_type}, about {} bytes]", data.len() / 4 * 3)
            }
        };
        self.content.iter().map(piece).collect()
    }
}

impl AssistantMessage {
    /// The calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(AssistantPart::as_call)
    }

    /// All text for the user.
    pub fn text(&self) -> String {
        let text = |part: &AssistantPart| match part {
            AssistantPart::Text { text, .. } => Some(text.clone()),
            _ => None,
        };
        self.parts.iter().filter_map(text).collect()
    }
}

impl AssistantPart {
    /// The call, if this is one.
    pub fn as_call(&self) -> Option<&ToolCall> {
        match self {
            Self::ToolCall(call) => Some(call),
            _ => None,
        }
    }
}

impl ToolCall {
    /// The call as the runtime takes it.
    pub fn to_call(&self) -> Call {
        Call::new(self.id.clone(), self.name.clone(), self.arguments.clone())
    }
}
