//! `discord`: messages of a bot or of a webhook.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use haft_tool::{Http, HttpResponse, Message, Secret, ToolError, json, now_ms, retry_after, seconds};
use url::Url;

use super::webhook::parse_webhook_url;
use crate::chat_api::{ChatApi, is_success, json_body, require_text};
use crate::split::send_parts;
use crate::{Channel, WaitToRetry};

pub(crate) const DEFAULT_URL: &str = "https://discord.com/api/v10";
const MAX_MESSAGE_UTF16_UNITS: usize = 2_000;
/// Discord requires a user agent of this form.
const USER_AGENT: &str =
    concat!("DiscordBot (https://crates.io/crates/haft, ", env!("CARGO_PKG_VERSION"), ")");
/// The message flag `SUPPRESS_EMBEDS`. An embed would make Discord fetch the URLs in the text.
const SUPPRESS_EMBEDS_FLAG: u32 = 1 << 2;

enum DiscordAuth {
    /// `chat_id` is the number of a channel.
    Bot { token: Secret, base_url: String },
    /// `chat_id` is the number of a thread, or `default` for the webhook's own channel.
    Webhook { url: Url },
}

/// A Discord bot or webhook.
pub struct Discord {
    api: ChatApi,
    auth: DiscordAuth,
    sent: AtomicU64,
}

impl Discord {
    /// Creates a channel for the bot with this token. `url` replaces the address of Discord's API.
    pub fn bot(http: Arc<dyn Http>, token: Secret, url: Option<&str>) -> Self {
        let base_url = url.unwrap_or(DEFAULT_URL).trim_end_matches('/').to_owned();
        Self::new(http, token.clone(), DiscordAuth::Bot { token, base_url })
    }

    /// Creates a channel for the webhook with this URL, which contains its key.
    pub fn webhook(http: Arc<dyn Http>, url: &Secret) -> Result<Self, ToolError> {
        let parsed = parse_webhook_url(url)?;
        let key = parsed.path_segments().and_then(Iterator::last).map(Secret::new);
        Ok(Self::new(http, key.unwrap_or_else(|| url.clone()), DiscordAuth::Webhook { url: parsed }))
    }

    fn new(http: Arc<dyn Http>, secret: Secret, auth: DiscordAuth) -> Self {
        let api = ChatApi { name: "Discord", http, secret: Some(secret), retry_delay };
        Self { api, auth, sent: AtomicU64::new(0) }
    }

    fn send(&self, chat: &str, text: &str, wait: &mut WaitToRetry<'_>) -> Result<(), ToolError> {
        // A text may mention single users, but not roles or everyone.
        let mut body =
            json!({"content": text, "flags": SUPPRESS_EMBEDS_FLAG, "allowed_mentions": {"parse": ["users"]}});
        let mut headers = vec![("User-Agent", USER_AGENT.to_owned())];
        let url = match &self.auth {
            DiscordAuth::Bot { token, base_url } => {
                headers.push(("Authorization", format!("Bot {}", token.expose())));
                // Discord ignores a retry with the nonce of a message that it has.
                body["nonce"] = self.nonce(text).into();
                body["enforce_nonce"] = true.into();
                format!("{base_url}/channels/{chat}/messages")
            }
            DiscordAuth::Webhook { url } => {
                let mut url = url.clone();
                url.query_pairs_mut().append_pair("wait", "true");
                if chat.parse::<u64>().is_ok() {
                    url.query_pairs_mut().append_pair("thread_id", chat);
                }
                url.into()
            }
        };
        let response = self.api.post(url, &headers, &body, wait)?;
        if is_success(&response) {
            return Ok(());
        }
        Err(self.api.error(&response, json_body(&response)["message"].as_str()))
    }

    /// Returns a unique string of at most 25 characters.
    fn nonce(&self, text: &str) -> String {
        let mut hasher = DefaultHasher::new();
        (now_ms(), self.sent.fetch_add(1, Ordering::Relaxed), std::process::id(), text).hash(&mut hasher);
        format!("haft{:016x}", hasher.finish())
    }
}

impl Channel for Discord {
    fn check(&self, message: &Message) -> Result<(), ToolError> {
        require_text(&message.content)?;
        let chat = message.chat_id.as_str();
        let expected = match self.auth {
            _ if chat.parse::<u64>().is_ok() => return Ok(()),
            DiscordAuth::Webhook { .. } if matches!(chat, "" | "default") => return Ok(()),
            DiscordAuth::Bot { .. } => "the number of a channel",
            DiscordAuth::Webhook { .. } => "\"default\" or the number of a thread, because this is a webhook",
        };
        Err(ToolError::invalid_arguments(format!("chat_id: expected {expected}, got {chat:?}")))
    }

    fn deliver(&self, message: &Message, wait: &mut WaitToRetry<'_>) -> Result<(), ToolError> {
        send_parts(&message.content, MAX_MESSAGE_UTF16_UNITS, char::len_utf16, |part| {
            self.send(&message.chat_id, part, wait)
        })
    }
}

fn retry_delay(response: &HttpResponse) -> Option<Duration> {
    if response.status != 429 {
        return None;
    }
    let body = json_body(response)["retry_after"].as_f64();
    let from_body = body.and_then(|delay| Duration::try_from_secs_f64(delay).ok());
    let from_header = || response.header("x-ratelimit-reset-after").and_then(seconds);
    from_body.or_else(from_header).or_else(|| retry_after(response))
}
