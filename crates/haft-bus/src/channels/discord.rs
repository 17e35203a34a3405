//! `discord`: a bot's messages, or those of a webhook.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use haft_tool::{Http, HttpResponse, Message, Secret, ToolError, json, now_ms, retry_after, seconds};
use url::Url;

use crate::post::{Post, has_words, json_of, partly};
use crate::split::pieces;
use crate::{Channel, Waiting};

const HOME: &str = "https://discord.com/api/v10";
const MOST: usize = 2_000;
/// Discord wants to know who is calling.
const AGENT: &str = concat!("DiscordBot (https://crates.io/crates/haft, ", env!("CARGO_PKG_VERSION"), ")");
/// The flag of messages without previews: fetching them would tell others what an address in the text holds.
const NO_PREVIEWS: u32 = 4;

enum Way {
    /// `chat_id` is the channel's number.
    Bot { token: Secret, home: String },
    /// `chat_id` is the number of a thread, or `default` for where the webhook writes.
    Webhook { url: Url },
}

/// A Discord bot or webhook.
pub struct Discord {
    post: Post,
    way: Way,
    sent: AtomicU64,
}

impl Discord {
    /// The bot with this token, at `url` if that is not Discord's own.
    pub fn bot(http: Arc<dyn Http>, token: Secret, url: Option<&str>) -> Self {
        let home = url.unwrap_or(HOME).trim_end_matches('/').to_owned();
        Self::new(http, token.clone(), Way::Bot { token, home })
    }

    /// The webhook with this address, which holds its key.
    pub fn webhook(http: Arc<dyn Http>, url: &Secret) -> Result<Self, ToolError> {
        let parsed = Url::parse(url.expose()).map_err(|error| {
            ToolError::invalid_arguments(format!("the webhook's address cannot be read: {error}"))
        })?;
        // The key is the last part of the path.
        let key = parsed.path_segments().and_then(Iterator::last).map(Secret::new);
        Ok(Self::new(http, key.unwrap_or_else(|| url.clone()), Way::Webhook { url: parsed }))
    }

    fn new(http: Arc<dyn Http>, secret: Secret, way: Way) -> Self {
        Self {
            post: Post { name: "Discord", http, secret: Some(secret), asked },
            way,
            sent: AtomicU64::new(0),
        }
    }

    fn send(&self, chat: &str, text: &str, wait: &mut Waiting<'_>) -> Result<(), ToolError> {
        // Nobody but single people is called by a text.
        let mut body =
            json!({"content": text, "flags": NO_PREVIEWS, "allowed_mentions": {"parse": ["users"]}});
        let mut headers = vec![("User-Agent", AGENT.to_owned())];
        let url = match &self.way {
            Way::Bot { token, home } => {
                headers.push(("Authorization", format!("Bot {}", token.expose())));
                // With it a repeated attempt makes no second message.
                body["nonce"] = self.nonce(text).into();
                body["enforce_nonce"] = true.into();
                format!("{home}/channels/{chat}/messages")
            }
            Way::Webhook { url } => {
                let mut url = url.clone();
                url.query_pairs_mut().append_pair("wait", "true");
                if chat.parse::<u64>().is_ok() {
                    url.query_pairs_mut().append_pair("thread_id", chat);
                }
                url.into()
            }
        };
        let answer = self.post.send(url, &headers, &body, wait)?;
        if (200..300).contains(&answer.status) {
            return Ok(());
        }
        Err(self.post.refused(&answer, json_of(&answer)["message"].as_str()))
    }

    /// A word of its own for each message, at most 25 characters long.
    fn nonce(&self, text: &str) -> String {
        let mut hasher = DefaultHasher::new();
        (now_ms(), self.sent.fetch_add(1, Ordering::Relaxed), std::process::id(), text).hash(&mut hasher);
        format!("haft{:016x}", hasher.finish())
    }
}

impl Channel for Discord {
    fn check(&self, message: &Message) -> Result<(), ToolError> {
        has_words(&message.content)?;
        let chat = message.chat_id.as_str();
        let fine =
            chat.parse::<u64>().is_ok() || matches!((&self.way, chat), (Way::Webhook { .. }, "" | "default"));
        if fine {
            return Ok(());
        }
        let expected = match self.way {
            Way::Bot { .. } => "a channel's number",
            Way::Webhook { .. } => "\"default\" or a thread's number, because this is a webhook",
        };
        Err(ToolError::invalid_arguments(format!("chat_id: expected {expected}, got {chat:?}")))
    }

    fn deliver(&self, message: &Message, wait: &mut Waiting<'_>) -> Result<(), ToolError> {
        let parts = pieces(&message.content, MOST, char::len_utf16);
        for (sent, part) in parts.iter().enumerate().filter(|(_, part)| !part.trim().is_empty()) {
            self.send(&message.chat_id, part, wait).map_err(|error| partly(error, sent, parts.len()))?;
        }
        Ok(())
    }
}

fn asked(answer: &HttpResponse) -> Option<Duration> {
    let named =
        json_of(answer)["retry_after"].as_f64().and_then(|wait| Duration::try_from_secs_f64(wait).ok());
    let header = || answer.header("x-ratelimit-reset-after").and_then(seconds);
    named.or_else(header).or_else(|| retry_after(answer)).filter(|_| answer.status == 429)
}
