//! The proxy of one call: its listener, its connection limit and its end.

use std::io::{self, ErrorKind};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use haft_tool::ToolError;
use rustix::event::PollFlags;

use super::connection::{BUSY_REQUEST_TIMEOUT, ClientConnection, REQUEST_TIMEOUT};
use super::settings::ProxySettings;
use super::upstream::Upstream;
use super::wake::{WaitEnd, WakeSender, wake_channel};
use super::{http, socks};
use crate::lookup::{Lookup, system_lookup};

const MAX_CONNECTIONS: usize = 64;
/// How many more get an error response; further ones are closed at once.
const MAX_BUSY_RESPONSES: usize = 16;
/// The pause when the machine has no descriptor or thread for another connection.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// A loopback proxy that passes what its settings allow. It speaks HTTP and SOCKS5 on one port and stops when dropped.
#[derive(Debug)]
pub struct Proxy {
    stop: WakeSender,
    accept_thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts a proxy at `listener`.
    pub fn start(listener: TcpListener, settings: ProxySettings) -> Result<Self, ToolError> {
        Self::with_lookup(listener, settings, Arc::new(system_lookup))
    }

    /// The same with another resolver.
    pub(super) fn with_lookup(
        listener: TcpListener,
        settings: ProxySettings,
        lookup: Lookup,
    ) -> Result<Self, ToolError> {
        let start = || -> io::Result<Self> {
            listener.set_nonblocking(true)?;
            let (stop, stopped) = wake_channel()?;
            let upstream = Arc::new(Upstream::new(settings, lookup, stopped));
            let accept_thread = thread::Builder::new()
                .name("haft-proxy".to_owned())
                .spawn(move || accept_connections(&listener, &upstream))?;
            Ok(Self { stop, accept_thread: Some(accept_thread) })
        };
        start().map_err(|error| ToolError::io("start the proxy for the listed domains", &error))
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
