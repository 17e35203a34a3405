//! A host with its port, as written in an effect, a setting or a web address.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::domains::USUAL_PORTS;
use super::{Domains, Peer, split_port};

/// A host and the port to reach it at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    /// The host.
    pub peer: Peer,
    /// `None` for the web's ports, 80 and 443.
    pub port: Option<u16>,
}

impl Authority {
    /// Reads `example.com`, `example.com:8080`, `10.0.0.5` or `[::1]:80`.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let (host, port) = split_port(text.as_bytes()).ok_or("what follows its colon is no port")?;
        Ok(Self { peer: Peer::parse(host)?, port })
    }

    /// A host and port; the web's ports need not be named.
    pub fn new(peer: Peer, port: u16) -> Self {
        Self { peer, port: Some(port).filter(|port| !USUAL_PORTS.contains(port)) }
    }

    /// The entries of a list that allow exactly this. This machine is listed by its addresses.
    pub fn entries(&self) -> Vec<String> {
        let addresses = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        let peers = match &self.peer {
            peer if peer.is_localhost() => addresses.map(Peer::from).to_vec(),
            peer => vec![peer.clone()],
        };
        peers.into_iter().map(|peer| Self { peer, port: self.port }.to_string()).collect()
    }

    /// Whether `list` names its host with any port. An entry for an address of this machine stands for this machine.
    pub fn is_named_in(&self, list: &Domains) -> bool {
        let named = |entry: &String| Self::parse(entry).is_ok_and(|one| list.names(&one.peer));
        list.names(&self.peer) || self.entries().iter().any(named)
    }

    /// Whether `list` lets it through.
    pub fn is_in(&self, list: &Domains) -> bool {
        let ports = self.port.map_or(USUAL_PORTS.to_vec(), |port| vec![port]);
        let listed = |entry: &String| {
            Self::parse(entry).is_ok_and(|one| ports.iter().any(|port| list.judge(&one.peer, *port).is_ok()))
        };
        self.entries().iter().any(listed)
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}:{port}", self.peer),
            None => self.peer.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authority(text: &str) -> Authority {
        Authority::parse(text).unwrap()
    }

    #[test]
    fn this_machine_is_listed_by_its_addresses() {
        assert_eq!(authority("localhost:3000").entries(), ["127.0.0.1:3000", "[::1]:3000"]);
        let list = Domains::parse(&["127.0.0.1:3000".to_owned(), "example.com".to_owned()]).unwrap();
        assert!(authority("localhost:3000").is_in(&list) && authority("127.1:3000").is_in(&list));
        assert!(!authority("localhost:3001").is_in(&list) && !authority("localhost").is_in(&list));
        assert!(authority("EXAMPLE.com.").is_in(&list) && !authority("example.com:22").is_in(&list));
    }
}
