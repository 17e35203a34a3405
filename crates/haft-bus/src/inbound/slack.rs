//! `slack`: events of the Events API, signed with the app's signing secret.

use haft_tool::{Secret, ToolError, json};
use ring::hmac;

use super::signature::{hex, hmac_key, is_signed_by, recent_timestamp, required, wrong_signature};
use super::{
    InboundError, InboundEvent, InboundFormat, InboundMessage, InboundRequest, id, not_empty, object,
};

/// Events that Slack posts.
pub(crate) struct SlackInbound {
    key: hmac::Key,
}

impl SlackInbound {
    pub(crate) fn new(signing_secret: &Secret) -> Result<Self, ToolError> {
        not_empty(signing_secret.expose(), "signing_secret")?;
        Ok(Self { key: hmac_key(signing_secret.expose().as_bytes()) })
    }

    fn check(&self, request: &InboundRequest<'_>) -> Result<(), InboundError> {
        let time = recent_timestamp(request, "x-slack-request-timestamp")?;
        let given = required(request, "x-slack-signature")?;
        let signature = given.strip_prefix("v0=").and_then(hex).ok_or_else(wrong_signature)?;
        let parts: [&[u8]; 4] = [b"v0:", time.as_bytes(), b":", request.body];
        if is_signed_by(&self.key, &parts, &signature) { Ok(()) } else { Err(wrong_signature()) }
    }
}

impl InboundFormat for SlackInbound {
    fn receive(&self, request: &InboundRequest<'_>) -> Result<InboundEvent, InboundError> {
        self.check(request)?;
        let body = object(request.body)?;
        match body["type"].as_str() {
            Some("url_verification") => {
                let challenge = body["challenge"].as_str().unwrap_or_default();
                return Ok(InboundEvent::Answer(json!({ "challenge": challenge })));
            }
            Some("event_callback") => {}
            _ => return Ok(InboundEvent::Ignored("it is no event")),
        }
        let event = &body["event"];
        if !matches!(event["type"].as_str(), Some("message" | "app_mention")) {
            return Ok(InboundEvent::Ignored("the event is no message"));
        }
        // Its own messages come back as events, which would never end.
        if !event["bot_id"].is_null() || !event["user"].is_string() {
            return Ok(InboundEvent::Ignored("the message is a bot's"));
        }
        if !matches!(event["subtype"].as_str(), None | Some("file_share" | "thread_broadcast")) {
            return Ok(InboundEvent::Ignored("the message is not new"));
        }
        let (Some(chat_id), Some(time)) = (id(&event["channel"]), id(&event["ts"])) else {
            return Err(InboundError::invalid("event.channel and event.ts: expected strings"));
        };
        Ok(InboundEvent::Message(InboundMessage {
            // A message that mentions the app is two events with two ids, but one time.
            message_id: format!("{chat_id} {time}"),
            chat_id,
            sender: id(&event["user"]),
            text: unescape(event["text"].as_str().unwrap_or_default()),
        }))
    }
}

/// Undoes Slack's escapes of the three control characters.
fn unescape(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}
