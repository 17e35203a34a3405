//! What all servers of a session share: the runtime they are for, whom the user trusts, who is told of news.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};

use haft_runtime::{Runtime, WeakRuntime};
use haft_tool::{Host, ToolError, lock};
use serde_json::Value;
use url::Url;

use super::entry::{Entry, Way};
use super::source::Inner;
use super::trust::Trust;
use haft_mcp::client::oauth::{Authorizer, BrowserOpener, OAuthOptions, RegisteredClient};
use haft_mcp::client::{McpClient, TokenProvider};

/// Who hears that the list of tools is another one.
pub type OnChange = Box<dyn Fn() + Send + Sync>;

/// What all servers share.
pub(super) struct Ground {
    pub(super) trust: Trust,
    pub(super) host: Arc<dyn Host>,
    home: PathBuf,
    opener: Arc<dyn BrowserOpener>,
    runtime: Mutex<Option<WeakRuntime>>,
    pub(super) servers: Mutex<Weak<Inner>>,
}

impl Ground {
    pub(super) fn new(home: PathBuf, host: Arc<dyn Host>, opener: Arc<dyn BrowserOpener>) -> Self {
        let trust = Trust::new(&home);
        Self { trust, host, home, opener, runtime: Mutex::default(), servers: Mutex::default() }
    }

    pub(super) fn join(&self, runtime: WeakRuntime) {
        *lock(&self.runtime) = Some(runtime);
    }

    pub(super) fn runtime(&self) -> Result<Runtime, ToolError> {
        let runtime = lock(&self.runtime);
        let found = runtime.as_ref().and_then(WeakRuntime::upgrade);
        found.ok_or_else(|| ToolError::failed("the session has ended, and its servers with it"))
    }

    /// Who gets tokens for a server that wants them.
    pub(super) fn authorize(
        &self,
        entry: &Entry,
        runtime: &Runtime,
    ) -> Result<Option<Arc<dyn TokenProvider>>, ToolError> {
        Ok(self.authorizer(entry, runtime)?.map(|authorizer| authorizer as Arc<dyn TokenProvider>))
    }

    /// The same, for whoever wants to log in or to forget.
    pub(super) fn authorizer(
        &self,
        entry: &Entry,
        runtime: &Runtime,
    ) -> Result<Option<Arc<Authorizer>>, ToolError> {
        let Way::Http { url, headers, .. } = &entry.way else { return Ok(None) };
        // Whoever brings a token along wants no other.
        if headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
            return Ok(None);
        }
        let web = Arc::clone(runtime.http_service());
        let doors = Arc::new(move |reach, cancel| web.client_within(reach, cancel));
        let options = options(&entry.oauth, entry);
        let folder = self.home.join("tokens");
        Authorizer::new(url, doors, Arc::clone(&self.opener), folder, options)
            .map(|authorizer| Some(Arc::new(authorizer)))
            .map_err(|error| ToolError::failed(format!("the server {}: {}", entry.name, error.message)))
    }

    /// Looks at a server's tools again if it has said since that they are others.
    pub(super) fn catch_up(&self, name: &str, client: &McpClient) -> Result<(), ToolError> {
        let servers = lock(&self.servers).upgrade();
        servers.map_or(Ok(()), |servers| servers.catch_up(name, client))
    }
}

/// What the entry says of its authorization: a client that the user registered, a document, hosts.
fn options(written: &Value, entry: &Entry) -> OAuthOptions {
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
