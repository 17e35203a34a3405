//! Servers that others wrote, held by Haft: asked in whichever era they live, and believed in nothing.
//!
//! [`McpClient`] is one connection. Below it stands a `Link`: a process ([`ProcessPipes`]) or an address ([`HttpEndpoint`]). Every wait
//! has a limit ([`ClientLimits`]), and so has everything that is read. What a server asks of its own accord is answered only if
//! somebody offers to ([`ServerRequestHandler`]). [`portable`] makes its tools fit for every provider.

mod authorize;
mod connection;
mod conversation;
mod courier;
mod ear;
mod error;
mod greeting;
mod handlers;
mod http;
mod info;
mod link;
mod listing;
mod news;
pub mod oauth;
mod options;
mod patience;
mod pending;
pub mod portable;
mod rounds;
mod stdio;
mod subscription;
mod things;

use haft_tool::lock;

pub use authorize::TokenProvider;
pub use connection::{McpClient, ServerTransport};
pub use error::{ClientError, McpError};
pub use handlers::{
    ClientCapabilities, Elicitation, ElicitationAnswer, ElicitationKind, ServerRequestHandler,
};
pub use http::HttpEndpoint;
pub use info::ServerInfo;
pub use listing::ServerList;
pub use options::{ClientLimits, ClientOptions, ProgressUpdate, ToolCallOptions};
pub use stdio::{ProcessHandle, ProcessPipes};
pub use things::{PromptArgument, ResourceTemplate, ServerPrompt, ServerResource, ServerTool};

pub use crate::serve::ServerChange;
