//! `haft serve`, tested through its public interface.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and has servers of its own"
)]

mod proxy;
