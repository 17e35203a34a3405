//! What all servers of a session share: the runtime, the trust store, the host and the authorization.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};

use haft_runtime::{Runtime, WeakRuntime};
use haft_tool::{Host, ToolError, lock};
use serde_json::Value;
use url::Url;

use super::entry::{ServerEntry, ServerLocation};
use super::source::ServersInner;
use super::trust::TrustStore;
use haft_mcp::client::oauth::{Authorizer, BrowserOpener, OAuthOptions, RegisteredClient};
use haft_mcp::client::{McpClient, MessageLink, TokenProvider};

/// Called when the list of tools has changed.
pub type OnChange = Box<dyn Fn() + Send + Sync>;

/// Makes the link to a server inside the program that drives this one, by its name.
pub type HostLinks = Arc<dyn Fn(&str) -> Arc<dyn MessageLink> + Send + Sync>;

/// What all servers of a session share.
pub(super) struct ServerContext {
    pub(super) trust: TrustStore,
    pub(super) host: Arc<dyn Host>,
    home: PathBuf,
    opener: Arc<dyn BrowserOpener>,
    runtime: Mutex<Option<WeakRuntime>>,
    pub(super) servers: Mutex<Weak<ServersInner>>,
    links: Option<HostLinks>,
}

impl ServerContext {
    pub(super) fn new(
        home: PathBuf,
        host: Arc<dyn Host>,
        opener: Arc<dyn BrowserOpener>,
        links: Option<HostLinks>,
    ) -> Self {
        let trust = TrustStore::new(&home);
        Self { trust, host, home, opener, runtime: Mutex::default(), servers: Mutex::default(), links }
    }

    /// The link to a server inside the program that drives this one.
    pub(super) fn link(&self, name: &str) -> Result<Arc<dyn MessageLink>, ToolError> {
        let links = self.links.as_ref().ok_or_else(|| {
            ToolError::failed(format!(
                "The server {name} is inside the program that drives Haft, and no program does. It needs --input-format stream-json"
            ))
        })?;
        Ok(links(name))
    }

    pub(super) fn join(&self, runtime: WeakRuntime) {
        *lock(&self.runtime) = Some(runtime);
    }

    pub(super) fn runtime(&self) -> Result<Runtime, ToolError> {
        let runtime = lock(&self.runtime);
        let found = runtime.as_ref().and_then(WeakRuntime::upgrade);
        found.ok_or_else(|| ToolError::failed("The session has ended, and its servers with it."))
    }

    /// The provider of tokens for a server over HTTP.
    pub(super) fn authorize(
        &self,
        entry: &ServerEntry,
        runtime: &Runtime,
    ) -> Result<Option<Arc<dyn TokenProvider>>, ToolError> {
        Ok(self.authorizer(entry, runtime)?.map(|authorizer| authorizer as Arc<dyn TokenProvider>))
    }

    /// The same with the operations for login and logout; `None` if the server takes no tokens from Haft.
    pub(super) fn authorizer(
        &self,
        entry: &ServerEntry,
        runtime: &Runtime,
    ) -> Result<Option<Arc<Authorizer>>, ToolError> {
        let ServerLocation::Http { url, headers, .. } = &entry.location else { return Ok(None) };
        // A configured Authorization header replaces OAuth.
        if headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
            return Ok(None);
        }
        let service = Arc::clone(runtime.http_service());
        let clients = Arc::new(move |reach, cancel| service.client_within(reach, cancel));
        let options = options(&entry.oauth, entry);
        let folder = self.home.join("tokens");
        Authorizer::new(url, clients, Arc::clone(&self.opener), folder, options)
            .map(|authorizer| Some(Arc::new(authorizer)))
            .map_err(|error| ToolError::failed(format!("the server {}: {}", entry.name, error.message)))
    }

    /// Lists a server's tools again if it has announced a change.
    pub(super) fn refresh_tools(&self, name: &str, client: &McpClient) -> Result<(), ToolError> {
        let servers = lock(&self.servers).upgrade();
        servers.map_or(Ok(()), |servers| servers.refresh_tools(name, client))
    }
}

/// The OAuth settings of the entry: a registered client, a metadata document, hosts.
fn options(written: &Value, entry: &ServerEntry) -> OAuthOptions {
    let word = |names: &[&str]| {
        names.iter().find_map(|name| written.get(*name).and_then(Value::as_str)).map(str::to_owned)
    };
    let registered = word(&["client_id", "clientId"]).map(|id| RegisteredClient {
        id,
        secret: word(&["client_secret", "clientSecret"]).map(haft_tool::Secret::new),
        issuer: word(&["issuer"]),
        redirect: word(&["redirect_uri", "redirectUri"]).and_then(|url| Url::parse(&url).ok()),
    });
    let hosts = written.get("hosts").and_then(Value::as_array).into_iter().flatten();
    let hosts = hosts.filter_map(Value::as_str).map(str::to_owned).chain(entry.host());
    OAuthOptions {
        registered,
        document: word(&["client_metadata_url", "clientMetadataUrl"]).and_then(|url| Url::parse(&url).ok()),
        hosts: hosts.collect(),
        ..OAuthOptions::default()
    }
}
