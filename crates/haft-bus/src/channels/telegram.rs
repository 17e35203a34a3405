//! `telegram`: messages of a bot, by `sendMessage`.

use std::sync::Arc;
use std::time::Duration;

use haft_tool::{Http, HttpResponse, Message, Secret, ToolError, Value, json, retry_after};

use crate::chat_api::{ChatApi, json_body, require_text};
use crate::split::send_parts;
use crate::{Channel, WaitToRetry};

pub(crate) const DEFAULT_URL: &str = "https://api.telegram.org";
const MAX_MESSAGE_UTF16_UNITS: usize = 4_096;

/// A Telegram bot. `chat_id` is the number of a chat, or the `@name` of a public channel.
pub struct Telegram {
    api: ChatApi,
    token: Secret,
    base_url: String,
}

impl Telegram {
    /// Creates a channel for the bot with this token. `url` replaces the address of Telegram's API.
    pub fn new(http: Arc<dyn Http>, token: Secret, url: Option<&str>) -> Self {
        let api = ChatApi { name: "Telegram", http, secret: Some(token.clone()), retry_delay };
        Self { api, token, base_url: url.unwrap_or(DEFAULT_URL).trim_end_matches('/').to_owned() }
    }

    fn send(&self, chat: &str, text: &str, wait: &mut WaitToRetry<'_>) -> Result<(), ToolError> {
        let response = self.post(chat, text, wait)?;
        // A group that became a supergroup has a new number.
        let new_chat = json_body(&response).pointer("/parameters/migrate_to_chat_id").and_then(Value::as_i64);
        let response = match new_chat {
            Some(chat) => self.post(&chat.to_string(), text, wait)?,
            None => response,
        };
        let body = json_body(&response);
        if body["ok"] == true {
            return Ok(());
        }
        Err(self.api.error(&response, body["description"].as_str()))
    }

    fn post(&self, chat: &str, text: &str, wait: &mut WaitToRetry<'_>) -> Result<HttpResponse, ToolError> {
        let url = format!("{}/bot{}/sendMessage", self.base_url, self.token.expose());
        // A preview would make Telegram fetch the URLs in the text.
        let body = json!({"chat_id": chat, "text": text, "link_preview_options": {"is_disabled": true}});
        self.api.post(url, &[], &body, wait)
    }
}

impl Channel for Telegram {
    fn check(&self, message: &Message) -> Result<(), ToolError> {
        require_text(&message.content)?;
        let chat = &message.chat_id;
        if chat.parse::<i64>().is_err() && !(chat.starts_with('@') && chat.len() > 1) {
            return Err(ToolError::invalid_arguments(format!(
                "chat_id: expected the number of a chat or the @name of a public channel, got {chat:?}"
            )));
        }
        Ok(())
    }

    fn deliver(&self, message: &Message, wait: &mut WaitToRetry<'_>) -> Result<(), ToolError> {
        send_parts(&message.content, MAX_MESSAGE_UTF16_UNITS, char::len_utf16, |part| {
            self.send(&message.chat_id, part, wait)
        })
    }
}

fn retry_delay(response: &HttpResponse) -> Option<Duration> {
    let seconds = json_body(response).pointer("/parameters/retry_after").and_then(Value::as_u64);
    seconds.map(Duration::from_secs).or_else(|| retry_after(response))
}
