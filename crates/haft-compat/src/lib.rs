#![doc = include_str!("../README.md")]
//!
//! Parsers take hostile input: sizes and depths are bounded, and bad input is a typed error or a counted problem.
//!
//! Never here: I/O, processes, the clock, decisions (`haft-policy`), and formats that only Haft has.

pub mod exec;
pub mod hooks;
pub mod settings;
pub mod stream;
pub mod transcripts;
