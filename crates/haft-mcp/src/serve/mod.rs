//! The server side: answers clients of every protocol version with what an [`McpService`] offers.
//!
//! A transport reads messages and passes each to [`McpServer::begin`], together with a [`MessageSink`] for what the server
//! sends about it. What may block is returned as a [`PendingRequest`], which the transport runs on a thread of its own.

mod client_requests;
mod context;
mod http;
mod methods;
mod notifier;
mod peer;
mod server;
mod service;
mod stdio;
mod stdout;
mod tasks;
mod workers;

pub use client_requests::{ClientRequest, ClientRequestError};
pub use context::{LogLevel, RequestContext};
pub use http::{
    BearerToken, HttpServerHandle, HttpServerLimits, HttpServerOptions, ResourceMetadata, serve_http,
};
pub use notifier::{ChangeNotifier, ServerChange};
pub use peer::{ClientPeer, MessageSink};
pub use server::{McpServer, PendingRequest};
pub use service::{CacheHint, ListPage, McpService, ServerCapabilities, ServerIdentity};
pub use stdio::{serve_stdio, stdio};
