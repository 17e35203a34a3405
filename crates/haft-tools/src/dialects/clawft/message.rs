//! `message`: a message to a chat.

use haft_tool::Message;
use haft_tool::prelude::*;

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
struct SentMessage {
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
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<SentMessage>);
    type Input = Input;
    type Plan = Message;

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<Message>, ToolError> {
        let Input { channel, chat_id, content } = input;
        for (field, value) in [("channel", &channel), ("content", &content)] {
            if value.trim().is_empty() {
                let message = format!("{field}: expected a text, got an empty one");
                return Err(ToolError::invalid_arguments(message));
            }
        }
        let effect = Effect::Send { channel: channel.clone() };
        Ok(Planned::new([effect], Message { channel, chat_id, content }))
    }

    fn perform(&self, message: Message, world: &dyn World) -> Result<Output, ToolError> {
        world.host().send(&message)?;
        let Message { channel, chat_id, content } = message;
        let content_length = content.len();
        Ok(Output::json(json!(SentMessage { status: "sent", channel, chat_id, content_length })))
    }
}
