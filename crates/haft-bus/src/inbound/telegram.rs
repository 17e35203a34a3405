//! `telegram`: updates of the Bot API, with the secret token that was given to `setWebhook`.

use haft_tool::{Secret, ToolError};

use super::signature::{is_token, required};
use super::{
    InboundError, InboundEvent, InboundFormat, InboundMessage, InboundRequest, id, not_empty, object,
};

/// Updates that Telegram posts.
pub(crate) struct TelegramInbound {
    secret_token: Secret,
}

impl TelegramInbound {
    pub(crate) fn new(secret_token: Secret) -> Result<Self, ToolError> {
        not_empty(secret_token.expose(), "secret_token")?;
        Ok(Self { secret_token })
    }
}

impl InboundFormat for TelegramInbound {
    fn receive(&self, request: &InboundRequest<'_>) -> Result<InboundEvent, InboundError> {
        let given = required(request, "x-telegram-bot-api-secret-token")?;
        if !is_token(self.secret_token.expose(), given) {
            return Err(InboundError::unauthorized("The secret token is wrong"));
        }
        let update = object(request.body)?;
        let Some(message_id) = id(&update["update_id"]) else {
            return Err(InboundError::invalid("update_id: expected a number"));
        };
        let message = &update["message"];
        if message.is_null() {
            return Ok(InboundEvent::Ignored("the update has no new message"));
        }
        let Some(chat_id) = id(&message["chat"]["id"]) else {
            return Err(InboundError::invalid("message.chat.id: expected a number"));
        };
        let from = &message["from"];
        if from["is_bot"] == true {
            return Ok(InboundEvent::Ignored("the message is a bot's"));
        }
        let text = message["text"].as_str().or_else(|| message["caption"].as_str()).unwrap_or_default();
        Ok(InboundEvent::Message(InboundMessage {
            message_id,
            chat_id,
            sender: id(&from["id"]),
            text: text.to_owned(),
        }))
    }
}
