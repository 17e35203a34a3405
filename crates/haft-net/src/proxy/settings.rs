//! What a proxy lets through, and who is asked about the rest.

use std::sync::Arc;

use haft_tool::Cancel;
use haft_tool::net::Domains;

use super::parent::ParentProxies;
use super::upstream::RefusedConnection;

/// A connection to a host that is not listed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnlistedHost {
    /// The host in the form that is checked and connected to.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The entry that would list it.
    pub entry: String,
}

/// Decides about hosts that are not listed, for example by asking the user.
pub trait HostAsker: Send + Sync {
    /// Whether a host may be reached. It may block, on a thread of its own, and must return soon after `cancel` fires.
    fn allows(&self, host: &UnlistedHost, cancel: &Cancel) -> bool;
}

/// The settings of a proxy.
pub struct ProxySettings {
    /// What it lets through.
    pub domains: Domains,
    /// Hosts of the user's own settings: their names may lead to addresses that are not public.
    pub own_hosts: Domains,
    /// The proxies that lead out of the user's network.
    pub parents: ParentProxies,
    /// Decides about the rest; without it the rest is refused at once.
    pub asker: Option<Arc<dyn HostAsker>>,
    /// Receives what was refused.
    pub on_refused: Box<dyn Fn(RefusedConnection) + Send + Sync>,
}
