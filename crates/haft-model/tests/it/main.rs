//! Codecs, providers and models, through the public interface and with scripted HTTP.
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

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
