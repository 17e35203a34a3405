//! Clients over standard input and output, honest and hostile.
#![expect(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

mod client;
mod ending;
mod lines;
#[path = "../support/mod.rs"]
mod support;
mod talking;
