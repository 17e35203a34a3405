//! What all HTTP clients of a session share.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

use haft_tool::{Cancel, Http, HttpStreams, Reach, ToolError};
use hyper_util::client::proxy::matcher::Matcher;
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt as _;

use super::cache::ResponseCache;
use super::client::HttpClient;
use super::runtime::RuntimeThread;
use super::streams::StreamClient;
use crate::lookup::{Lookup, system_lookup};

/// The HTTP of a session: TLS configuration, proxies, cache and the thread that drives requests. All of it is set up by the
/// first request.
pub struct HttpService {
    tls: OnceLock<Result<ClientConfig, String>>,
    proxies: OnceLock<Matcher>,
    runtime: OnceLock<Result<RuntimeThread, ToolError>>,
    pub(super) cache: Mutex<ResponseCache>,
    pub(super) lookup: Lookup,
}

impl Default for HttpService {
    fn default() -> Self {
        Self {
            tls: OnceLock::new(),
            proxies: OnceLock::new(),
            runtime: OnceLock::new(),
            cache: Mutex::default(),
            lookup: Arc::new(system_lookup),
        }
    }
}

impl HttpService {
    /// A client outside any call, limited to these hosts of the user's configuration.
    pub fn client_for(self: &Arc<Self>, hosts: Vec<String>, cancel: Cancel) -> Arc<dyn Http> {
        self.client_within(configured(hosts), cancel)
    }

    /// A client outside any call, limited to `reach`.
    pub fn client_within(self: &Arc<Self>, reach: Reach, cancel: Cancel) -> Arc<dyn Http> {
        Arc::new(HttpClient::new(Arc::clone(self), reach, cancel))
    }

    /// Streaming requests, limited to these hosts of the user's configuration; connections are reused.
    pub fn streams_for(self: &Arc<Self>, hosts: Vec<String>) -> Arc<dyn HttpStreams> {
        Arc::new(StreamClient::new(Arc::clone(self), configured(hosts)))
    }

    /// A service with another resolver and other proxies.
    #[cfg(test)]
    pub(super) fn with(lookup: Lookup, proxies: Matcher) -> Self {
        Self { lookup, proxies: OnceLock::from(proxies), ..Self::default() }
    }

    pub(super) fn proxies(&self) -> &Matcher {
        self.proxies.get_or_init(Matcher::from_env)
    }

    pub(super) fn runtime(&self) -> Result<&RuntimeThread, ToolError> {
        self.runtime.get_or_init(RuntimeThread::start).as_ref().map_err(Clone::clone)
    }

    /// TLS with the certificates that this machine trusts.
    pub(super) fn tls(&self) -> Result<ClientConfig, ToolError> {
        let config = self.tls.get_or_init(|| {
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
            let config = config.and_then(|config| Ok(config.with_platform_verifier()?.with_no_client_auth()));
            config.map_err(|error| error.to_string())
        });
        config.clone().map_err(|why| {
            ToolError::failed(format!(
                "https is not available on this machine: {why}; install its root certificates (ca-certificates), or name \
                 them in SSL_CERT_FILE"
            ))
        })
    }
}

/// Hosts that the user's configuration names may have any address.
fn configured(hosts: Vec<String>) -> Reach {
    Reach { inner: hosts.clone(), hosts, ..Reach::default() }
}

impl fmt::Debug for HttpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpService").finish_non_exhaustive()
    }
}
