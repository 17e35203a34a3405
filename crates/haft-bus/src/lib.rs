#![doc = include_str!("../README.md")]
//!
//! Never here: sockets (channels send through the [`Http`](haft_tool::Http) they are given), files, and knowledge of
//! tools.

mod bus;
mod channel;
mod channels;
mod chat_api;
mod settings;
mod split;

pub use bus::{Bus, BusBuilder, Undelivered};
pub use channel::{Channel, WaitToRetry};
pub use channels::{Discord, LogChannel, Slack, Telegram, Webhook};
pub use settings::ChannelSettings;
