//! Connecting to the host that a client named, at an address that was checked.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use haft_policy::not_public;
use haft_tool::net::{Domains, Peer, entry_for};

use super::server::ProxySlot;
use super::wake::{WaitEnd, WakeReceiver, WakeSender, wake_channel};
use crate::lookup::{Lookup, os_text};

const LOOKUP_TIMEOUT: Duration = Duration::from_secs(15);
/// For all addresses of a name together.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
const MAX_ADDRESSES: usize = 8;
const MAX_SHOWN_HOST_BYTES: usize = 255;

/// A connection that a command requested and the list of domains does not allow.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedConnection {
    /// The host, escaped.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The reason, such as `it is not in the list of domains`.
    pub why: String,
    /// The entry that would allow it, if one can.
    pub allow: Option<String>,
}

impl fmt::Display for RefusedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, why, allow } = self;
        write!(f, "Haft refused {host}:{port}: {why}")?;
        match allow {
            Some(entry) => write!(f, "; to allow it: --network {entry}"),
            None => Ok(()),
        }
    }
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum UpstreamError {
    Refused(RefusedConnection),
    TooManyConnections,
    NameNotFound(String),
    Unreachable(ErrorKind, String),
    /// The proxy stops.
    Stopped,
}

impl fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refused) => refused.fmt(f),
            Self::TooManyConnections => {
                f.write_str("Haft's proxy has too many open connections; close some and try again")
            }
            Self::NameNotFound(why) | Self::Unreachable(_, why) => f.write_str(why),
            Self::Stopped => f.write_str("the call has ended"),
        }
    }
}

/// Checks hosts and connects to them.
pub(super) struct Upstream {
    domains: Arc<Domains>,
    lookup: Lookup,
    on_refused: Box<dyn Fn(RefusedConnection) + Send + Sync>,
    stop: WakeReceiver,
}

impl Upstream {
    pub(super) fn new(
        domains: Domains,
        lookup: Lookup,
        on_refused: Box<dyn Fn(RefusedConnection) + Send + Sync>,
        stop: WakeReceiver,
    ) -> Self {
        Self { domains: Arc::new(domains), lookup, on_refused, stop }
    }

    /// The signal that the proxy stops.
    pub(super) fn stop(&self) -> &WakeReceiver {
        &self.stop
    }

    /// Connects to `host` as a client wrote it; also returns the parsed host.
    pub(super) fn connect(
        &self,
        host: &[u8],
        port: u16,
        slot: &ProxySlot,
    ) -> Result<(TcpStream, Peer), UpstreamError> {
        if slot.is_over_limit() {
            return Err(UpstreamError::TooManyConnections);
        }
        let host = Peer::parse(host).map_err(|why| self.refuse(escape(host), port, why, None))?;
        self.domains
            .judge(&host, port)
            .map_err(|why| self.refuse(host.to_string(), port, why, Some(entry_for(&host, port))))?;
        let dialer = Dialer {
            domains: Arc::clone(&self.domains),
            lookup: Arc::clone(&self.lookup),
            host: host.clone(),
            port,
        };
        match self.dial(dialer, slot)? {
            Ok(stream) => Ok((stream, host)),
            Err(DialError::NotPublic(address, range)) => {
                let address = Peer::from(address);
                let why = format!("its name resolves to {address}, {range}");
                Err(self.refuse(host.to_string(), port, why, Some(entry_for(&address, port))))
            }
            Err(DialError::NameNotFound(error)) => {
                let why = os_text(&error.to_string());
                Err(UpstreamError::NameNotFound(format!("the name {host} was not found: {why}")))
            }
            Err(DialError::Unreachable(error)) => {
                let why = os_text(&error.to_string());
                let what = format!("{host}:{port} cannot be reached: {why}");
                Err(UpstreamError::Unreachable(error.kind(), what))
            }
        }
    }

    /// Reports a refused connection.
    pub(super) fn refuse(
        &self,
        host: String,
        port: u16,
        why: impl Into<String>,
        allow: Option<String>,
    ) -> UpstreamError {
        let refused = RefusedConnection { host, port, why: why.into(), allow };
        (self.on_refused)(refused.clone());
        UpstreamError::Refused(refused)
    }

    /// Dials on another thread: neither a lookup nor a connect can be cancelled, and the proxy must be able to stop.
    fn dial(&self, dialer: Dialer, slot: &ProxySlot) -> Result<Result<TcpStream, DialError>, UpstreamError> {
        let (sender, done) = wake_channel().map_err(|_| UpstreamError::TooManyConnections)?;
        let (wake_on_drop, slot) = (WakeOnDrop(sender), slot.clone());
        let thread = thread::Builder::new()
            .name("haft-dial".to_owned())
            .spawn(move || {
                // It counts as a connection until it ends, even if the client is gone.
                let _held = (wake_on_drop, slot);
                dialer.connect()
            })
            .map_err(|_| UpstreamError::TooManyConnections)?;
        let deadline = Instant::now() + LOOKUP_TIMEOUT + CONNECT_TIMEOUT;
        match self.stop.poll([Some(done.event())], Some(deadline)) {
            Ok(_) => thread.join().map_err(|_| UpstreamError::Stopped),
            Err(WaitEnd::TimedOut) => Ok(Err(DialError::Unreachable(no_response()))),
            Err(WaitEnd::Stopped | WaitEnd::Closed) => Err(UpstreamError::Stopped),
        }
    }
}

struct WakeOnDrop(WakeSender);

impl Drop for WakeOnDrop {
    fn drop(&mut self) {
        self.0.wake();
    }
}

/// Why a dial failed.
enum DialError {
    NotPublic(IpAddr, &'static str),
    NameNotFound(io::Error),
    Unreachable(io::Error),
}

struct Dialer {
    domains: Arc<Domains>,
    lookup: Lookup,
    host: Peer,
    port: u16,
}

impl Dialer {
    fn connect(&self) -> Result<TcpStream, DialError> {
        let addresses = self.addresses()?;
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        let mut last = no_response();
        let count = addresses.len().min(MAX_ADDRESSES);
        for (index, address) in addresses.into_iter().take(count).enumerate() {
            let left = deadline.saturating_duration_since(Instant::now());
            // A share of the remaining time, so that one silent address does not use up all of it.
            let share = left / u32::try_from(count - index).unwrap_or(1);
            if share.is_zero() {
                break;
            }
            match TcpStream::connect_timeout(&SocketAddr::new(address, self.port), share) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(DialError::Unreachable(last))
    }

    /// The addresses of the host that may be connected to.
    fn addresses(&self) -> Result<Vec<IpAddr>, DialError> {
        let name = match &self.host {
            // The list contains this very address.
            Peer::Address(address) => return Ok(vec![*address]),
            Peer::Name(name) => name,
        };
        let (mut allowed, mut denied) = (Vec::new(), None);
        for address in (self.lookup)(name).map_err(DialError::NameNotFound)? {
            let address = address.to_canonical();
            match not_public(address) {
                Some(range) if !self.domains.lists(address, self.port) => {
                    denied.get_or_insert(DialError::NotPublic(address, range));
                }
                _ if allowed.contains(&address) => {}
                _ => allowed.push(address),
            }
        }
        if allowed.is_empty() {
            let none = || DialError::NameNotFound(io::Error::new(ErrorKind::NotFound, "it has no address"));
            return Err(denied.unwrap_or_else(none));
        }
        Ok(allowed)
    }
}

fn no_response() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, "no response in time")
}

/// A host that could not be parsed, safe to show.
pub(super) fn escape(host: &[u8]) -> String {
    host[..host.len().min(MAX_SHOWN_HOST_BYTES)].escape_ascii().to_string()
}
