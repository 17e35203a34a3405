//! The proxy of one call: its listener, its places and its end.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use haft_tool::ToolError;
use rustix::event::PollFlags;

use super::client::Client;
use super::gate::{Gate, Lookup, Refused, system_lookup};
use super::wait::{Bell, Stop, bell};
use super::{http, socks};
use haft_tool::net::Domains;

/// How many connections there may be at once.
const PLACES: usize = 64;
/// How many more are heard out and told that there are too many; what comes beyond them is hung up on.
const TURNED_AWAY: usize = 16;
/// How long to rest when the machine has no descriptor or thread for another connection.
const REST: Duration = Duration::from_millis(100);
/// What programs reach without the proxy.
const LOOPBACK: &str = "localhost,127.0.0.1,::1";

/// A loopback proxy for the listed domains; it speaks HTTP and SOCKS5 on one port, and ends when dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    end: Bell,
    door: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts a proxy that lets through what `domains` allow, and tells `refused` about the rest.
    pub fn start(
        domains: Domains,
        refused: impl Fn(Refused) + Send + Sync + 'static,
    ) -> Result<Self, ToolError> {
        Self::with_lookup(domains, Arc::new(system_lookup), refused)
    }

    /// The same with another resolver.
    pub(super) fn with_lookup(
        domains: Domains,
        lookup: Lookup,
        refused: impl Fn(Refused) + Send + Sync + 'static,
    ) -> Result<Self, ToolError> {
        let open = || -> io::Result<Self> {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            let (end, ear) = bell()?;
            let gate = Arc::new(Gate::new(domains, lookup, Box::new(refused), ear));
            let door = thread::Builder::new()
                .name("haft-proxy".to_owned())
                .spawn(move || keep_door(&listener, &gate))?;
            Ok(Self { address, end, door: Some(door) })
        };
        open().map_err(|error| ToolError::io("the proxy for the listed domains cannot be started", &error))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The environment that makes a command's programs use it.
    pub fn variables(&self) -> Vec<(String, String)> {
        let http = format!("http://{}", self.address);
        let through = |names: &[&str], value: &str| -> Vec<(String, String)> {
            names.iter().map(|name| ((*name).to_owned(), value.to_owned())).collect()
        };
        let mut variables = through(
            &[
                "HTTP_PROXY",
                "http_proxy",
                "HTTPS_PROXY",
                "https_proxy",
                "npm_config_proxy",
                "npm_config_https_proxy",
                "CARGO_HTTP_PROXY",
                "PIP_PROXY",
            ],
            &http,
        );
        variables.extend(through(&["NO_PROXY", "no_proxy"], LOOPBACK));
        // Node's own fetch looks at the others only with this.
        variables.extend(through(&["NODE_USE_ENV_PROXY"], "1"));
        variables
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.end.ring();
        if let Some(door) = self.door.take() {
            let _ = door.join();
        }
    }
}

/// A place among the connections, free again when its last copy is dropped.
#[derive(Clone)]
pub(super) struct Place(Arc<Taken>);

struct Taken {
    count: Arc<AtomicUsize>,
    in_vain: bool,
}

impl Place {
    /// Takes the next place; None if not even a place to be turned away at is free.
    fn take(count: &Arc<AtomicUsize>) -> Option<Self> {
        let before = count.fetch_add(1, Ordering::AcqRel);
        let place = Taken { count: Arc::clone(count), in_vain: before >= PLACES };
        (before < PLACES + TURNED_AWAY).then(|| Self(Arc::new(place)))
    }

    /// Whether there were too many already.
    pub(super) fn in_vain(&self) -> bool {
        self.0.in_vain
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Lets clients in until the proxy ends, then waits for their threads, which hear of the end themselves.
fn keep_door(listener: &TcpListener, gate: &Arc<Gate>) {
    let count = Arc::new(AtomicUsize::new(0));
    let mut inside: Vec<JoinHandle<()>> = Vec::new();
    while gate.end().wait([Some((listener.as_fd(), PollFlags::IN))], None).is_ok() {
        inside.extract_if(.., |thread| thread.is_finished()).for_each(join);
        match listener.accept() {
            Ok((stream, _)) => {
                let Some(place) = Place::take(&count) else { continue };
                let gate = Arc::clone(gate);
                let serving = thread::Builder::new().name("haft-proxied".to_owned());
                inside.extend(serving.spawn(move || serve(stream, &gate, &place)));
            }
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionAborted
                ) => {}
            // The client stays in the queue, so the next wait would return at once, again and again.
            Err(_) => {
                if gate.end().wait([], Some(Instant::now() + REST)) != Err(Stop::Late) {
                    break;
                }
            }
        }
    }
    inside.into_iter().for_each(join);
}

fn join(thread: JoinHandle<()>) {
    // A panic in one connection has ended that connection, and is none of the others' business.
    let _ = thread.join();
}

fn serve(stream: TcpStream, gate: &Gate, place: &Place) {
    let Ok(mut client) = Client::new(stream, gate.end().clone(), place.in_vain()) else { return };
    match client.first() {
        Ok(socks::FIVE) => socks::serve(client, gate, place),
        Ok(socks::FOUR) => socks::serve_four(client, gate),
        Ok(_) => http::serve(client, gate, place),
        Err(_) => {}
    }
}
