//! `message`: words for people somewhere else.

use haft_tool::{
    Bound, Effect, JsonSchema, Message, Output, Planning, SideEffect, Tool, ToolError, Value, World, json,
    result_schema_of,
};
use serde::{Deserialize, Serialize};

/// Send a message to a chat, for example on Telegram, Slack or Discord. The answer says that it is on its way, not that it arrived.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The channel, for example "slack".
    channel: String,
    /// The chat or conversation there.
    chat_id: String,
    /// The message.
    content: String,
}

#[derive(Serialize, JsonSchema)]
struct Given {
    /// That it is on its way: `sent`.
    status: &'static str,
    /// The channel.
    channel: String,
    /// The chat there.
    chat_id: String,
    /// How many bytes were sent.
    content_length: usize,
}

pub(super) struct SendMessage;

impl Tool for SendMessage {
    type Input = Input;

    fn name(&self) -> &'static str {
        "message"
    }

    fn gives(&self) -> Option<fn() -> Value> {
        Some(result_schema_of::<Given>)
    }

    fn side_effect(&self) -> SideEffect {
        SideEffect::Network
    }

    fn plan(&self, input: &Input, _planning: &Planning) -> Result<Vec<Effect>, ToolError> {
        for (field, value) in [("channel", &input.channel), ("content", &input.content)] {
            if value.trim().is_empty() {
                return Err(ToolError::invalid_arguments(format!(
                    "{field}: expected a text, got an empty one"
                )));
            }
        }
        Ok(vec![Effect::Send { channel: input.channel.clone() }])
    }

    async fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let Input { channel, chat_id, content } = input;
        let message = Message { channel, chat_id, content };
        world.host().send(&message).await?;
        Ok(Output::json(json!(Given {
            status: "sent",
            channel: message.channel,
            chat_id: message.chat_id,
            // In bytes, as the document counts everywhere else.
            content_length: message.content.len(),
        })))
    }

    fn bound(&self) -> Bound {
        super::limit()
    }
}
