//! The one way out: from what a client named to a connection with an address that was checked.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use haft_tool::net::{Domains, Peer, entry_for, not_public};

use super::listener::Place;
use super::wait::{Bell, Ear, Stop, bell};

/// How long the resolver may take.
const LOOKUP: Duration = Duration::from_secs(15);
/// How long it may take to connect, all addresses of a name together.
const CONNECT: Duration = Duration::from_secs(15);
/// How many addresses of a name are tried.
const TRIES: usize = 8;

/// Finds the addresses of a name.
pub(crate) type Lookup = Arc<dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync>;

/// A connection that a command asked for and the list of domains does not allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The host, safe to show.
    pub host: String,
    pub port: u16,
    /// A clause such as `it is not in the list of domains`.
    pub why: String,
    /// The entry that would let it through, if one can.
    pub allow: Option<String>,
}

impl fmt::Display for Refused {
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
pub(super) enum Failure {
    Refused(Refused),
    /// Too many connections at once.
    Busy,
    /// The name has no address.
    Unknown(String),
    Unreachable(ErrorKind, String),
    /// The proxy ends.
    Ended,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refused) => refused.fmt(f),
            Self::Busy => f.write_str("Haft's proxy has too many connections open; close some and try again"),
            Self::Unknown(why) | Self::Unreachable(_, why) => f.write_str(why),
            Self::Ended => f.write_str("the call has ended"),
        }
    }
}

/// What stands between a client and the network.
pub(super) struct Gate {
    domains: Arc<Domains>,
    lookup: Lookup,
    refused: Box<dyn Fn(Refused) + Send + Sync>,
    end: Ear,
}

impl Gate {
    pub(super) fn new(
        domains: Domains,
        lookup: Lookup,
        refused: Box<dyn Fn(Refused) + Send + Sync>,
        end: Ear,
    ) -> Self {
        Self { domains: Arc::new(domains), lookup, refused, end }
    }

    /// Hears the end of the proxy.
    pub(super) fn end(&self) -> &Ear {
        &self.end
    }

    /// Connects to `host` as a client wrote it; also gives the host as it was understood.
    pub(super) fn reach(&self, host: &[u8], port: u16, place: &Place) -> Result<(TcpStream, Peer), Failure> {
        if place.in_vain() {
            return Err(Failure::Busy);
        }
        let host = Peer::parse(host).map_err(|why| self.refuse(shown(host), port, why, None))?;
        self.domains
            .judge(&host, port)
            .map_err(|why| self.refuse(host.to_string(), port, why, Some(entry_for(&host, port))))?;
        let dial = Dial {
            domains: Arc::clone(&self.domains),
            lookup: Arc::clone(&self.lookup),
            host: host.clone(),
            port,
        };
        match self.wait_for(dial, place)? {
            Ok(stream) => Ok((stream, host)),
            Err(Missed::NotPublic(address, what)) => {
                let inner = Peer::from(address);
                let why = format!("it leads to {inner}, {what}");
                Err(self.refuse(host.to_string(), port, why, Some(entry_for(&inner, port))))
            }
            Err(Missed::Unknown(error)) => {
                Err(Failure::Unknown(format!("the name {host} was not found: {}", plain(&error))))
            }
            Err(Missed::Unreachable(error)) => Err(Failure::Unreachable(
                error.kind(),
                format!("{host}:{port} cannot be reached: {}", plain(&error)),
            )),
        }
    }

    /// Tells of a connection that is refused.
    pub(super) fn refuse(
        &self,
        host: String,
        port: u16,
        why: impl Into<String>,
        allow: Option<String>,
    ) -> Failure {
        let refused = Refused { host, port, why: why.into(), allow };
        (self.refused)(refused.clone());
        Failure::Refused(refused)
    }

    /// Lets another thread dial: neither a lookup nor a connect can be called off, and the end must not wait for them.
    fn wait_for(&self, dial: Dial, place: &Place) -> Result<Result<TcpStream, Missed>, Failure> {
        let (done, ear) = bell().map_err(|_| Failure::Busy)?;
        let done = RingsAtTheEnd(done);
        let place = place.clone();
        let dialing = thread::Builder::new()
            .name("haft-dial".to_owned())
            .spawn(move || {
                // As long as it dials it counts as a connection, also when nobody waits for it any more.
                let _held = (done, place);
                dial.connect()
            })
            .map_err(|_| Failure::Busy)?;
        match self.end.wait([Some(ear.rung())], Some(Instant::now() + LOOKUP + CONNECT)) {
            Ok(_) => dialing.join().map_err(|_| Failure::Ended),
            Err(Stop::Late) => {
                Ok(Err(Missed::Unreachable(io::Error::new(ErrorKind::TimedOut, "no answer in time"))))
            }
            Err(Stop::Ended | Stop::Gone) => Err(Failure::Ended),
        }
    }
}

struct RingsAtTheEnd(Bell);

impl Drop for RingsAtTheEnd {
    fn drop(&mut self) {
        self.0.ring();
    }
}

/// Why a dial got no connection.
enum Missed {
    NotPublic(IpAddr, &'static str),
    Unknown(io::Error),
    Unreachable(io::Error),
}

struct Dial {
    domains: Arc<Domains>,
    lookup: Lookup,
    host: Peer,
    port: u16,
}

impl Dial {
    fn connect(&self) -> Result<TcpStream, Missed> {
        let addresses = self.addresses()?;
        let deadline = Instant::now() + CONNECT;
        let mut last = io::Error::new(ErrorKind::TimedOut, "no answer in time");
        let tries = addresses.len().min(TRIES);
        for (at, address) in addresses.into_iter().take(tries).enumerate() {
            let left = deadline.saturating_duration_since(Instant::now());
            // A fair share of what is left, so that one silent address cannot use up the time of the others.
            let share = left / u32::try_from(tries - at).unwrap_or(1);
            if share.is_zero() {
                break;
            }
            match TcpStream::connect_timeout(&SocketAddr::new(address, self.port), share) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(Missed::Unreachable(last))
    }

    /// The addresses that may be connected to; the ones a name has beside them are left out.
    fn addresses(&self) -> Result<Vec<IpAddr>, Missed> {
        let name = match &self.host {
            // The list names this very address.
            Peer::Address(address) => return Ok(vec![*address]),
            Peer::Name(name) => name,
        };
        let mut found = Vec::new();
        let mut refused = None;
        for address in (self.lookup)(name).map_err(Missed::Unknown)? {
            let address = address.to_canonical();
            match not_public(address) {
                Some(what) if !self.domains.lists(address, self.port) => {
                    refused = refused.or(Some(Missed::NotPublic(address, what)));
                }
                _ if found.contains(&address) => {}
                _ => found.push(address),
            }
        }
        if found.is_empty() {
            let none = || Missed::Unknown(io::Error::new(ErrorKind::NotFound, "it has no address"));
            return Err(refused.unwrap_or_else(none));
        }
        Ok(found)
    }
}

/// The machine's own resolver.
pub(crate) fn system_lookup(name: &str) -> io::Result<Vec<IpAddr>> {
    // The final dot keeps the resolver from trying the name below the network's own domains first; without the dot
    // are only the names of the hosts file.
    let addresses = (format!("{name}."), 0).to_socket_addrs().or_else(|_| (name, 0).to_socket_addrs())?;
    Ok(addresses.map(|address| address.ip()).collect())
}

/// A host that could not be read, in a form that cannot harm whoever reads it.
fn shown(host: &[u8]) -> String {
    let enough = &host[..host.len().min(255)];
    enough.escape_ascii().to_string()
}

/// The operating system's words without Rust's ` (os error N)`.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error ").next().unwrap_or(&text);
    text.strip_prefix("failed to lookup address information: ").unwrap_or(text).to_lowercase()
}
