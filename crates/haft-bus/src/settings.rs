//! `[channels.NAME]`: what users say about their channels.

use std::collections::BTreeMap;
use std::sync::Arc;

use haft_tool::{Http, Message, Secret, ToolError};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::{Builder, Bus, Discord, Log, Slack, Telegram, Webhook};

/// One channel. A token or address may be `${NAME}`: then it is read from that variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ChannelSettings {
    /// Shown by whoever runs the bus.
    Log {},
    /// Posted as JSON to an address.
    Webhook {
        /// The address.
        url: Secret,
        /// Goes into an `Authorization: Bearer` header.
        token: Option<Secret>,
    },
    /// A Telegram bot.
    Telegram {
        /// The bot's token.
        token: Secret,
        /// The API's address, if it is not Telegram's own.
        url: Option<Secret>,
    },
    /// A Slack app.
    Slack {
        /// The bot token, `xoxb-…`.
        token: Secret,
        /// The API's address, if it is not Slack's own.
        url: Option<Secret>,
    },
    /// A Discord bot, or without a token a webhook.
    Discord {
        /// The bot's token.
        token: Option<Secret>,
        /// With a token the API's address, if it is not Discord's own; without one the webhook's.
        url: Option<Secret>,
    },
}

impl Bus {
    /// A bus with the channels of the settings. `http` sends, `log` shows what `log` channels get, `var` looks up a
    /// variable of the environment.
    pub fn open(
        channels: &BTreeMap<String, ChannelSettings>,
        http: &Arc<dyn Http>,
        log: impl Fn(&Message) -> Result<(), ToolError> + Clone + Send + Sync + 'static,
        var: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ToolError> {
        let mut builder = Self::builder();
        for (name, settings) in channels {
            builder = settings.add(builder, name, http, log.clone(), var).map_err(|error| ToolError {
                message: format!("channels.{name}: {}", error.message),
                ..error
            })?;
        }
        builder.build()
    }
}

impl ChannelSettings {
    /// The hosts that these settings name, as `host` or `host:port`.
    pub fn endpoint(&self, var: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let url = match self {
            Self::Log {} => None,
            Self::Webhook { url, .. } => url.resolve(var),
            Self::Telegram { url, .. } => named(url.as_ref(), "https://api.telegram.org", var),
            Self::Slack { url, .. } => named(url.as_ref(), "https://slack.com", var),
            Self::Discord { url, .. } => named(url.as_ref(), "https://discord.com", var),
        }?;
        let url = Url::parse(url.expose()).ok()?;
        let host = url.host_str()?;
        Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
    }

    fn add(
        &self,
        builder: Builder,
        name: &str,
        http: &Arc<dyn Http>,
        log: impl Fn(&Message) -> Result<(), ToolError> + Send + Sync + 'static,
        var: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Builder, ToolError> {
        let http = || Arc::clone(http);
        let read = |secret: &Secret| {
            secret
                .resolve(var)
                .ok_or_else(|| ToolError::failed(format!("the variable {} is not set", secret.expose())))
        };
        let optional = |secret: &Option<Secret>| secret.as_ref().map(read).transpose();
        let address = |url: &Option<Secret>| -> Result<Option<String>, ToolError> {
            Ok(optional(url)?.map(|url| url.expose().to_owned()))
        };
        Ok(match self {
            Self::Log {} => builder.channel(name, Log::new(log)),
            Self::Webhook { url, token } => {
                builder.channel(name, Webhook::new(http(), read(url)?, optional(token)?)?)
            }
            Self::Telegram { token, url } => {
                builder.channel(name, Telegram::new(http(), read(token)?, address(url)?.as_deref()))
            }
            Self::Slack { token, url } => {
                builder.channel(name, Slack::new(http(), read(token)?, address(url)?.as_deref()))
            }
            Self::Discord { token: Some(token), url } => {
                builder.channel(name, Discord::bot(http(), read(token)?, address(url)?.as_deref()))
            }
            Self::Discord { token: None, url: Some(url) } => {
                builder.channel(name, Discord::webhook(http(), &read(url)?)?)
            }
            Self::Discord { token: None, url: None } => {
                return Err(ToolError::failed("it needs the token of a bot or the url of a webhook"));
            }
        })
    }
}

fn named(url: Option<&Secret>, home: &str, var: &dyn Fn(&str) -> Option<String>) -> Option<Secret> {
    url.map_or_else(|| Some(Secret::new(home)), |url| url.resolve(var))
}
