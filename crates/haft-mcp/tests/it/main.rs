//! Tests of the MCP client and server over real pipes, sockets and processes.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests start the processes and sockets they need, and stop at the first failure"
)]

mod fixture;
mod fuzz;
mod hostile;
mod http;
mod oauth;
mod reference_servers;
mod remote;
mod stdio;
mod wire;
