//! The conversation as one provider may see it.

use std::collections::{HashMap, HashSet};

use super::Codec;
use crate::{AssistantMessage, AssistantPart, ChatMessage, Conversation};

/// The conversation as one provider may see it: which answers are its own, and which ids its calls have there.
pub(super) struct ProviderHistory<'a> {
    conversation: &'a Conversation,
    wire: &'static str,
    provider: &'a str,
    /// The provider's ids of its own calls, by the ids that are unique within the conversation.
    wire_ids: HashMap<&'a str, Option<&'a str>>,
}

impl<'a> ProviderHistory<'a> {
    pub(super) fn new(conversation: &'a Conversation, codec: &'a Codec) -> Self {
        let (wire, provider) = (codec.wire.name(), codec.provider.as_str());
        let mut history = Self { conversation, wire, provider, wire_ids: HashMap::new() };
        for message in &conversation.messages {
            let ChatMessage::Assistant(answer) = message else { continue };
            let ids: Vec<&str> = answer.calls().filter_map(|call| call.wire_id.as_deref()).collect();
            let is_ambiguous = ids.iter().collect::<HashSet<_>>().len() < ids.len();
            if history.is_own(answer) && !is_ambiguous {
                let own = answer.calls().map(|call| (call.id.as_str(), call.wire_id.as_deref()));
                history.wire_ids.extend(own);
            }
        }
        history
    }

    /// The sections of the system prompt that say something.
    pub(super) fn system(&self) -> impl Iterator<Item = &'a str> {
        self.conversation.system.iter().map(String::as_str).filter(|section| !section.trim().is_empty())
    }

    /// The system prompt as one text.
    pub(super) fn system_text(&self) -> String {
        self.system().collect::<Vec<_>>().join("\n\n")
    }

    /// The messages.
    pub(super) fn messages(&self) -> &'a [ChatMessage] {
        &self.conversation.messages
    }

    /// Whether an answer came from the same provider in the same format, so that it gets its own JSON back.
    pub(super) fn is_own(&self, answer: &AssistantMessage) -> bool {
        answer.origin.wire == self.wire && answer.origin.provider == self.provider
    }

    /// The parts of an answer that the provider may see: what another one alone understands is left out.
    pub(super) fn parts<'b>(&self, answer: &'b AssistantMessage) -> Vec<&'b AssistantPart> {
        let is_own = self.is_own(answer);
        let is_for_all =
            |part: &&AssistantPart| matches!(part, AssistantPart::Text { .. } | AssistantPart::ToolCall(_));
        answer.parts.iter().filter(|part| is_own || is_for_all(part)).collect()
    }

    /// The id that the provider knows a call by; `None` if it sent none.
    pub(super) fn known_id(&self, call_id: &'a str) -> Option<&'a str> {
        self.wire_ids.get(call_id).copied().unwrap_or(Some(call_id))
    }

    /// The id to send where there must be one.
    pub(super) fn id(&self, call_id: &'a str) -> &'a str {
        self.known_id(call_id).unwrap_or(call_id)
    }
}
