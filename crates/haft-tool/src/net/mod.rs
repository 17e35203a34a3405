//! Hosts and addresses, read and judged the same way by policy, by tools and by the World. Pure: nothing is looked up.

mod address;
mod authority;
mod domains;
mod peer;

pub use address::not_public;
pub use authority::Authority;
pub use domains::{Domains, entry_for};
pub use peer::{Peer, split_port};
