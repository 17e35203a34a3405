//! The network of a command: what it may reach, its proxy, and what the proxy reports and asks while the command runs.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use haft_net::proxy::{ParentProxies, ProxySettings, RefusedConnection, proxy_variables, refusal_variables};
use haft_policy::preset_of_host;
use haft_tool::net::Domains;
use haft_tool::{Network, ToolError, lock};

use super::{CommandHooks, ScopeSetup};
use crate::Environment;
use crate::denials::DenialList;

/// What a command may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NetworkReach {
    /// The loopback interface of the session's own network namespace, with a proxy.
    #[cfg(target_os = "linux")]
    Own,
    /// Nothing but a proxy on this machine, which passes nothing that the user does not allow.
    None(Option<SocketAddr>),
    /// A proxy on this machine, which passes listed domains.
    Proxy(SocketAddr),
    All,
}

impl CommandHooks {
    /// The settings of a command's proxy; what it refuses is added to `refused`.
    pub(super) fn proxy_settings(
        &self,
        network: &Network,
        own_hosts: &[String],
        refused: &Arc<Mutex<DenialList>>,
    ) -> Result<ProxySettings, ToolError> {
        let domains = match network {
            Network::Domains(domains) => Domains::parse(domains)?,
            Network::None | Network::All => Domains::default(),
        };
        Ok(ProxySettings {
            domains,
            own_hosts: Domains::parse(own_hosts)?,
            parents: ParentProxies::from_env(),
            asker: self.asker.clone(),
            on_refused: self.report_to(refused),
        })
    }

    fn report_to(&self, refused: &Arc<Mutex<DenialList>>) -> Box<dyn Fn(RefusedConnection) + Send + Sync> {
        let (refused, on_refused_host) = (Arc::clone(refused), self.on_refused_host.clone());
        Box::new(move |denied| {
            let allow = denied.allow.map(|entry| match preset_of_host(&denied.host) {
                Some(preset) if !entry.contains(',') => format!("--network {entry}, or --network {preset}"),
                _ => format!("--network {entry}"),
            });
            let place = format!("{}:{}", denied.host, denied.port);
            let added = lock(&refused).add("connect", place, denied.why, allow).cloned();
            if let (Some(denial), Some(on_refused_host)) = (added, &on_refused_host) {
                on_refused_host(&denial);
            }
        })
    }
}

impl ScopeSetup {
    /// What a command may reach, with a proxy at `proxy`.
    pub(super) fn reach(&self, network: &Network, proxy: Option<SocketAddr>) -> NetworkReach {
        match (network, proxy) {
            (Network::All, _) => NetworkReach::All,
            (Network::Domains(_), Some(proxy)) => self.own_network().unwrap_or(NetworkReach::Proxy(proxy)),
            (Network::Domains(_), None) | (Network::None, _) => {
                self.own_network().unwrap_or(NetworkReach::None(proxy))
            }
        }
    }

    /// The listener of a command's proxy, on the loopback interface of commands.
    pub(super) fn listen(&self, network: &Network) -> Result<Option<TcpListener>, ToolError> {
        match network {
            Network::All => Ok(None),
            // Without its proxy a command is refused less clearly, but as well.
            Network::None => Ok(self.loopback_listener().ok()),
            Network::Domains(_) => {
                let listener = self.loopback_listener();
                let failed = |error| ToolError::io("start the proxy for the listed domains", &error);
                listener.map(Some).map_err(failed)
            }
        }
    }

    #[cfg(target_os = "linux")]
    fn loopback_listener(&self) -> std::io::Result<TcpListener> {
        match &self.namespaces {
            Ok(session) => session.namespaces.listen(0),
            Err(_) => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)),
        }
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "on Linux it depends on the namespaces")]
    fn loopback_listener(&self) -> std::io::Result<TcpListener> {
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
    }

    #[cfg(target_os = "linux")]
    fn own_network(&self) -> Option<NetworkReach> {
        self.namespaces.is_ok().then_some(NetworkReach::Own)
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "on Linux it depends on the namespaces")]
    fn own_network(&self) -> Option<NetworkReach> {
        None
    }
}

/// The environment of a command with a proxy at `address`.
pub(super) fn environment(
    given: &Environment,
    network: &Network,
    address: Option<SocketAddr>,
) -> Environment {
    let mut environment = given.clone();
    for (name, value) in address.into_iter().flat_map(proxy_variables) {
        environment = environment.with(name, value);
    }
    if *network == Network::None {
        for (name, value) in refusal_variables() {
            if environment.get(name).is_none() {
                environment = environment.with(name, value);
            }
        }
    }
    environment
}

/// The network of a scope, for receipts.
pub(super) fn describe(network: &Network) -> String {
    match network {
        Network::None => "no network".to_owned(),
        Network::All => "all of the network".to_owned(),
        Network::Domains(domains) => format!("network: {}", domains.join(", ")),
    }
}
