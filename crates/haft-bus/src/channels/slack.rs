//! `slack`: a bot's messages by `chat.postMessage`.

use std::sync::Arc;

use haft_tool::{ErrorKind, Http, Message, Secret, ToolError, Value, json, retry_after};

use crate::post::{Post, has_words, json_of, partly};
use crate::split::pieces;
use crate::{Channel, Waiting};

const HOME: &str = "https://slack.com/api";
const MOST: usize = 40_000;

/// A Slack app. `chat_id` is a conversation's id, for example `C024BE91L`.
pub struct Slack {
    post: Post,
    token: Secret,
    home: String,
}

impl Slack {
    /// The app with this bot token, at `url` if that is not Slack's own.
    pub fn new(http: Arc<dyn Http>, token: Secret, url: Option<&str>) -> Self {
        let post = Post { name: "Slack", http, secret: Some(token.clone()), asked: retry_after };
        Self { post, token, home: url.unwrap_or(HOME).trim_end_matches('/').to_owned() }
    }

    fn send(&self, chat: &str, text: &str, wait: &mut Waiting<'_>) -> Result<(), ToolError> {
        let key = [("Authorization", format!("Bearer {}", self.token.expose()))];
        // Without previews: fetching them would tell others what an address in the text holds.
        let body = json!({
            "channel": chat, "text": escaped(text), "unfurl_links": false, "unfurl_media": false,
        });
        let answer = self.post.send(format!("{}/chat.postMessage", self.home), &key, &body, wait)?;
        let said = json_of(&answer);
        if said["ok"] == Value::Bool(true) {
            return Ok(());
        }
        let mut error = self.post.refused(&answer, said["error"].as_str());
        // Slack says no with a status that says yes.
        if answer.status == 200 {
            let words = said["error"].as_str().unwrap_or("an answer that is not Slack's");
            error.message = self.post.covered(&format!("Slack refused the message: {words}"));
            error.kind = match words {
                "channel_not_found" | "is_archived" | "msg_too_long" | "no_text" => {
                    ErrorKind::InvalidArguments
                }
                "invalid_auth" | "not_authed" | "token_revoked" | "account_inactive" | "missing_scope"
                | "not_in_channel" | "restricted_action" => ErrorKind::PermissionDenied,
                _ => ErrorKind::ExecutionFailed,
            };
        }
        Err(error)
    }
}

impl Channel for Slack {
    fn check(&self, message: &Message) -> Result<(), ToolError> {
        has_words(&message.content)?;
        if message.chat_id.trim().is_empty() {
            return Err(ToolError::invalid_arguments(
                "chat_id: expected a conversation's id such as C024BE91L",
            ));
        }
        Ok(())
    }

    fn deliver(&self, message: &Message, wait: &mut Waiting<'_>) -> Result<(), ToolError> {
        let parts = pieces(&message.content, MOST, width);
        for (sent, part) in parts.iter().enumerate().filter(|(_, part)| !part.trim().is_empty()) {
            self.send(&message.chat_id, part, wait).map_err(|error| partly(error, sent, parts.len()))?;
        }
        Ok(())
    }
}

/// Slack's own signs as plain ones, so that no text calls everybody by `<!channel>`.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn width(character: char) -> usize {
    match character {
        '&' => 5,
        '<' | '>' => 4,
        other => other.len_utf16(),
    }
}
