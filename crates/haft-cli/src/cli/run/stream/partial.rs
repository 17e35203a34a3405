//! The pieces of an answer as they arrive, in the form of Anthropic's API.

use std::sync::Arc;

use haft_model::{ModelEvent, ModelResponse};
use haft_tool::{Value, json};

use super::messages;
use super::session::HostSession;

/// Which block is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenBlock {
    Text,
    Thinking,
}

/// Writes `stream_event` messages.
pub(super) struct PartialMessages {
    session: Arc<HostSession>,
    is_begun: bool,
    open: Option<OpenBlock>,
    /// The number of the next block.
    index: usize,
}

impl PartialMessages {
    pub(super) fn new(session: Arc<HostSession>) -> Self {
        Self { session, is_begun: false, open: None, index: 0 }
    }

    pub(super) fn on_model(&mut self, event: &ModelEvent, model: &str, message_id: &str) {
        match event {
            ModelEvent::Started { model: named } => {
                self.begin(named.as_deref().unwrap_or(model), message_id);
            }
            ModelEvent::Text { delta } => {
                self.begin(model, message_id);
                self.open_block(OpenBlock::Text);
                self.delta(&json!({"type": "text_delta", "text": delta}));
            }
            ModelEvent::Reasoning { delta } => {
                self.begin(model, message_id);
                self.open_block(OpenBlock::Thinking);
                self.delta(&json!({"type": "thinking_delta", "thinking": delta}));
            }
            ModelEvent::CallComplete(call) => {
                self.begin(model, message_id);
                self.close_block();
                let block = json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}});
                self.send(
                    &json!({"type": "content_block_start", "index": self.index, "content_block": block}),
                );
                let input = messages::arguments(call).to_string();
                self.delta(&json!({"type": "input_json_delta", "partial_json": input}));
                self.send(&json!({"type": "content_block_stop", "index": self.index}));
                self.index += 1;
            }
            ModelEvent::Restarted => self.abandon(),
            _ => {}
        }
    }

    /// What arrived of the answer does not count, or no more of it comes.
    pub(super) fn abandon(&mut self) {
        self.close_block();
        if std::mem::take(&mut self.is_begun) {
            self.send(&json!({"type": "message_stop"}));
        }
    }

    /// The answer is complete.
    pub(super) fn end(&mut self, response: &ModelResponse) {
        self.close_block();
        if !std::mem::take(&mut self.is_begun) {
            return;
        }
        let has_calls = response.message.calls().next().is_some();
        let delta =
            json!({"stop_reason": messages::stop_word(&response.stop, has_calls), "stop_sequence": null});
        let usage = messages::usage(&response.usage);
        self.send(&json!({"type": "message_delta", "delta": delta, "usage": usage}));
        self.send(&json!({"type": "message_stop"}));
    }

    fn begin(&mut self, model: &str, message_id: &str) {
        if self.is_begun {
            return;
        }
        (self.is_begun, self.index) = (true, 0);
        self.send(&json!({"type": "message_start", "message": {
            "id": message_id, "type": "message", "role": "assistant", "model": model, "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 0, "output_tokens": 0},
        }}));
    }

    fn open_block(&mut self, kind: OpenBlock) {
        if self.open == Some(kind) {
            return;
        }
        self.close_block();
        self.open = Some(kind);
        let block = match kind {
            OpenBlock::Text => json!({"type": "text", "text": ""}),
            OpenBlock::Thinking => json!({"type": "thinking", "thinking": "", "signature": ""}),
        };
        self.send(&json!({"type": "content_block_start", "index": self.index, "content_block": block}));
    }

    fn close_block(&mut self) {
        if self.open.take().is_some() {
            self.send(&json!({"type": "content_block_stop", "index": self.index}));
            self.index += 1;
        }
    }

    fn delta(&self, delta: &Value) {
        self.send(&json!({"type": "content_block_delta", "index": self.index, "delta": delta}));
    }

    fn send(&self, event: &Value) {
        self.session.send(json!({"type": "stream_event", "event": event, "parent_tool_use_id": null}));
    }
}
