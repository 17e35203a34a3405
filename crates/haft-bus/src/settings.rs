//! The settings of channels, `[channels.NAME]` in `haft.toml`.

use std::collections::BTreeMap;
use std::sync::Arc;

use haft_tool::{Http, Message, Secret, ToolError};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::channels::{discord, slack, telegram};
use crate::{Bus, BusBuilder, Discord, LogChannel, Slack, Telegram, Webhook};

/// The settings of one channel. A token or URL of the form `${NAME}` is read from that environment variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ChannelSettings {
    /// Messages go to the program's own log.
    Log {},
    /// Messages are posted as JSON.
    Webhook {
        /// Where to post.
        url: Secret,
        /// Sent in an `Authorization: Bearer` header.
        token: Option<Secret>,
    },
    /// A Telegram bot.
    Telegram {
        /// The bot's token.
        token: Secret,
        /// Replaces the address of Telegram's API.
        url: Option<Secret>,
    },
    /// A Slack app.
    Slack {
        /// The bot token, `xoxb-…`.
        token: Secret,
        /// Replaces the address of Slack's API.
        url: Option<Secret>,
    },
    /// A Discord bot, or a webhook if there is no token.
    Discord {
        /// The bot's token.
        token: Option<Secret>,
        /// With a token, replaces the address of Discord's API; without one, the webhook's URL.
        url: Option<Secret>,
    },
}

impl Bus {
    /// Creates a bus with these channels. `log` receives the messages to `log` channels; `var` returns the value of an
    /// environment variable.
    pub fn open(
        channels: &BTreeMap<String, ChannelSettings>,
        http: &Arc<dyn Http>,
        log: impl Fn(&Message) -> Result<(), ToolError> + Clone + Send + Sync + 'static,
        var: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ToolError> {
        let mut builder = Self::builder();
        for (name, settings) in channels {
            builder = settings
                .add_to(builder, name, http, log.clone(), var)
                .map_err(|error| error.context(format_args!("channels.{name}")))?;
        }
        builder.build()
    }
}

impl ChannelSettings {
    /// Returns the host that the channel connects to, as `host` or `host:port`.
    pub fn endpoint(&self, var: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let url = match self {
            Self::Log {} => None,
            Self::Webhook { url, .. } => url.resolve(var),
            Self::Telegram { url, .. } => url_or_default(url.as_ref(), telegram::DEFAULT_URL, var),
            Self::Slack { url, .. } => url_or_default(url.as_ref(), slack::DEFAULT_URL, var),
            Self::Discord { url, .. } => url_or_default(url.as_ref(), discord::DEFAULT_URL, var),
        }?;
        let url = Url::parse(url.expose()).ok()?;
        let host = url.host_str()?;
        Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
    }

    fn add_to(
        &self,
        builder: BusBuilder,
        name: &str,
        http: &Arc<dyn Http>,
        log: impl Fn(&Message) -> Result<(), ToolError> + Send + Sync + 'static,
        var: &dyn Fn(&str) -> Option<String>,
    ) -> Result<BusBuilder, ToolError> {
        let http = || Arc::clone(http);
        let required = |secret: &Secret| {
            secret.resolve(var).ok_or_else(|| {
                ToolError::failed(format!("the environment variable {} is not set", secret.expose()))
            })
        };
        let optional = |secret: &Option<Secret>| secret.as_ref().map(required).transpose();
        let base_url = |url: &Option<Secret>| -> Result<Option<String>, ToolError> {
            Ok(optional(url)?.map(|url| url.expose().to_owned()))
        };
        Ok(match self {
            Self::Log {} => builder.channel(name, LogChannel::new(log)),
            Self::Webhook { url, token } => {
                builder.channel(name, Webhook::new(http(), required(url)?, optional(token)?)?)
            }
            Self::Telegram { token, url } => {
                builder.channel(name, Telegram::new(http(), required(token)?, base_url(url)?.as_deref()))
            }
            Self::Slack { token, url } => {
                builder.channel(name, Slack::new(http(), required(token)?, base_url(url)?.as_deref()))
            }
            Self::Discord { token: Some(token), url } => {
                builder.channel(name, Discord::bot(http(), required(token)?, base_url(url)?.as_deref()))
            }
            Self::Discord { token: None, url: Some(url) } => {
                builder.channel(name, Discord::webhook(http(), &required(url)?)?)
            }
            Self::Discord { token: None, url: None } => {
                return Err(ToolError::failed("expected the token of a bot or the url of a webhook"));
            }
        })
    }
}

fn url_or_default(
    url: Option<&Secret>,
    default: &str,
    var: &dyn Fn(&str) -> Option<String>,
) -> Option<Secret> {
    url.map_or_else(|| Some(Secret::new(default)), |url| url.resolve(var))
}
