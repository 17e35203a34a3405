//! A listening HTTP server: connections, their limits, bodies within limits, and who may
//! send requests ([`AccessGuard`]). What is answered is the handler's.
//!
//! [`listen`] serves a [`RequestHandler`], which may stream. [`serve_requests`] serves a function that gets whole requests.

mod access;
mod hosts;
mod listener;
mod request_body;
mod slots;
mod whole_requests;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use haft_tool::ToolError;
use hyper::body::{Body, Incoming};
use hyper::{Request, Response};
use tokio::sync::watch;

pub use access::{AccessDenied, AccessGuard, AccessOptions, BearerToken};
pub use hosts::own_hosts;
pub use request_body::{BodyError, BodyReader, RequestBody};
pub use slots::{ActiveRequest, ConnectionSlot};
pub use whole_requests::{WholeRequest, WholeResponse, serve_requests};

/// Limits of the connections of a server.
#[derive(Debug, Clone)]
pub struct ConnectionLimits {
    /// Connections at once.
    pub max_connections: usize,
    /// The size of a body.
    pub max_body_bytes: usize,
    /// How long the headers of a request may take, and how long a connection may be idle.
    pub header_timeout: Duration,
    /// How long a body may take.
    pub body_timeout: Duration,
    /// Threads for work that blocks.
    pub blocking_threads: usize,
}

/// Answers the requests of a server.
pub trait RequestHandler: Send + Sync + 'static {
    /// The body of a response.
    type Body: Body<Data = Bytes, Error = Infallible> + Send + 'static;

    /// Answers one request. While a response takes time, [`ConnectionSlot::activate`] keeps its connection.
    fn respond(
        self: Arc<Self>,
        slot: Arc<ConnectionSlot>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<Self::Body>> + Send;

    /// Called once a second.
    fn tick(&self) {}

    /// Called when the server stops: ends what is in progress.
    fn close(&self) {}
}

/// A running server; dropping it stops the server.
pub struct RunningServer {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl RunningServer {
    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Blocks for as long as the server runs.
    pub fn wait(mut self) {
        self.join();
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended, too.
            let _ = thread.join();
        }
    }
}

impl Drop for RunningServer {
    /// Refuses new connections, ends what is in progress and waits for its end.
    fn drop(&mut self) {
        self.stop.send_replace(true);
        self.join();
    }
}

/// Listens on an address, of which port 0 takes a free port. The handler is made when the port is known.
pub fn listen<H: RequestHandler>(
    address: SocketAddr,
    limits: ConnectionLimits,
    handler: impl FnOnce(SocketAddr) -> Result<H, ToolError>,
) -> Result<RunningServer, ToolError> {
    let (runtime, listener, address) = listener::bind(address, &limits)?;
    let handler = Arc::new(handler(address)?);
    let (stop, stopped) = watch::channel(false);
    let thread = std::thread::Builder::new()
        .name("haft-http".to_owned())
        .spawn(move || listener::run(runtime, listener, &handler, &limits, stopped))
        .map_err(|error| ToolError::io("start a thread", &error))?;
    Ok(RunningServer { address, stop, thread: Some(thread) })
}
