//! Which hosts and addresses a call may reach.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use haft_tool::net::{Authority, Domains, Peer, entry_for, not_public};
use haft_tool::{Reach, ToolError};

use super::address::Address;

/// What a scope's [`Reach`] says, ready to be asked.
#[derive(Debug, Clone, Default)]
pub(super) struct Limits {
    hosts: Domains,
    inner: Domains,
    public: bool,
    never: Domains,
}

/// How a host that may be reached is reached.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// At one of these addresses.
    Addresses(Vec<IpAddr>),
    /// At the addresses of this name that may be reached.
    Name(String),
}

impl Limits {
    pub(super) fn of(reach: &Reach) -> Result<Self, ToolError> {
        let Reach { hosts, inner, public, never } = reach;
        Ok(Self {
            hosts: Domains::parse(hosts)?,
            inner: Domains::parse(inner)?,
            public: *public,
            never: Domains::parse(never)?,
        })
    }

    /// How `address` may be reached.
    pub(super) fn judge(&self, address: &Address) -> Result<Way, ToolError> {
        let Address { peer, port, .. } = address;
        if address.place().is_named_in(&self.never) {
            return Err(refused(&address.place(), "a rule holds it back", None));
        }
        match peer {
            peer if peer.is_localhost() => {
                // Whatever a resolver says about this name.
                let own = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
                let listed: Vec<_> = own.into_iter().filter(|own| self.lists(*own, *port)).collect();
                if listed.is_empty() {
                    return Err(refused(
                        &address.place(),
                        "it is this machine",
                        Some(entry_for(peer, *port)),
                    ));
                }
                Ok(Way::Addresses(listed))
            }
            Peer::Address(literal) => {
                if !self.lists(*literal, *port) {
                    let what = not_public(*literal).map(|what| format!("it is {what}"));
                    if let Some(why) = what.or_else(|| self.not_let_through()) {
                        return Err(refused(&address.place(), &why, Some(entry_for(peer, *port))));
                    }
                }
                Ok(Way::Addresses(vec![*literal]))
            }
            Peer::Name(name) => {
                let named = |list: &Domains| list.judge(peer, *port).is_ok();
                if !named(&self.hosts)
                    && !named(&self.inner)
                    && let Some(why) = self.not_let_through()
                {
                    return Err(refused(&address.place(), &why, Some(entry_for(peer, *port))));
                }
                Ok(Way::Name(name.clone()))
            }
        }
    }

    /// Those of a name's addresses that may be connected to.
    pub(super) fn sift(&self, address: &Address, found: Vec<IpAddr>) -> Result<Vec<IpAddr>, ToolError> {
        let any = self.inner.judge(&address.peer, address.port).is_ok();
        let mut kept = Vec::new();
        let mut held = None;
        for one in found {
            let one = one.to_canonical();
            match not_public(one) {
                Some(what) if !any && !self.lists(one, address.port) => held = held.or(Some((one, what))),
                _ if kept.contains(&one) => {}
                _ => kept.push(one),
            }
        }
        match held {
            Some((one, what)) if kept.is_empty() => {
                let one = Peer::from(one);
                let why = format!("it leads to {one}, {what}");
                Err(refused(&address.place(), &why, Some(entry_for(&one, address.port))))
            }
            _ => Ok(kept),
        }
    }

    fn lists(&self, address: IpAddr, port: u16) -> bool {
        self.hosts.lists(address, port) || self.inner.lists(address, port)
    }

    fn not_let_through(&self) -> Option<String> {
        (!self.public).then(|| "this call was not let through to it".to_owned())
    }
}

fn refused(place: &Authority, why: &str, entry: Option<String>) -> ToolError {
    let how = entry.map(|entry| format!("; to allow it: --network {entry}")).unwrap_or_default();
    ToolError::denied(format!("Haft did not reach {place}: {why}{how}"))
}
