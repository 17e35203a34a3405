//! Lists of hosts that may be reached.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::peer::{Peer, split_port};
use crate::ToolError;

/// Hosts that may be reached, some of them only at some ports.
#[derive(Debug, Clone, Default)]
pub struct Domains {
    entries: Vec<DomainEntry>,
}

#[derive(Debug, Clone)]
struct DomainEntry {
    pattern: HostPattern,
    /// `None` for [`USUAL_PORTS`].
    port: Option<u16>,
}

#[derive(Debug, Clone)]
enum HostPattern {
    Name(String),
    /// Everything below this name, but not the name itself.
    Below(String),
    Address(IpAddr),
}

/// The ports of an entry without one.
pub(super) const USUAL_PORTS: [u16; 2] = [80, 443];

impl Domains {
    /// Reads entries such as `example.com`, `*.example.com`, `example.com:8080`, `10.0.0.5:5432` and `[::1]:80`.
    pub fn parse(list: &[String]) -> Result<Self, ToolError> {
        let entries = list.iter().map(|text| DomainEntry::parse(text)).collect::<Result<_, _>>()?;
        Ok(Self { entries })
    }

    /// Whether `host` may be asked for at `port`; the addresses of a name are still to be checked.
    pub fn allows(&self, host: &str, port: u16) -> bool {
        Peer::parse(host.as_bytes()).is_ok_and(|host| self.judge(&host, port).is_ok())
    }

    /// Why `host` may not be asked for at `port`.
    pub fn judge(&self, host: &Peer, port: u16) -> Result<(), &'static str> {
        // The name does not say what listens there; only an address with its port does.
        if host.is_localhost() {
            return Err("this machine is not reached by name");
        }
        if self.entries.is_empty() {
            return Err("the network is not part of the scope");
        }
        let mut named = self.entries.iter().filter(|entry| entry.pattern.covers(host)).peekable();
        if named.peek().is_none() {
            return Err(match host {
                Peer::Name(_) => "it is not in the list of domains",
                Peer::Address(_) => "an address is reached only if the list of domains names it",
            });
        }
        if named.any(|entry| entry.opens(port)) {
            return Ok(());
        }
        Err("the list of domains does not name this port")
    }

    /// Whether `host` is listed, whatever the port.
    pub fn names(&self, host: &Peer) -> bool {
        self.entries.iter().any(|entry| entry.pattern.covers(host))
    }

    /// Whether `address` itself is listed, so that a name may lead there, too.
    pub fn lists(&self, address: IpAddr, port: u16) -> bool {
        self.judge(&Peer::from(address), port).is_ok()
    }
}

/// The entry that would allow `host` at `port`.
pub fn entry_for(host: &Peer, port: u16) -> String {
    if USUAL_PORTS.contains(&port) && !host.is_localhost() {
        return host.to_string();
    }
    if host.is_localhost() { format!("127.0.0.1:{port}") } else { format!("{host}:{port}") }
}

impl DomainEntry {
    fn parse(text: &str) -> Result<Self, ToolError> {
        let wrong = |why: &str| {
            let text = text.escape_debug();
            ToolError::invalid_arguments(format!(
                "`{text}` cannot be in the list of domains: {why}. Write `example.com`, `*.example.com` or \
                 `example.com:8080`, or an address such as `10.0.0.5:8080` or `[fd00::1]:8080`."
            ))
        };
        if let Ok(address) = text.parse::<Ipv6Addr>() {
            return Ok(Self {
                pattern: HostPattern::Address(IpAddr::V6(address).to_canonical()),
                port: None,
            });
        }
        let (below, rest) = match text.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (host, port) =
            split_port(rest.as_bytes()).ok_or_else(|| wrong("what follows its colon is no port"))?;
        let pattern = match Peer::parse(host).map_err(wrong)? {
            Peer::Name(name) if below => HostPattern::Below(name),
            Peer::Name(name) => HostPattern::Name(name),
            Peer::Address(_) if below => return Err(wrong("nothing is below an address")),
            // Only the plain spelling, because `010.0.0.1` is not the address that most people take it for.
            Peer::Address(IpAddr::V4(address)) if !is_plain(host, address) => {
                return Err(wrong("the address is not in its plain spelling"));
            }
            Peer::Address(address) => HostPattern::Address(address),
        };
        Ok(Self { pattern, port })
    }

    fn opens(&self, port: u16) -> bool {
        match self.port {
            Some(listed) => listed == port,
            None => USUAL_PORTS.contains(&port),
        }
    }
}

fn is_plain(host: &[u8], address: Ipv4Addr) -> bool {
    host.starts_with(b"[") || host == address.to_string().as_bytes()
}

impl HostPattern {
    fn covers(&self, host: &Peer) -> bool {
        match (self, host) {
            (Self::Name(listed), Peer::Name(name)) => listed == name,
            (Self::Below(listed), Peer::Name(name)) => {
                name.strip_suffix(listed.as_str()).is_some_and(|label| label.ends_with('.'))
            }
            (Self::Address(listed), Peer::Address(address)) => listed == address,
            _ => false,
        }
    }
}
