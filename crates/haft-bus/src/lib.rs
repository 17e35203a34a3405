#![doc = include_str!("../README.md")]
//!
//! Never here: sockets (channels send through the [`Http`](haft_tool::Http) they are given, and receive requests as bytes), files, and knowledge of
//! tools.

mod bus;
mod channel;
mod channels;
mod chat_api;
mod inbound;
mod settings;
mod split;

pub use bus::{Bus, BusBuilder, Undelivered};
pub use channel::{Channel, WaitToRetry};
pub use channels::{Discord, LogChannel, Slack, Telegram, Webhook};
pub use inbound::{InboundChannel, InboundError, InboundMessage, InboundRequest, InboundVerdict};
pub use settings::ChannelSettings;
