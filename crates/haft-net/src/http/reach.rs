//! Which hosts and addresses a call may reach.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use haft_policy::not_public;
use haft_tool::net::{Authority, Domains, Peer, entry_for};
use haft_tool::{Reach, ToolError};

use super::target::HttpTarget;

/// The parsed lists of a scope's [`Reach`].
#[derive(Debug, Clone, Default)]
pub(super) struct ReachCheck {
    hosts: Domains,
    inner: Domains,
    public: bool,
    never: Domains,
}

/// How an allowed host is reached.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HostRoute {
    /// At one of these addresses.
    Addresses(Vec<IpAddr>),
    /// At those addresses of this name that [`ReachCheck::allowed_addresses`] returns.
    Name(String),
}

impl ReachCheck {
    pub(super) fn new(reach: &Reach) -> Result<Self, ToolError> {
        let Reach { hosts, inner, public, never } = reach;
        Ok(Self {
            hosts: Domains::parse(hosts)?,
            inner: Domains::parse(inner)?,
            public: *public,
            never: Domains::parse(never)?,
        })
    }

    /// Checks a target before any name is resolved.
    pub(super) fn check(&self, target: &HttpTarget) -> Result<HostRoute, ToolError> {
        let HttpTarget { peer, port, .. } = target;
        let refuse = |why: &str| refused(&target.authority(), why, Some(entry_for(peer, *port)));
        if target.authority().is_named_in(&self.never) {
            return Err(refused(&target.authority(), "a rule denies it", None));
        }
        match peer {
            peer if peer.is_localhost() => {
                // Never resolved: a resolver could return any address for this name.
                let own = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
                let listed: Vec<_> = own.into_iter().filter(|own| self.lists(*own, *port)).collect();
                if listed.is_empty() {
                    Err(refuse("it is this machine"))
                } else {
                    Ok(HostRoute::Addresses(listed))
                }
            }
            Peer::Address(address) => {
                if !self.lists(*address, *port) {
                    if let Some(range) = not_public(*address) {
                        return Err(refuse(&format!("it is {range}")));
                    }
                    self.require_public().map_err(refuse)?;
                }
                Ok(HostRoute::Addresses(vec![*address]))
            }
            Peer::Name(name) => {
                let listed = |list: &Domains| list.judge(peer, *port).is_ok();
                if !listed(&self.hosts) && !listed(&self.inner) {
                    self.require_public().map_err(refuse)?;
                }
                Ok(HostRoute::Name(name.clone()))
            }
        }
    }

    /// Those of a name's addresses that may be connected to.
    pub(super) fn allowed_addresses(
        &self,
        target: &HttpTarget,
        resolved: Vec<IpAddr>,
    ) -> Result<Vec<IpAddr>, ToolError> {
        let any = self.inner.judge(&target.peer, target.port).is_ok();
        let mut allowed = Vec::new();
        let mut denied = None;
        for address in resolved.into_iter().map(|address| address.to_canonical()) {
            match not_public(address) {
                Some(range) if !any && !self.lists(address, target.port) => {
                    denied.get_or_insert((address, range));
                }
                _ if allowed.contains(&address) => {}
                _ => allowed.push(address),
            }
        }
        match denied {
            Some((address, range)) if allowed.is_empty() => {
                let address = Peer::from(address);
                let why = format!("its name resolves to {address}, {range}");
                // Each of the two alone is not enough.
                let [name, address] = [&target.peer, &address].map(|peer| entry_for(peer, target.port));
                Err(refused(&target.authority(), &why, Some(format!("{name},{address}"))))
            }
            _ => Ok(allowed),
        }
    }

    fn lists(&self, address: IpAddr, port: u16) -> bool {
        self.hosts.lists(address, port) || self.inner.lists(address, port)
    }

    fn require_public(&self) -> Result<(), &'static str> {
        if self.public { Ok(()) } else { Err("this call is not allowed to reach it") }
    }
}

fn refused(authority: &Authority, why: &str, entry: Option<String>) -> ToolError {
    let how = entry.map(|entry| format!("; to allow it: --network {entry}")).unwrap_or_default();
    ToolError::denied(format!("Denied: {authority}: {why}{how}"))
}
