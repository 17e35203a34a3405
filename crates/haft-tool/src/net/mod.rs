//! Hosts and lists of hosts, parsed the same way by policy, tools and the World. Nothing is resolved here.

mod authority;
mod domains;
mod peer;

pub use authority::Authority;
pub use domains::{Domains, entry_for};
pub use peer::{Peer, split_port};
