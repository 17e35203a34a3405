//! `haft serve`: a web page and an HTTP API over the ledger, and Loom's proxies.
//!
//! What must never be here: code that executes a run or a command in the server's process. Each run has its own process, so that
//! stopping the server harms none.

mod access;
mod access_log;
mod api;
mod assets;
mod backend;
mod events;
mod export;
mod image_type;
pub mod proxy;
mod proxy_requests;
mod reply;
mod server;

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use access::{Role, RoleToken};
pub use api::types::{Attachment, NewMessage, NewRun, Provider, RuleChange, RuleChanged};
pub use backend::{Backend, DecodedAttachment};
use haft_ledger::Ledger;
use haft_net::server::{BodyReader, ConnectionLimits, RunningServer, listen};
use haft_telemetry::LedgerMetrics;
use haft_tool::ToolError;
use proxy::Proxies;
use tokio::sync::Semaphore;

/// Concurrent connections: 500 pages with one stream each, and their requests.
const MAX_CONNECTIONS: usize = 800;
/// Enough for a message with pictures.
const MAX_BODY_BYTES: usize = 32 << 20;
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
const BODY_TIMEOUT: Duration = Duration::from_mins(1);
/// Concurrent event streams.
const MAX_STREAMS: usize = 600;
/// Concurrent event streams whose tokens may not answer questions, so that they leave room for those that may.
const MAX_VIEW_STREAMS: usize = 500;
/// Threads left for the API when the proxies use all of theirs.
const MIN_API_THREADS: usize = 8;
/// Concurrent requests that may read many calls or files.
const MAX_LARGE_ANSWERS: usize = 3;
/// Concurrent requests to the proxies; each occupies a thread until its provider has answered.
const MAX_PROXY_REQUESTS: usize = 32;

/// How to run the server.
pub struct ServerOptions {
    /// The address to listen on; port 0 takes a free port.
    pub address: SocketAddr,
    /// The tokens that are accepted.
    pub tokens: Vec<RoleToken>,
    /// Additional `Host` values to accept, for example the name of a reverse proxy.
    pub hosts: Vec<String>,
    /// A host name of this machine that no other program's server has used, so that what such a server left in the browser for the
    /// same port (service workers, cached scripts) cannot reach the page.
    pub own_name: Option<String>,
    /// The folder that runs start in unless a request names another.
    pub workspace: PathBuf,
    /// Loom's proxies.
    pub proxies: Proxies,
    /// Where the access log is written, if anywhere.
    pub access_log: Option<Box<dyn Write + Send>>,
}

/// Starts the server; dropping it stops it.
pub fn serve(
    options: ServerOptions,
    ledger: Ledger,
    backend: Arc<dyn Backend>,
) -> Result<RunningServer, ToolError> {
    if options.tokens.is_empty() {
        return Err(ToolError::invalid_arguments("A server needs a token."));
    }
    let limits = ConnectionLimits {
        max_connections: MAX_CONNECTIONS,
        max_body_bytes: MAX_BODY_BYTES,
        header_timeout: HEADER_TIMEOUT,
        body_timeout: BODY_TIMEOUT,
        blocking_threads: MIN_API_THREADS + MAX_PROXY_REQUESTS,
    };
    listen(options.address, limits.clone(), |address| {
        let hub = events::Hub::start(ledger.clone(), Arc::clone(&backend), options.workspace.clone())?;
        let own_host = options.own_name.map(|name| format!("{name}:{}", address.port()));
        let hosts = options.hosts.into_iter().chain(own_host).collect();
        let metrics = Arc::new(LedgerMetrics::new(&ledger)?);
        let long_reads = Ledger::open(ledger.home())?;
        let api = api::Api::new(ledger, backend, options.workspace);
        Ok(server::WebServer {
            api: Arc::new(api),
            long_reads,
            hub,
            access: access::Access::new(&options.tokens, hosts, address),
            log: access_log::AccessLog::new(options.access_log),
            limits,
            bodies: BodyReader::default(),
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
            view_streams: Arc::new(Semaphore::new(MAX_VIEW_STREAMS)),
            large_answers: Arc::new(Semaphore::new(MAX_LARGE_ANSWERS)),
            exports: Arc::new(Semaphore::new(1)),
            metrics,
            proxies: Arc::new(options.proxies),
            proxy_requests: Arc::new(Semaphore::new(MAX_PROXY_REQUESTS)),
        })
    })
}
