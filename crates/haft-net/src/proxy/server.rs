//! The proxy of one call: its listener, its connection limit and its end.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use haft_tool::ToolError;
use haft_tool::net::Domains;
use rustix::event::PollFlags;

use super::connection::{BUSY_REQUEST_TIMEOUT, ClientConnection, REQUEST_TIMEOUT};
use super::upstream::{RefusedConnection, Upstream};
use super::wake::{WaitEnd, WakeSender, wake_channel};
use super::{http, socks};
use crate::lookup::{Lookup, system_lookup};

const MAX_CONNECTIONS: usize = 64;
/// How many more get an error response; further ones are closed at once.
const MAX_BUSY_RESPONSES: usize = 16;
/// The pause when the machine has no descriptor or thread for another connection.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// Hosts that programs reach without the proxy.
const NO_PROXY: &str = "localhost,127.0.0.1,::1";
const PROXY_VARIABLES: [&str; 8] = [
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "npm_config_proxy",
    "npm_config_https_proxy",
    "CARGO_HTTP_PROXY",
    "PIP_PROXY",
];

/// A loopback proxy for listed domains. It speaks HTTP and SOCKS5 on one port and stops when dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    stop: WakeSender,
    accept_thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts a proxy at `listener` that lets through what `domains` allow and reports the rest to `on_refused`.
    pub fn start(
        listener: TcpListener,
        domains: Domains,
        on_refused: impl Fn(RefusedConnection) + Send + Sync + 'static,
    ) -> Result<Self, ToolError> {
        Self::with_lookup(listener, domains, Arc::new(system_lookup), on_refused)
    }

    /// The same with another resolver.
    pub(super) fn with_lookup(
        listener: TcpListener,
        domains: Domains,
        lookup: Lookup,
        on_refused: impl Fn(RefusedConnection) + Send + Sync + 'static,
    ) -> Result<Self, ToolError> {
        let start = || -> io::Result<Self> {
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            let (stop, stopped) = wake_channel()?;
            let upstream = Arc::new(Upstream::new(domains, lookup, Box::new(on_refused), stopped));
            let accept_thread = thread::Builder::new()
                .name("haft-proxy".to_owned())
                .spawn(move || accept_connections(&listener, &upstream))?;
            Ok(Self { address, stop, accept_thread: Some(accept_thread) })
        };
        start().map_err(|error| ToolError::io("start the proxy for the listed domains", &error))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The environment variables that make programs use it.
    pub fn variables(&self) -> Vec<(String, String)> {
        let url = format!("http://{}", self.address);
        let proxy = PROXY_VARIABLES.map(|name| (name, url.as_str()));
        // Node's own fetch reads the others only if NODE_USE_ENV_PROXY is set.
        let more = [("NO_PROXY", NO_PROXY), ("no_proxy", NO_PROXY), ("NODE_USE_ENV_PROXY", "1")];
        proxy.into_iter().chain(more).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.wake();
        if let Some(thread) = self.accept_thread.take() {
            let _ = thread.join();
        }
    }
}

/// A place within the connection limit, free again when the last clone is dropped.
#[derive(Clone)]
pub(super) struct ProxySlot(Arc<UsedSlot>);

struct UsedSlot {
    count: Arc<AtomicUsize>,
    is_over_limit: bool,
}

impl ProxySlot {
    /// Takes a slot; `None` if there is none even for an error response.
    fn take(count: &Arc<AtomicUsize>) -> Option<Self> {
        let before = count.fetch_add(1, Ordering::AcqRel);
        let slot = UsedSlot { count: Arc::clone(count), is_over_limit: before >= MAX_CONNECTIONS };
        (before < MAX_CONNECTIONS + MAX_BUSY_RESPONSES).then(|| Self(Arc::new(slot)))
    }

    /// Whether the connection only gets an error response.
    pub(super) fn is_over_limit(&self) -> bool {
        self.0.is_over_limit
    }
}

impl Drop for UsedSlot {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Accepts connections until the proxy stops, then waits for their threads, which stop by the same signal.
fn accept_connections(listener: &TcpListener, upstream: &Arc<Upstream>) {
    let count = Arc::new(AtomicUsize::new(0));
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    while upstream.stop().poll([Some((listener.as_fd(), PollFlags::IN))], None).is_ok() {
        threads.extract_if(.., |thread| thread.is_finished()).for_each(join);
        match listener.accept() {
            Ok((stream, _)) => {
                let Some(slot) = ProxySlot::take(&count) else { continue };
                let upstream = Arc::clone(upstream);
                let thread = thread::Builder::new().name("haft-proxied".to_owned());
                threads.extend(thread.spawn(move || serve(stream, &upstream, &slot)));
            }
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionAborted
                ) => {}
            // The connection stays in the backlog, so without a pause this loop would spin.
            Err(_) => {
                let retry_at = Instant::now() + ACCEPT_RETRY_INTERVAL;
                if upstream.stop().poll([], Some(retry_at)) != Err(WaitEnd::TimedOut) {
                    break;
                }
            }
        }
    }
    threads.into_iter().for_each(join);
}

fn join(thread: JoinHandle<()>) {
    // A panic ends only its own connection.
    let _ = thread.join();
}

fn serve(stream: TcpStream, upstream: &Upstream, slot: &ProxySlot) {
    let timeout = if slot.is_over_limit() { BUSY_REQUEST_TIMEOUT } else { REQUEST_TIMEOUT };
    let Ok(mut client) = ClientConnection::new(stream, upstream.stop().clone(), timeout) else { return };
    match client.peek() {
        Ok(socks::VERSION_5) => socks::serve(client, upstream, slot),
        Ok(socks::VERSION_4) => socks::refuse_version_4(client, upstream),
        Ok(_) => http::serve(client, upstream, slot),
        Err(_) => {}
    }
}
