//! Messages for people elsewhere: a bus in this process, and the channels that carry them on.
//!
//! A message that is taken is either delivered, or told as undelivered; a message that cannot be taken, because its
//! channel is unknown or its queue is full, is an error that the sender sees. Each channel has a queue and a worker of
//! its own, so that one that must wait holds up no other.
//!
//! What must never live here: a socket (channels send through the [`Http`](haft_tool::Http) they are given), a file, or
//! knowledge of tools.

mod bus;
mod channel;
mod channels;
mod post;
mod queue;
mod settings;
mod split;

pub use bus::{Builder, Bus, Undelivered};
pub use channel::{Channel, Waiting};
pub use channels::{Discord, Log, Slack, Telegram, Webhook};
pub use queue::Subscription;
pub use settings::ChannelSettings;
