//! Clients over HTTP: one address for both eras.
//!
//! Whoever speaks revision 2026-07-28 sends every request for itself. Whoever begins with a handshake gets a session, which
//! only the one who began it can use. Both get one JSON object if the answer is the first there is to say, and a stream of
//! events otherwise.
//!
//! Connections live on one thread, requests on others. A web page of somebody else's can reach a port of this machine, so
//! every request has to say whom it means (`Host`), may come from no other page (`Origin`), and needs a token.

mod answer;
mod body;
mod front;
mod guard;
mod headers;
mod listener;
mod mirrored;
mod post;
mod reader;
mod seats;
mod sessions;
mod stream;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use haft_tool::ToolError;
use tokio::sync::watch;

use super::server::Server;
use front::Door;

/// The one path that messages go to.
const PATH: &str = "/mcp";

/// How to serve over HTTP.
pub struct HttpOptions {
    /// Where to listen; port 0 takes any that is free.
    pub address: SocketAddr,
    /// Who may come in. Without any everybody may, which is refused for an address that others can reach.
    pub tokens: Vec<Token>,
    /// What else may stand in `Host`, exactly as it will: behind a proxy, for example, its name.
    pub hosts: Vec<String>,
    /// Which other pages may send requests, exactly as `Origin` has them.
    pub origins: Vec<String>,
    /// What clients hear about where tokens come from.
    pub metadata: Option<ResourceMetadata>,
    /// How much is too much.
    pub limits: Limits,
}

impl HttpOptions {
    /// The usual, at that address, for those who have one of these tokens.
    pub fn new(address: SocketAddr, tokens: Vec<Token>) -> Self {
        let (hosts, origins) = (Vec::new(), Vec::new());
        Self { address, tokens, hosts, origins, metadata: None, limits: Limits::default() }
    }
}

/// A secret, and who is known by it.
#[derive(Clone)]
pub struct Token {
    /// The name of whoever has it.
    pub principal: String,
    /// What follows `Bearer`.
    pub secret: String,
}

/// Where a client can get a token (RFC 9728).
#[derive(Debug, Clone)]
pub struct ResourceMetadata {
    /// The address that clients know this server by, with its path.
    pub resource: String,
    /// Who gives tokens.
    pub authorization_servers: Vec<String>,
    /// What tokens can be for.
    pub scopes: Vec<String>,
}

/// How much is too much.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The most connections at once.
    pub connections: usize,
    /// The most requests under way at once, those included that wait for an answer of their client.
    pub calls: usize,
    /// The most sessions at once.
    pub sessions: usize,
    /// The largest body.
    pub body_bytes: usize,
    /// How long a client may take to say what it wants, and how long it may say nothing.
    pub header_time: Duration,
    /// How long a body may take.
    pub body_time: Duration,
    /// How long an answer is waited for before a stream is opened for it.
    pub patience: Duration,
    /// How often a stream shows that it is alive.
    pub heartbeat: Duration,
    /// How long a client may stay away from a stream that broke.
    pub absence: Duration,
    /// How long a session lasts that nobody uses.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            calls: 512,
            sessions: 1024,
            body_bytes: 64 << 20,
            header_time: Duration::from_secs(30),
            body_time: Duration::from_mins(1),
            patience: Duration::from_secs(2),
            heartbeat: Duration::from_secs(15),
            absence: Duration::from_mins(1),
            idle: Duration::from_mins(30),
        }
    }
}

/// A server that listens, until it is stopped or dropped.
pub struct Running {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address for clients.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Lets nobody in any more, ends what is under way, and returns when that is done.
    pub fn stop(self) {
        // Dropping does it.
        drop(self);
    }

    /// Returns when the server has come to an end by itself, which it does not.
    pub fn wait(mut self) {
        if let Some(thread) = self.thread.take() {
            // Whatever ended it, it has ended.
            let _ = thread.join();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // Whatever ended it, it has ended.
            let _ = thread.join();
        }
    }
}

/// Serves whoever comes to that address.
pub fn serve_http(server: Arc<Server>, options: HttpOptions) -> Result<Running, ToolError> {
    if options.tokens.is_empty() && !options.address.ip().is_loopback() {
        return Err(ToolError::invalid_arguments(format!(
            "{} can be reached from other machines, so it needs a token; set one, or listen on 127.0.0.1",
            options.address
        )));
    }
    if options.tokens.iter().any(|token| token.secret.is_empty()) {
        return Err(ToolError::invalid_arguments("a token must not be empty".to_owned()));
    }
    let (runtime, listener, address) = listener::open(&options)?;
    let door = Arc::new(Door::new(server, options, address)?);
    let (stop, stopped) = watch::channel(false);
    let thread = std::thread::Builder::new()
        .name("mcp-http".to_owned())
        .spawn(move || listener::run(runtime, listener, &door, stopped))
        .map_err(|error| ToolError::io("start a thread", &error))?;
    Ok(Running { address, stop, thread: Some(thread) })
}
