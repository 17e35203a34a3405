//! The listed domains of a sandboxed command: a loopback proxy that Haft runs for one call.
//!
//! Everything a command sends is hostile. A host is read once, into one form ([`host`]); the list is asked about that
//! form ([`domains`]); the addresses it has now are checked one by one ([`address`]), and the one that passed is the
//! one connected to ([`gate`]). So no second spelling, second lookup or second answer can lead elsewhere.

mod address;
mod client;
mod domains;
mod gate;
mod host;
mod http;
mod proxy;
mod socks;
#[cfg(test)]
mod tests;
mod tunnel;
mod wait;

pub(crate) use domains::Domains;
pub(crate) use proxy::Proxy;
