//! The client side: connects to servers, which are not trusted.
//!
//! [`McpClient`] is one connection, over a child process ([`ProcessPipes`]), HTTP ([`HttpEndpoint`]) or
//! messages that another program passes on ([`MessageLink`]). Every wait and
//! everything that is read has a limit ([`ClientLimits`]). Requests of a server are refused unless a
//! [`ServerRequestHandler`] offers to answer them. [`portable`] makes a server's tools usable with every model provider.

mod changes;
#[expect(clippy::module_inception, reason = "the client of the client side")]
mod client;
mod connection;
mod deadline;
mod error;
mod handshake;
mod http;
mod inbound;
mod info;
mod input_rounds;
mod items;
mod linked;
mod list;
pub mod oauth;
mod options;
mod pending;
pub mod portable;
mod send_queue;
mod server_requests;
mod session;
mod stdio;
mod subscription;
mod timed_mutex;
mod tokens;

use haft_tool::lock;

pub use client::{McpClient, ServerTransport};
pub use error::{ClientError, McpError};
pub use http::HttpEndpoint;
pub use info::ServerInfo;
pub use items::{PromptArgument, ResourceTemplate, ServerPrompt, ServerResource, ServerTool};
pub use linked::MessageLink;
pub use list::{ServerList, approximate_bytes};
pub use options::{ClientLimits, ClientOptions, ProgressUpdate, ToolCallOptions};
pub use server_requests::{
    ClientCapabilities, Elicitation, ElicitationAnswer, ElicitationKind, ServerRequestHandler,
};
pub use stdio::{ProcessHandle, ProcessPipes};
pub use tokens::TokenProvider;

pub use crate::serve::ServerChange;
