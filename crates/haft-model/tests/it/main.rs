//! Codecs, providers and models, through the public interface and with scripted HTTP.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a failed unwrap fails the test; a test starts the Python with the vendors' SDKs"
)]

mod answers;
mod anthropic;
mod chat;
mod claude_cli;
mod client;
mod fixture;
mod fuzz;
mod gemini;
mod ollama;
mod prices;
mod providers;
mod responses;
mod round_trip;
mod schemas;
mod script;
mod sdk_types;
mod temperature;
