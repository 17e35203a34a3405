//! `slack`: messages of a bot, by `chat.postMessage`.

use std::sync::Arc;

use haft_tool::{ErrorKind, Http, Message, Secret, ToolError, json, retry_after};

use crate::chat_api::{ChatApi, is_success, json_body, require_text};
use crate::split::send_parts;
use crate::{Channel, WaitToRetry};

pub(crate) const DEFAULT_URL: &str = "https://slack.com/api";
const MAX_MESSAGE_UTF16_UNITS: usize = 40_000;

/// A Slack app. `chat_id` is the id of a conversation, for example `C024BE91L`.
pub struct Slack {
    api: ChatApi,
    token: Secret,
    base_url: String,
}

impl Slack {
    /// Creates a channel for the app with this bot token. `url` replaces the address of Slack's API.
    pub fn new(http: Arc<dyn Http>, token: Secret, url: Option<&str>) -> Self {
        let api = ChatApi { name: "Slack", http, secret: Some(token.clone()), retry_delay: retry_after };
        Self { api, token, base_url: url.unwrap_or(DEFAULT_URL).trim_end_matches('/').to_owned() }
    }

    fn send(&self, chat: &str, text: &str, wait: &mut WaitToRetry<'_>) -> Result<(), ToolError> {
        let headers = [("Authorization", format!("Bearer {}", self.token.expose()))];
        // Unfurling would make Slack fetch the URLs in the text.
        let body = json!({
            "channel": chat, "text": escape(text), "unfurl_links": false, "unfurl_media": false,
        });
        let response = self.api.post(format!("{}/chat.postMessage", self.base_url), &headers, &body, wait)?;
        let body = json_body(&response);
        if body["ok"] == true {
            return Ok(());
        }
        let code = body["error"].as_str();
        if !is_success(&response) {
            return Err(self.api.error(&response, code));
        }
        // Slack reports most errors with HTTP 200.
        let code = code.unwrap_or("the response is not Slack's");
        let kind = match code {
            "channel_not_found" | "is_archived" | "msg_too_long" | "no_text" => ErrorKind::InvalidArguments,
            "invalid_auth" | "not_authed" | "token_revoked" | "account_inactive" | "missing_scope"
            | "not_in_channel" | "restricted_action" => ErrorKind::PermissionDenied,
            _ => ErrorKind::ExecutionFailed,
        };
        Err(ToolError::new(kind, self.api.redact(&format!("Slack rejected the message: {code}"))))
    }
}

impl Channel for Slack {
    fn check(&self, message: &Message) -> Result<(), ToolError> {
        require_text(&message.content)?;
        if message.chat_id.trim().is_empty() {
            return Err(ToolError::invalid_arguments(
                "chat_id: expected the id of a conversation such as C024BE91L",
            ));
        }
        Ok(())
    }

    fn deliver(&self, message: &Message, wait: &mut WaitToRetry<'_>) -> Result<(), ToolError> {
        send_parts(&message.content, MAX_MESSAGE_UTF16_UNITS, escaped_width, |part| {
            self.send(&message.chat_id, part, wait)
        })
    }
}

/// Escapes Slack's control characters, so that `<!channel>` in a text notifies no one.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The UTF-16 units of an escaped character.
fn escaped_width(character: char) -> usize {
    match character {
        '&' => "&amp;".len(),
        '<' | '>' => "&lt;".len(),
        other => other.len_utf16(),
    }
}
