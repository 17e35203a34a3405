//! The settings of channels, `[channels.NAME]` in `haft.toml`.

use std::collections::BTreeMap;
use std::sync::Arc;

use haft_tool::{Http, Message, Secret, ToolError};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::channels::{discord, slack, telegram};
use crate::inbound::{
    DiscordInbound, InboundChannel, InboundFormat, SlackInbound, TelegramInbound, WebhookInbound,
};
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
        /// The secret that incoming messages are signed with.
        signing_secret: Option<Secret>,
        /// Accepts incoming messages without a signature, from this machine alone.
        #[serde(default)]
        unsigned: bool,
        /// The senders of messages that are accepted; without a list, all.
        #[serde(alias = "allowFrom")]
        allow_from: Option<Vec<String>>,
    },
    /// A Telegram bot.
    Telegram {
        /// The bot's token.
        token: Secret,
        /// Replaces the address of Telegram's API.
        url: Option<Secret>,
        /// The secret token that was given to `setWebhook`, for incoming messages.
        secret_token: Option<Secret>,
        /// The users whose messages are accepted; an empty list means all.
        #[serde(alias = "allowFrom")]
        allow_from: Option<Vec<String>>,
    },
    /// A Slack app.
    Slack {
        /// The bot token, `xoxb-…`.
        token: Secret,
        /// Replaces the address of Slack's API.
        url: Option<Secret>,
        /// The app's signing secret, for incoming messages.
        signing_secret: Option<Secret>,
        /// The users whose messages are accepted; an empty list means all.
        #[serde(alias = "allowFrom")]
        allow_from: Option<Vec<String>>,
    },
    /// A Discord bot, or a webhook if there is no token.
    Discord {
        /// The bot's token.
        token: Option<Secret>,
        /// With a token, replaces the address of Discord's API; without one, the webhook's URL.
        url: Option<Secret>,
        /// The application's public key, for incoming commands.
        public_key: Option<Secret>,
        /// The users whose commands are accepted; an empty list means all.
        #[serde(alias = "allowFrom")]
        allow_from: Option<Vec<String>>,
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
        let required = |secret: &Secret| resolved(secret, var);
        let optional = |secret: &Option<Secret>| secret.as_ref().map(required).transpose();
        let base_url = |url: &Option<Secret>| -> Result<Option<String>, ToolError> {
            Ok(optional(url)?.map(|url| url.expose().to_owned()))
        };
        Ok(match self {
            Self::Log {} => builder.channel(name, LogChannel::new(log)),
            Self::Webhook { url, token, .. } => {
                builder.channel(name, Webhook::new(http(), required(url)?, optional(token)?)?)
            }
            Self::Telegram { token, url, .. } => {
                builder.channel(name, Telegram::new(http(), required(token)?, base_url(url)?.as_deref()))
            }
            Self::Slack { token, url, .. } => {
                builder.channel(name, Slack::new(http(), required(token)?, base_url(url)?.as_deref()))
            }
            Self::Discord { token: Some(token), url, .. } => {
                builder.channel(name, Discord::bot(http(), required(token)?, base_url(url)?.as_deref()))
            }
            Self::Discord { token: None, url: Some(url), .. } => {
                builder.channel(name, Discord::webhook(http(), &required(url)?)?)
            }
            Self::Discord { token: None, url: None, .. } => {
                return Err(ToolError::failed("expected the token of a bot or the url of a webhook"));
            }
        })
    }
}

impl ChannelSettings {
    /// Returns how messages of the channel `name` are received; `None` if it only sends.
    pub fn inbound(
        &self,
        name: &str,
        var: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<InboundChannel>, ToolError> {
        self.inbound_of(name, var).map_err(|error| error.context(format_args!("channels.{name}")))
    }

    fn inbound_of(
        &self,
        name: &str,
        var: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<InboundChannel>, ToolError> {
        let (format, allow_from): (Box<dyn InboundFormat>, _) = match self {
            Self::Webhook { signing_secret: Some(_), unsigned: true, .. } => {
                let why = "it has a signing_secret and is unsigned; remove one of the two";
                return Err(ToolError::invalid_arguments(why));
            }
            Self::Webhook { signing_secret: Some(secret), allow_from, .. } => {
                // Who has the secret is known, so that no list means all.
                let all = Some(allow_from.clone().unwrap_or_default());
                (Box::new(WebhookInbound::signed(&resolved(secret, var)?)?), all)
            }
            Self::Webhook { unsigned: true, allow_from, .. } => {
                (Box::new(WebhookInbound::unsigned()), Some(allow_from.clone().unwrap_or_default()))
            }
            Self::Telegram { secret_token: Some(secret), allow_from, .. } => {
                (Box::new(TelegramInbound::new(resolved(secret, var)?)?), allow_from.clone())
            }
            Self::Slack { signing_secret: Some(secret), allow_from, .. } => {
                (Box::new(SlackInbound::new(&resolved(secret, var)?)?), allow_from.clone())
            }
            Self::Discord { public_key: Some(_), token: None, .. } => {
                let why = "replies to commands need the token of the bot";
                return Err(ToolError::invalid_arguments(why));
            }
            Self::Discord { public_key: Some(key), allow_from, .. } => {
                (Box::new(DiscordInbound::new(&resolved(key, var)?)?), allow_from.clone())
            }
            _ => return Ok(None),
        };
        let Some(allow_from) = allow_from else {
            return Err(ToolError::invalid_arguments(
                "it receives messages, so set allow_from to the ids of the users who may use it; [] means all users of the service",
            ));
        };
        if name.contains([':', '/']) || name.chars().any(char::is_control) {
            return Err(ToolError::invalid_arguments(
                "the name of a channel that receives must not contain : or /",
            ));
        }
        let is_signed = !matches!(self, Self::Webhook { unsigned: true, .. });
        Ok(Some(InboundChannel { format, allow_from, is_signed }))
    }
}

fn resolved(secret: &Secret, var: &dyn Fn(&str) -> Option<String>) -> Result<Secret, ToolError> {
    secret
        .resolve(var)
        .ok_or_else(|| ToolError::failed(format!("the environment variable {} is not set", secret.expose())))
}

fn url_or_default(
    url: Option<&Secret>,
    default: &str,
    var: &dyn Fn(&str) -> Option<String>,
) -> Option<Secret> {
    url.map_or_else(|| Some(Secret::new(default)), |url| url.resolve(var))
}
