//! Clients over HTTP (Streamable HTTP), of all protocol versions at one address.
//!
//! Stateless requests stand alone. A client that begins with a handshake gets a session, which only its principal can use.
//! The answer is one JSON object if the response comes first and soon, otherwise a stream of events. Connections live on
//! one thread, requests on others. Every request is checked for `Host`, `Origin` and its token, because web pages can
//! reach local ports.

mod access;
mod event_reader;
mod event_stream;
mod header_params;
mod headers;
mod post;
mod response;
mod router;
mod sessions;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub use haft_net::server::BearerToken;
use haft_net::server::{ConnectionLimits, RunningServer, listen};
use haft_tool::ToolError;

use super::server::McpServer;
use router::HttpState;

/// The path of the endpoint.
const PATH: &str = "/mcp";
/// Threads that parse large bodies, besides those that run requests.
const PARSER_THREADS: usize = 8;

/// How to serve over HTTP.
pub struct HttpServerOptions {
    /// The address to listen on; port 0 takes a free port.
    pub address: SocketAddr,
    /// The accepted tokens. Without any, every client is accepted; only loopback addresses allow that.
    pub tokens: Vec<BearerToken>,
    /// Additional values of `Host`, for example the name of a proxy.
    pub hosts: Vec<String>,
    /// Web origins that may send requests, as in `Origin`.
    pub origins: Vec<String>,
    /// Where clients can get a token.
    pub metadata: Option<ResourceMetadata>,
    /// Limits.
    pub limits: HttpServerLimits,
}

impl HttpServerOptions {
    /// Default options for this address and these tokens.
    pub fn new(address: SocketAddr, tokens: Vec<BearerToken>) -> Self {
        let (hosts, origins) = (Vec::new(), Vec::new());
        Self { address, tokens, hosts, origins, metadata: None, limits: HttpServerLimits::default() }
    }
}

/// Where a client can get a token (RFC 9728).
#[derive(Debug, Clone)]
pub struct ResourceMetadata {
    /// The public URL of this server.
    pub resource: String,
    /// The issuers of tokens.
    pub authorization_servers: Vec<String>,
    /// The scopes of tokens.
    pub scopes: Vec<String>,
}

/// Limits of an HTTP server.
#[derive(Debug, Clone)]
pub struct HttpServerLimits {
    /// Connections at once.
    pub max_connections: usize,
    /// Requests in progress at once, including those that wait for their client's input.
    pub max_requests: usize,
    /// Sessions at once.
    pub max_sessions: usize,
    /// The size of a body.
    pub max_body_bytes: usize,
    /// How long the headers of a request may take, and how long a connection may be idle.
    pub header_timeout: Duration,
    /// How long a body may take.
    pub body_timeout: Duration,
    /// How long a response is waited for before a stream is opened for it.
    pub stream_after: Duration,
    /// The interval of comments that keep streams open.
    pub heartbeat_interval: Duration,
    /// How long a client has to resume an interrupted stream.
    pub reconnect_timeout: Duration,
    /// How long an unused session lasts.
    pub session_timeout: Duration,
}

impl Default for HttpServerLimits {
    fn default() -> Self {
        Self {
            max_connections: 256,
            max_requests: 512,
            max_sessions: 1024,
            max_body_bytes: 64 << 20,
            header_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_mins(1),
            stream_after: Duration::from_secs(2),
            heartbeat_interval: Duration::from_secs(15),
            reconnect_timeout: Duration::from_mins(1),
            session_timeout: Duration::from_mins(30),
        }
    }
}

impl HttpServerLimits {
    pub(super) fn of_connections(&self) -> ConnectionLimits {
        ConnectionLimits {
            max_connections: self.max_connections,
            max_body_bytes: self.max_body_bytes,
            header_timeout: self.header_timeout,
            body_timeout: self.body_timeout,
            blocking_threads: self.max_requests + PARSER_THREADS,
        }
    }
}

/// A running HTTP server; dropping it stops the server.
pub struct HttpServerHandle {
    running: RunningServer,
}

impl HttpServerHandle {
    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.running.address()
    }

    /// The URL for clients.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address())
    }

    /// Stops the server: refuses new connections, cancels what is in progress and waits for its end.
    pub fn stop(self) {
        drop(self);
    }

    /// Blocks for as long as the server runs.
    pub fn wait(self) {
        self.running.wait();
    }
}

/// Starts an HTTP server.
pub fn serve_http(server: Arc<McpServer>, options: HttpServerOptions) -> Result<HttpServerHandle, ToolError> {
    if options.tokens.is_empty() && !options.address.ip().is_loopback() {
        return Err(ToolError::invalid_arguments(format!(
            "{} can be reached from other machines, so a token is required. Set a token, or listen on 127.0.0.1.",
            options.address
        )));
    }
    if options.tokens.iter().any(|token| token.secret.is_empty()) {
        return Err(ToolError::invalid_arguments("a token must not be empty".to_owned()));
    }
    let limits = options.limits.of_connections();
    let running = listen(options.address, limits, |address| HttpState::new(server, options, address))?;
    Ok(HttpServerHandle { running })
}
