//! Clients over HTTP, honest and hostile, against a real socket.
#![expect(clippy::disallowed_methods, reason = "the tests are clients")]
#![expect(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

mod bodies;
mod client;
mod crowds;
mod eras;
mod guard;
mod sessions;
mod streams;
#[path = "../support/mod.rs"]
mod support;
