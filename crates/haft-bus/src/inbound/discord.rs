//! `discord`: interactions, which are commands that users type, signed with Ed25519.

use haft_tool::{Secret, ToolError, Value, json};

use super::signature::{hex, is_signed_by_ed25519, recent_timestamp, required, wrong_signature};
use super::{InboundError, InboundEvent, InboundFormat, InboundMessage, InboundRequest, id, object};

const PING_CODE: u64 = 1;
const COMMAND_CODE: u64 = 2;
/// The type of a response with a message.
const MESSAGE_CODE: u64 = 4;
/// The message flag for one that only the sender sees.
const EPHEMERAL_FLAG: u64 = 1 << 6;

/// Interactions that Discord posts.
pub(crate) struct DiscordInbound {
    public_key: [u8; 32],
}

impl DiscordInbound {
    pub(crate) fn new(public_key: &Secret) -> Result<Self, ToolError> {
        let bytes = hex(public_key.expose().trim()).and_then(|bytes| bytes.try_into().ok());
        let public_key = bytes.ok_or_else(|| {
            ToolError::invalid_arguments("public_key: expected the 64 hexadecimal digits of the application")
        })?;
        Ok(Self { public_key })
    }

    fn check(&self, request: &InboundRequest<'_>) -> Result<(), InboundError> {
        let time = recent_timestamp(request, "x-signature-timestamp")?;
        let signature = hex(required(request, "x-signature-ed25519")?).ok_or_else(wrong_signature)?;
        let parts: [&[u8]; 2] = [time.as_bytes(), request.body];
        if is_signed_by_ed25519(&self.public_key, &parts, &signature) {
            Ok(())
        } else {
            Err(wrong_signature())
        }
    }
}

impl InboundFormat for DiscordInbound {
    fn receive(&self, request: &InboundRequest<'_>) -> Result<InboundEvent, InboundError> {
        self.check(request)?;
        let body = object(request.body)?;
        match body["type"].as_u64() {
            Some(PING_CODE) => return Ok(InboundEvent::Answer(json!({ "type": PING_CODE }))),
            Some(COMMAND_CODE) => {}
            _ => return Ok(InboundEvent::Answer(note("Only commands are supported."))),
        }
        let (Some(message_id), Some(chat_id)) = (id(&body["id"]), id(&body["channel_id"])) else {
            return Err(InboundError::invalid("id and channel_id: expected strings"));
        };
        let user = body.pointer("/member/user").unwrap_or(&body["user"]);
        let options = body["data"]["options"].as_array().map(Vec::as_slice).unwrap_or_default();
        let words: Vec<&str> = options.iter().filter_map(|option| option["value"].as_str()).collect();
        let text = if words.is_empty() {
            body["data"]["name"].as_str().unwrap_or_default().to_owned()
        } else {
            words.join("\n")
        };
        Ok(InboundEvent::Message(InboundMessage { message_id, chat_id, sender: id(&user["id"]), text }))
    }

    /// Discord waits three seconds for a response; the reply is a message of its own.
    fn accepted(&self) -> Value {
        note("Received.")
    }

    fn not_allowed(&self) -> Option<Value> {
        Some(note("You are not allowed to use this."))
    }
}

fn note(text: &str) -> Value {
    json!({"type": MESSAGE_CODE, "data": {"content": text, "flags": EPHEMERAL_FLAG}})
}
