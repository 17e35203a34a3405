//! Commands that live on after their call: read while they run and after, stopped, bounded, recorded, taken back, and
//! never longer alive than their session.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that cannot go on has failed")]
#![cfg(target_os = "linux")]

mod ends;
#[path = "../house/mod.rs"]
mod house;
mod limits;
mod output;
mod record;
mod stage;
