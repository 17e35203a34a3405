//! MCP both ways and both eras: whatever a [`serve::McpService`] offers for any client, and any server's tools for Haft.
//!
//! `wire` is what both sides say: messages, revisions, errors. `serve` answers clients over stdio and HTTP. What is served
//! is behind the `McpService` trait; the protocol knows nothing of it. `client` asks servers, and believes none of them.
//!
//! What must never live here: a tool, a decision about a call, a way to the machine.

pub mod client;
pub mod serve;
pub mod wire;
