//! The conversation of a transcript as messages that a model can be sent.

use std::borrow::Cow;
use std::collections::HashSet;

use super::{EntryBody, Transcript, TranscriptEntry};

/// What the model is told about a call without a result.
const NO_RESULT: &str =
    "interrupted: what this call did is not known; look at the state before you repeat it.";

/// Who speaks in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageRole {
    /// The user and the results of calls.
    User,
    /// The model.
    Assistant,
}

/// One message: a user's has results before what was said, a model's has texts and calls.
#[derive(Debug, Clone, PartialEq)]
pub struct TranscriptMessage<'a> {
    /// Who speaks.
    pub role: MessageRole,
    /// When the first part of it was made.
    pub at: Option<u64>,
    /// Its parts.
    pub parts: Vec<Cow<'a, EntryBody>>,
}

impl Transcript {
    /// The conversation as it is now: it begins with the user, the roles alternate, and each call has one result in the message after
    /// it. Reasoning is left out, because only its own provider would accept it.
    pub fn messages(&self) -> Vec<TranscriptMessage<'_>> {
        let mut builder = MessagesBuilder::default();
        for entry in self.entries.iter().filter(|entry| entry.is_live) {
            builder.add(entry);
        }
        builder.close_answer();
        builder.messages
    }
}

#[derive(Default)]
struct MessagesBuilder<'a> {
    messages: Vec<TranscriptMessage<'a>>,
    /// The calls of the last answer that have no result yet.
    open: Vec<&'a str>,
    known: HashSet<&'a str>,
}

impl<'a> MessagesBuilder<'a> {
    fn add(&mut self, entry: &'a TranscriptEntry) {
        match &entry.body {
            EntryBody::Reasoning { .. } => {}
            EntryBody::Result { call_id, .. } => {
                let Some(at) = self.open.iter().position(|id| id == call_id) else { return };
                self.open.remove(at);
                let message = self.message(MessageRole::User, entry.at);
                // Results come before what was said.
                let is_result = |part: &Cow<'_, EntryBody>| matches!(**part, EntryBody::Result { .. });
                let at =
                    message.parts.iter().position(|part| !is_result(part)).unwrap_or(message.parts.len());
                message.parts.insert(at, Cow::Borrowed(&entry.body));
            }
            EntryBody::User { text, images } if text.trim().is_empty() && images.is_empty() => {}
            EntryBody::Assistant { text } | EntryBody::Notice { text } if text.trim().is_empty() => {}
            EntryBody::User { .. } | EntryBody::Notice { .. } => self.push(MessageRole::User, entry),
            EntryBody::Assistant { .. } => self.push(MessageRole::Assistant, entry),
            EntryBody::Call { id, .. } => {
                if self.known.insert(id) {
                    self.push(MessageRole::Assistant, entry);
                    self.open.push(id);
                }
            }
        }
    }

    fn push(&mut self, role: MessageRole, entry: &'a TranscriptEntry) {
        let is_next = self.messages.last().is_some_and(|last| last.role == MessageRole::User);
        if role == MessageRole::Assistant && is_next {
            self.close_answer();
        }
        if role == MessageRole::Assistant && self.messages.is_empty() {
            // A model is asked before it answers.
            let text = "(the conversation begins with an answer)".to_owned();
            let message = self.message(MessageRole::User, entry.at);
            message.parts.push(Cow::Owned(EntryBody::Notice { text }));
        }
        self.message(role, entry.at).parts.push(Cow::Borrowed(&entry.body));
    }

    /// The last message, if it has this role, else a new one.
    #[expect(clippy::indexing_slicing, reason = "the list was just made to have a last element")]
    fn message(&mut self, role: MessageRole, at: Option<u64>) -> &mut TranscriptMessage<'a> {
        if self.messages.last().is_none_or(|last| last.role != role) {
            self.messages.push(TranscriptMessage { role, at, parts: Vec::new() });
        }
        let last = self.messages.len() - 1;
        &mut self.messages[last]
    }

    /// Gives the calls that have no result one.
    fn close_answer(&mut self) {
        for id in std::mem::take(&mut self.open) {
            let missing = EntryBody::Result {
                call_id: id.to_owned(),
                text: NO_RESULT.to_owned(),
                images: Vec::new(),
                is_error: true,
                receipt: None,
            };
            let message = self.message(MessageRole::User, None);
            message.parts.insert(0, Cow::Owned(missing));
        }
    }
}
