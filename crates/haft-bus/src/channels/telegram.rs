//! `telegram`: a bot's messages by `sendMessage`.

use std::sync::Arc;
use std::time::Duration;

use haft_tool::{Http, HttpResponse, Message, Secret, ToolError, Value, json, retry_after};

use crate::post::{Post, has_words, json_of, partly};
use crate::split::pieces;
use crate::{Channel, Waiting};

const HOME: &str = "https://api.telegram.org";
const MOST: usize = 4_096;

/// A Telegram bot. `chat_id` is a chat's number, or the `@name` of a public channel.
pub struct Telegram {
    post: Post,
    token: Secret,
    home: String,
}

impl Telegram {
    /// The bot with this token, at `url` if that is not Telegram's own.
    pub fn new(http: Arc<dyn Http>, token: Secret, url: Option<&str>) -> Self {
        let post = Post { name: "Telegram", http, secret: Some(token.clone()), asked };
        Self { post, token, home: url.unwrap_or(HOME).trim_end_matches('/').to_owned() }
    }

    fn send(&self, chat: &str, text: &str, wait: &mut Waiting<'_>) -> Result<(), ToolError> {
        let url = format!("{}/bot{}/sendMessage", self.home, self.token.expose());
        let mut chat = chat.to_owned();
        for moved in [false, true] {
            // Without previews: fetching them would tell others what an address in the text holds.
            let body = json!({"chat_id": chat, "text": text, "link_preview_options": {"is_disabled": true}});
            let answer = self.post.send(url.clone(), &[], &body, wait)?;
            let said = json_of(&answer);
            if said["ok"] == Value::Bool(true) {
                return Ok(());
            }
            match said.pointer("/parameters/migrate_to_chat_id").and_then(Value::as_i64) {
                // A group that grew has a new number.
                Some(new) if !moved => chat = new.to_string(),
                _ => return Err(self.post.refused(&answer, said["description"].as_str())),
            }
        }
        Ok(())
    }
}

impl Channel for Telegram {
    fn check(&self, message: &Message) -> Result<(), ToolError> {
        has_words(&message.content)?;
        let chat = &message.chat_id;
        if chat.parse::<i64>().is_err() && !(chat.starts_with('@') && chat.len() > 1) {
            return Err(ToolError::invalid_arguments(format!(
                "chat_id: expected a chat's number or a public channel's @name, got {chat:?}"
            )));
        }
        Ok(())
    }

    fn deliver(&self, message: &Message, wait: &mut Waiting<'_>) -> Result<(), ToolError> {
        let parts = pieces(&message.content, MOST, char::len_utf16);
        // A piece without words would be refused, and nobody would miss it.
        for (sent, part) in parts.iter().enumerate().filter(|(_, part)| !part.trim().is_empty()) {
            self.send(&message.chat_id, part, wait).map_err(|error| partly(error, sent, parts.len()))?;
        }
        Ok(())
    }
}

fn asked(answer: &HttpResponse) -> Option<Duration> {
    let named = json_of(answer).pointer("/parameters/retry_after").and_then(Value::as_u64);
    named.map(Duration::from_secs).or_else(|| retry_after(answer))
}
