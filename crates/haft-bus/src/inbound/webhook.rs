//! `webhook`: `{"message_id", "chat_id", "text", "sender"?}`, signed as Standard Webhooks (standardwebhooks.com) prescribes.

use haft_tool::{Secret, ToolError, Value};
use ring::hmac;

use super::signature::{base64, hmac_key, is_signed_by, recent_timestamp, required, wrong_signature};
use super::{
    InboundError, InboundEvent, InboundFormat, InboundMessage, InboundRequest, id, not_empty, object,
};

/// The prefix of secrets whose rest is base64.
const SECRET_PREFIX: &str = "whsec_";

/// Messages that any program sends.
pub(crate) struct WebhookInbound {
    /// `None` if requests are not signed.
    key: Option<hmac::Key>,
}

impl WebhookInbound {
    /// Requests signed with this secret: `whsec_` and base64, or any text.
    pub(crate) fn signed(secret: &Secret) -> Result<Self, ToolError> {
        let text = secret.expose();
        not_empty(text, "signing_secret")?;
        let bytes = match text.strip_prefix(SECRET_PREFIX) {
            Some(encoded) => base64(encoded).filter(|bytes| !bytes.is_empty()).ok_or_else(|| {
                ToolError::invalid_arguments("signing_secret: what follows whsec_ is not base64")
            })?,
            None => text.as_bytes().to_vec(),
        };
        Ok(Self { key: Some(hmac_key(&bytes)) })
    }

    /// Requests without signatures.
    pub(crate) fn unsigned() -> Self {
        Self { key: None }
    }

    fn check(key: &hmac::Key, request: &InboundRequest<'_>) -> Result<(), InboundError> {
        let message = required(request, "webhook-id")?;
        let time = recent_timestamp(request, "webhook-timestamp")?;
        let given = required(request, "webhook-signature")?;
        let parts: [&[u8]; 5] = [message.as_bytes(), b".", time.as_bytes(), b".", request.body];
        // While a secret is being replaced, a sender signs with both.
        let mut signatures = given.split(' ').filter_map(|one| one.strip_prefix("v1,")).filter_map(base64);
        if signatures.any(|signature| is_signed_by(key, &parts, &signature)) {
            return Ok(());
        }
        Err(wrong_signature())
    }
}

impl InboundFormat for WebhookInbound {
    fn receive(&self, request: &InboundRequest<'_>) -> Result<InboundEvent, InboundError> {
        if let Some(key) = &self.key {
            Self::check(key, request)?;
        }
        let body = object(request.body)?;
        let field = |name: &str| {
            id(&body[name]).ok_or_else(|| InboundError::invalid(format!("{name}: expected a string")))
        };
        let Some(text) = body["text"].as_str().filter(|text| !text.trim().is_empty()) else {
            return Err(InboundError::invalid("text: expected a string that is not empty"));
        };
        if !matches!(body["sender"], Value::Null | Value::String(_) | Value::Number(_)) {
            return Err(InboundError::invalid("sender: expected a string"));
        }
        Ok(InboundEvent::Message(InboundMessage {
            message_id: field("message_id")?,
            chat_id: field("chat_id")?,
            sender: id(&body["sender"]),
            text: text.to_owned(),
        }))
    }

    fn not_allowed(&self) -> Option<Value> {
        None
    }
}
