//! The parsers and writers, through the public interface.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed unwrap fails the test")]

mod exec;
mod fuzz;
mod hook_input;
mod hook_matcher;
mod hook_merge;
mod hook_outcome;
mod settings;
mod settings_hooks;
mod settings_keys;
mod stream;
mod transcripts;
