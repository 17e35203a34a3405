//! The bus, and each channel against a server that implements its API.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a failed unwrap fails the test; the fixture is a server"
)]

mod bus;
mod channels;
mod http_fixture;
