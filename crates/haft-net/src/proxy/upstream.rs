//! Connecting to the host that a client named, at an address that was checked.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use haft_policy::not_public;
use haft_tool::Cancel;
use haft_tool::net::{Domains, Peer, entry_for};

use super::parent::{ParentProxies, ParentProxy};
use super::server::ProxySlot;
use super::settings::{HostAsker, ProxySettings, UnlistedHost};
use super::wake::{WaitEnd, WakeReceiver, WakeSender, wake_channel};
use crate::lookup::{Lookup, os_text};

const LOOKUP_TIMEOUT: Duration = Duration::from_secs(15);
/// For all addresses of a name together.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a connection waits for the user's answer.
const ASK_TIMEOUT: Duration = Duration::from_mins(2);
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
    /// The entry that would allow it, if one can; two with a comma between them where the name and its address are needed.
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

/// A connection to a host that was allowed.
pub(super) struct ConnectedHost {
    pub(super) stream: TcpStream,
    pub(super) host: Peer,
    /// The user's proxy at the other end of the connection.
    pub(super) parent: Option<ParentProxy>,
}

/// Checks hosts and connects to them.
pub(super) struct Upstream {
    domains: Arc<Domains>,
    own_hosts: Domains,
    parents: ParentProxies,
    asker: Option<Arc<dyn HostAsker>>,
    on_refused: Box<dyn Fn(RefusedConnection) + Send + Sync>,
    lookup: Lookup,
    stop: WakeReceiver,
}

impl Upstream {
    pub(super) fn new(settings: ProxySettings, lookup: Lookup, stop: WakeReceiver) -> Self {
        let ProxySettings { domains, own_hosts, parents, asker, on_refused } = settings;
        Self { domains: Arc::new(domains), own_hosts, parents, asker, on_refused, lookup, stop }
    }

    /// The signal that the proxy stops.
    pub(super) fn stop(&self) -> &WakeReceiver {
        &self.stop
    }

    /// Connects to `host` as a client wrote it; `plain` for a request that is forwarded.
    pub(super) fn connect(
        &self,
        host: &[u8],
        port: u16,
        plain: bool,
        slot: &ProxySlot,
    ) -> Result<ConnectedHost, UpstreamError> {
        if slot.is_over_limit() {
            return Err(UpstreamError::TooManyConnections);
        }
        let host = Peer::parse(host).map_err(|why| self.refuse(escape(host), port, why, None))?;
        if let Err(why) = self.domains.judge(&host, port)
            && !self.ask(&host, port, slot)?
        {
            return Err(self.refuse(host.to_string(), port, why, Some(entry_for(&host, port))));
        }
        let dialer = Dialer {
            domains: Arc::clone(&self.domains),
            may_be_private: self.own_hosts.judge(&host, port).is_ok(),
            parent: self.parents.proxy_for(&host, plain).cloned(),
            plain,
            lookup: Arc::clone(&self.lookup),
            host: host.clone(),
            port,
        };
        let parent = dialer.parent.clone();
        let dialed = self
            .run_on_thread("haft-dial", LOOKUP_TIMEOUT + CONNECT_TIMEOUT, slot, move || dialer.connect())?;
        match dialed.unwrap_or_else(|| Err(DialError::Unreachable(no_response()))) {
            Ok(stream) => Ok(ConnectedHost { stream, host, parent }),
            Err(DialError::NotPublic(address, range)) => {
                let address = Peer::from(address);
                let why = format!("its name resolves to {address}, {range}");
                // Each of the two alone is not enough.
                let both = format!("{},{}", entry_for(&host, port), entry_for(&address, port));
                Err(self.refuse(host.to_string(), port, why, Some(both)))
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

    /// Asks whether a host that is not listed may be reached.
    fn ask(&self, host: &Peer, port: u16, slot: &ProxySlot) -> Result<bool, UpstreamError> {
        let Some(asker) = &self.asker else { return Ok(false) };
        // Addresses inside the user's network are reached only if they are listed.
        let is_public = match host {
            Peer::Name(_) => !host.is_localhost(),
            Peer::Address(address) => not_public(*address).is_none(),
        };
        if !is_public {
            return Ok(false);
        }
        let unlisted = UnlistedHost { host: host.to_string(), port, entry: entry_for(host, port) };
        let (asker, cancel) = (Arc::clone(asker), Cancel::new());
        let asking = cancel.clone();
        let answer =
            self.run_on_thread("haft-ask", ASK_TIMEOUT, slot, move || asker.allows(&unlisted, &asking));
        if !matches!(answer, Ok(Some(_))) {
            cancel.cancel();
        }
        Ok(answer?.unwrap_or(false))
    }

    /// Runs `work` on another thread: lookups, connects and questions cannot be interrupted, and the proxy must be able to
    /// stop. `None` after the timeout.
    fn run_on_thread<T: Send + 'static>(
        &self,
        name: &str,
        timeout: Duration,
        slot: &ProxySlot,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Option<T>, UpstreamError> {
        let (sender, done) = wake_channel().map_err(|_| UpstreamError::TooManyConnections)?;
        let (wake_on_drop, slot) = (WakeOnDrop(sender), slot.clone());
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                // It counts as a connection until it ends, even if the client is gone.
                let _held = (wake_on_drop, slot);
                work()
            })
            .map_err(|_| UpstreamError::TooManyConnections)?;
        match self.stop.poll([Some(done.event())], Some(Instant::now() + timeout)) {
            Ok(_) => thread.join().map(Some).map_err(|_| UpstreamError::Stopped),
            Err(WaitEnd::TimedOut) => Ok(None),
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
    /// Whether the host's name may lead to an address that is not public.
    may_be_private: bool,
    /// The user's proxy, which resolves the name itself.
    parent: Option<ParentProxy>,
    /// Whether the request is forwarded, instead of a tunnel being opened.
    plain: bool,
    lookup: Lookup,
    host: Peer,
    port: u16,
}

impl Dialer {
    fn connect(&self) -> Result<TcpStream, DialError> {
        let Some(parent) = &self.parent else { return connect_to(self.addresses()?, self.port) };
        let addresses = match &parent.host {
            Peer::Address(address) => vec![*address],
            Peer::Name(name) => (self.lookup)(name).map_err(DialError::NameNotFound)?,
        };
        let mut stream = connect_to(addresses, parent.port)?;
        if !self.plain {
            parent.open_tunnel(&mut stream, &self.host, self.port).map_err(DialError::Unreachable)?;
        }
        Ok(stream)
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
                Some(range) if !self.may_be_private && !self.domains.lists(address, self.port) => {
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

/// Connects to the first of the addresses that answers.
fn connect_to(addresses: Vec<IpAddr>, port: u16) -> Result<TcpStream, DialError> {
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
        match TcpStream::connect_timeout(&SocketAddr::new(address, port), share) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(DialError::Unreachable(last))
}

fn no_response() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, "no response in time")
}

/// A host that could not be parsed, safe to show.
pub(super) fn escape(host: &[u8]) -> String {
    host[..host.len().min(MAX_SHOWN_HOST_BYTES)].escape_ascii().to_string()
}
