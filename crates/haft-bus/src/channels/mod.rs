//! The channels, one file each.

pub(crate) mod discord;
mod log;
pub(crate) mod slack;
pub(crate) mod telegram;
mod webhook;

pub use discord::Discord;
pub use log::LogChannel;
pub use slack::Slack;
pub use telegram::Telegram;
pub use webhook::Webhook;
