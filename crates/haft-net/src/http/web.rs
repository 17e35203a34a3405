//! What the doors of a session share.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

use haft_tool::{Cancel, Http, HttpStreams, Reach, ToolError};
use hyper_util::client::proxy::matcher::Matcher;
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt as _;

use super::cache::Cache;
use super::door::Door;
use super::streams::Streams;
use crate::proxy::{Lookup, system_lookup};

/// The network of a session: what its requests share. Making one costs nothing; the first request sets it up.
pub struct Web {
    tls: OnceLock<Result<ClientConfig, String>>,
    proxies: OnceLock<Matcher>,
    pub(super) cache: Mutex<Cache>,
    pub(super) lookup: Lookup,
}

impl Default for Web {
    fn default() -> Self {
        Self {
            tls: OnceLock::new(),
            proxies: OnceLock::new(),
            cache: Mutex::default(),
            lookup: Arc::new(system_lookup),
        }
    }
}

impl Web {
    /// A way out for what is no call of a tool: to these hosts, as the user's configuration names them, and no others.
    pub fn to_hosts(self: &Arc<Self>, hosts: Vec<String>, cancel: Cancel) -> Arc<dyn Http> {
        self.within(Reach { inner: hosts.clone(), hosts, ..Reach::default() }, cancel)
    }

    /// A way out for what is no call of a tool, as far as `reach` goes.
    pub fn within(self: &Arc<Self>, reach: Reach, cancel: Cancel) -> Arc<dyn Http> {
        Arc::new(Door::new(Arc::clone(self), reach, cancel))
    }

    /// The same for conversations: answers are read as they come, and connections are kept.
    pub fn streams_to(self: &Arc<Self>, hosts: Vec<String>) -> Arc<dyn HttpStreams> {
        let reach = Reach { inner: hosts.clone(), hosts, ..Reach::default() };
        Arc::new(Streams::new(Arc::clone(self), reach))
    }

    /// A network with its own resolver and proxies.
    #[cfg(test)]
    pub(super) fn with(lookup: Lookup, proxies: Matcher) -> Self {
        Self { lookup, proxies: OnceLock::from(proxies), ..Self::default() }
    }

    pub(super) fn proxies(&self) -> &Matcher {
        self.proxies.get_or_init(Matcher::from_env)
    }

    /// How TLS is spoken: with the certificates that this machine trusts.
    pub(super) fn tls(&self) -> Result<ClientConfig, ToolError> {
        let made = self.tls.get_or_init(|| {
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
            let config = config.and_then(|config| Ok(config.with_platform_verifier()?.with_no_client_auth()));
            config.map_err(|error| error.to_string())
        });
        made.clone().map_err(|why| {
            ToolError::failed(format!(
                "https cannot be spoken on this machine: {why}; install its root certificates (ca-certificates), or \
                 name them in SSL_CERT_FILE"
            ))
        })
    }
}

impl fmt::Debug for Web {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Web").finish_non_exhaustive()
    }
}
