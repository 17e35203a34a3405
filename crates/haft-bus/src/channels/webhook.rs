//! `webhook`: posts messages as JSON to any address.

use std::sync::Arc;

use haft_tool::{Http, Message, Secret, ToolError, json, retry_after};
use url::Url;

use crate::post::Post;
use crate::{Channel, Waiting};

/// Posts `{"channel", "chat_id", "content"}` to an address; any 2xx is a yes.
pub struct Webhook {
    post: Post,
    url: Secret,
    token: Option<Secret>,
}

impl Webhook {
    /// To `url`, whose words may hold a key; `token` goes into an `Authorization: Bearer` header.
    pub fn new(http: Arc<dyn Http>, url: Secret, token: Option<Secret>) -> Result<Self, ToolError> {
        let parsed = Url::parse(url.expose()).map_err(|error| {
            ToolError::invalid_arguments(format!("the webhook's address cannot be read: {error}"))
        })?;
        // Everything behind the host: servers like to repeat a path that they do not know.
        let path = &parsed[url::Position::BeforePath..];
        let secret = (path.len() > 1).then(|| Secret::new(path));
        Ok(Self { post: Post { name: "The webhook", http, secret, asked: retry_after }, url, token })
    }
}

impl Channel for Webhook {
    fn deliver(&self, message: &Message, wait: &mut Waiting<'_>) -> Result<(), ToolError> {
        let body =
            json!({"channel": message.channel, "chat_id": message.chat_id, "content": message.content});
        let key: Vec<(&str, String)> =
            self.token.iter().map(|token| ("Authorization", format!("Bearer {}", token.expose()))).collect();
        let answer = self.post.send(self.url.expose().to_owned(), &key, &body, wait)?;
        if (200..300).contains(&answer.status) {
            return Ok(());
        }
        let words = String::from_utf8_lossy(&answer.body).into_owned();
        let words = self.token.iter().fold(words, |words, token| token.cover(&words));
        Err(self.post.refused(&answer, Some(&words)))
    }
}
