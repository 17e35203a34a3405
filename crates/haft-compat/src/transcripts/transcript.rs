//! What was said and done in a session, whichever program recorded it.

use std::collections::HashMap;

use haft_tool::Value;
use serde::Serialize;

use super::{MAX_ARGUMENT_DEPTH, MAX_ENTRIES};

/// Who recorded a transcript.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TranscriptSource {
    /// Haft's ledger.
    #[default]
    Haft,
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
}

/// What was said and done in a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Transcript {
    /// Who recorded it.
    pub source: TranscriptSource,
    /// The session's id.
    pub session: String,
    /// Its name or title, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The folder it worked in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The model that answered last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// When it began, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<u64>,
    /// Lines that were skipped, because their kind is not known or there were too many.
    pub skipped_lines: usize,
    /// Lines that could not be read.
    pub invalid_lines: usize,
    /// What was said and done, in order.
    #[serde(skip)]
    pub entries: Vec<TranscriptEntry>,
}

/// One thing that was said or done.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TranscriptEntry {
    /// Its place: the number of the event, or of the line in the file.
    pub position: u64,
    /// When, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// Whether it is part of the conversation as it is now: neither undone nor said to a subagent.
    #[serde(skip)]
    pub is_live: bool,
    /// What it is.
    #[serde(flatten)]
    pub body: EntryBody,
}

/// What was said or done.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EntryBody {
    /// The user said something.
    User {
        /// The text.
        text: String,
        /// The images.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        images: Vec<TranscriptImage>,
    },
    /// The model said something.
    Assistant {
        /// The text.
        text: String,
    },
    /// The model thought something.
    Reasoning {
        /// The text.
        text: String,
    },
    /// The model called a tool.
    Call {
        /// The call's id.
        id: String,
        /// The tool's name.
        name: String,
        /// The arguments: an object, or a text where they were not one.
        arguments: Value,
    },
    /// A call has its result.
    Result {
        /// The call's id.
        call_id: String,
        /// The text.
        text: String,
        /// The images.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        images: Vec<TranscriptImage>,
        /// Whether the call failed.
        is_error: bool,
        /// The call's number in Haft's ledger.
        #[serde(skip_serializing_if = "Option::is_none")]
        receipt: Option<i64>,
    },
    /// The program told the model something: instructions, a summary, the environment.
    Notice {
        /// The text.
        text: String,
    },
}

/// An image of a message or a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TranscriptImage {
    /// For example `image/png`.
    pub media_type: String,
    /// The bytes in base64.
    pub data: String,
}

impl Transcript {
    /// Adds an entry of the conversation.
    pub fn push(&mut self, position: u64, at: Option<u64>, body: EntryBody) {
        if self.entries.len() >= MAX_ENTRIES {
            self.skipped_lines += 1;
            return;
        }
        self.entries.push(TranscriptEntry { position, at, is_live: true, body });
    }

    /// What the user said first.
    pub fn first_words(&self) -> Option<&str> {
        self.entries.iter().find_map(|entry| match &entry.body {
            EntryBody::User { text, .. } if !text.trim().is_empty() => Some(text.trim()),
            _ => None,
        })
    }

    /// When the last entry was made.
    pub fn last_at(&self) -> Option<u64> {
        self.entries.iter().rev().find_map(|entry| entry.at).or(self.started_at)
    }

    /// The name of the tool of each call, by the call's id; of calls with the same id, that of the first.
    pub fn tool_names(&self) -> HashMap<&str, &str> {
        let mut names = HashMap::new();
        for entry in &self.entries {
            if let EntryBody::Call { id, name, .. } = &entry.body {
                names.entry(id.as_str()).or_insert(name.as_str());
            }
        }
        names
    }
}

impl EntryBody {
    /// The kind in JSON and in lists.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::User { .. } => "user",
            Self::Assistant { .. } => "assistant",
            Self::Reasoning { .. } => "reasoning",
            Self::Call { .. } => "call",
            Self::Result { .. } => "result",
            Self::Notice { .. } => "notice",
        }
    }

    /// Calls `visit` with every text of the entry, until it returns true; says whether it did.
    pub fn any_text(&self, visit: &mut dyn FnMut(&str) -> bool) -> bool {
        match self {
            Self::User { text, .. }
            | Self::Assistant { text }
            | Self::Reasoning { text }
            | Self::Notice { text }
            | Self::Result { text, .. } => visit(text),
            Self::Call { name, arguments, .. } => visit(name) || any_leaf(arguments, visit),
        }
    }
}

impl TranscriptSource {
    /// The name in flags and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Haft => "haft",
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }
}

/// The arguments, or their text where they are nested too deep for what reads them next.
pub(super) fn bounded_arguments(arguments: Value) -> Value {
    if is_deeper_than(&arguments, MAX_ARGUMENT_DEPTH) {
        Value::String(arguments.to_string())
    } else {
        arguments
    }
}

fn is_deeper_than(value: &Value, depth: usize) -> bool {
    let Some(below) = depth.checked_sub(1) else { return true };
    match value {
        Value::Array(items) => items.iter().any(|item| is_deeper_than(item, below)),
        Value::Object(members) => members.values().any(|member| is_deeper_than(member, below)),
        _ => false,
    }
}

fn any_leaf(value: &Value, visit: &mut dyn FnMut(&str) -> bool) -> bool {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter().any(|item| any_leaf(item, visit)),
        Value::Object(members) => members.values().any(|member| any_leaf(member, visit)),
        Value::Number(number) => visit(&number.to_string()),
        Value::Bool(_) | Value::Null => false,
    }
}
