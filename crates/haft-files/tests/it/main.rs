//! Contained file access on real files, with links, races and crashes.
//!
//! Linux only: some tests drop the privileges or block system calls of a single thread.
#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "the tests prepare and check files directly")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed step fails the test")]

mod concurrency;
mod containment;
mod crash;
mod fixture;
mod protection;
mod restore;
mod restore_links;
mod special_files;
mod walk;
mod write;
