//! `message`: words for people somewhere else.

use haft_tool::{
    Bound, Effect, EffectKind, JsonSchema, Message, Output, Planned, Planning, Tool, ToolError, Value, World,
    json, result_schema_of,
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
    const NAME: &'static str = "message";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Send];
    const BOUND: Bound = super::BOUND;
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<Given>);
    type Input = Input;
    type Plan = Message;

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<Message>, ToolError> {
        let Input { channel, chat_id, content } = input;
        for (field, value) in [("channel", &channel), ("content", &content)] {
            if value.trim().is_empty() {
                return Err(ToolError::invalid_arguments(format!(
                    "{field}: expected a text, got an empty one"
                )));
            }
        }
        let effect = Effect::Send { channel: channel.clone() };
        Ok(Planned::new([effect], Message { channel, chat_id, content }))
    }

    fn perform(&self, message: Message, world: &dyn World) -> Result<Output, ToolError> {
        world.host().send(&message)?;
        Ok(Output::json(json!(Given {
            status: "sent",
            channel: message.channel,
            chat_id: message.chat_id,
            // In bytes, as the document counts everywhere else.
            content_length: message.content.len(),
        })))
    }
}
