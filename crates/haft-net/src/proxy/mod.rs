//! The listed domains of a sandboxed command: a loopback proxy that Haft runs for one call.
//!
//! Everything a command sends is hostile. A host is read once, into one form ([`Peer`](haft_tool::net::Peer)); the list is
//! asked about that form ([`Domains`]); the addresses it has now are checked one by one, and the one that passed is the
//! one connected to ([`gate`]). So no second spelling, second lookup or second answer can lead elsewhere.

mod client;
mod gate;
mod http;
mod listener;
mod loopback;
mod socks;
#[cfg(test)]
mod tests;
mod tunnel;
mod wait;

pub(crate) use gate::{Lookup, system_lookup};
pub use listener::Proxy;
pub use loopback::{Heard, Loopback};
