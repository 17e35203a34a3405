//! The channels, one file each.

mod discord;
mod log;
mod slack;
mod telegram;
mod webhook;

pub use discord::Discord;
pub use log::Log;
pub use slack::Slack;
pub use telegram::Telegram;
pub use webhook::Webhook;
