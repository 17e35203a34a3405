//! `webhook`: posts messages as JSON to any URL.

use std::sync::Arc;

use haft_tool::{Http, Message, Secret, ToolError, json, retry_after};
use url::Url;

use crate::chat_api::{ChatApi, is_success};
use crate::{Channel, WaitToRetry};

/// Posts `{"channel", "chat_id", "content"}` to a URL. A 2xx response is a success.
pub struct Webhook {
    api: ChatApi,
    url: Secret,
    token: Option<Secret>,
}

impl Webhook {
    /// Creates a channel for `url`, which may contain a key. `token` is sent in an `Authorization: Bearer` header.
    pub fn new(http: Arc<dyn Http>, url: Secret, token: Option<Secret>) -> Result<Self, ToolError> {
        let parsed = parse_webhook_url(&url)?;
        // Servers may repeat the path in errors, so all that follows the host is redacted.
        let path = &parsed[url::Position::BeforePath..];
        let secret = (path.len() > 1).then(|| Secret::new(path));
        let api = ChatApi { name: "The webhook", http, secret, retry_delay: retry_after };
        Ok(Self { api, url, token })
    }
}

pub(super) fn parse_webhook_url(url: &Secret) -> Result<Url, ToolError> {
    Url::parse(url.expose())
        .map_err(|error| ToolError::invalid_arguments(format!("the URL of the webhook is invalid: {error}")))
}

impl Channel for Webhook {
    fn deliver(&self, message: &Message, wait: &mut WaitToRetry<'_>) -> Result<(), ToolError> {
        let body =
            json!({"channel": message.channel, "chat_id": message.chat_id, "content": message.content});
        let headers: Vec<(&str, String)> =
            self.token.iter().map(|token| ("Authorization", format!("Bearer {}", token.expose()))).collect();
        let response = self.api.post(self.url.expose().to_owned(), &headers, &body, wait)?;
        if is_success(&response) {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&response.body).into_owned();
        let text = self.token.iter().fold(text, |text, token| token.cover(&text));
        Err(self.api.error(&response, Some(&text)))
    }
}
