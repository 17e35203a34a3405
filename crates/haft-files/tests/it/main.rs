//! The file half of the World, on real files, with real links, races and crashes.
//!
//! Linux only: they take rights and system calls from single threads, which no other system can.
#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "the tests set up and look at what the World must hold to")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops where something is not as it should be")]

mod common;
mod containment;
mod crash;
mod odd;
mod protection;
mod restoring;
mod together;
mod walking;
mod writing;
