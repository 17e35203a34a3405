//! The event stream: what any process does in the ledger, as server-sent events.
//!
//! One thread follows the ledger while anyone listens, and renders each event once. Event ids are positions in the ledger's
//! feed, so that a client can resume where it was, even at another server or after a restart.

mod follower;
mod hub;
mod live;
mod render;
mod stream;

pub(crate) use hub::Hub;
pub(crate) use stream::connect;
