//! The tokens of one server, shared by all threads of this process.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use haft_tool::{Cancel, lock};
use url::Url;

use super::browser::BrowserOpener;
use super::errors::unauthorized;
use super::fetch::{Fetch, HttpFactory};
use super::flow::Flow;
use super::grant::Tokens;
use super::registration::RegisteredClient;
use super::renewal::Renewal;
use super::resource::ProtectedResource;
use super::scopes::Scopes;
use super::store::{TokenEntry, TokenStore};
use crate::client::{ClientError, TokenProvider};

/// A token that expires sooner is refreshed before it is used.
const REFRESH_BEFORE_EXPIRY_SECONDS: u64 = 60;
/// How long a failed refresh is not repeated unless the server rejects the token.
const REFRESH_RETRY_DELAY: Duration = Duration::from_mins(1);
/// How often the user may be asked within `LOGIN_WINDOW`, so that a server cannot open browsers endlessly.
const MAX_LOGINS: usize = 6;
const LOGIN_WINDOW: Duration = Duration::from_mins(10);

/// How the tokens of one server are obtained.
#[derive(Debug, Clone)]
pub struct OAuthOptions {
    /// A client that the user registered; preferred to all others.
    pub registered: Option<RegisteredClient>,
    /// The URL of Haft's client metadata document (`https`, with a path), for authorization servers that support one.
    pub document: Option<Url>,
    /// The name under which Haft registers.
    pub name: String,
    /// Hosts of the user that may be reached although they are not public, such as a company's sign-on.
    pub hosts: Vec<String>,
    /// How long the user may take.
    pub limit: Duration,
}

impl Default for OAuthOptions {
    fn default() -> Self {
        Self {
            registered: None,
            document: None,
            name: "Haft".to_owned(),
            hosts: Vec::new(),
            limit: Duration::from_mins(5),
        }
    }
}

/// Obtains, refreshes and stores the tokens of one server.
pub struct Authorizer {
    pub(super) flow: Flow,
    pub(super) store: TokenStore,
    state: Mutex<AuthorizerState>,
}

#[derive(Default)]
struct AuthorizerState {
    is_loaded: bool,
    tokens: Option<Tokens>,
    /// Sets of scopes that were requested after status 403.
    upgraded: BTreeSet<String>,
    /// When the user was asked.
    logins: VecDeque<Instant>,
    retry_refresh_at: Option<Instant>,
}

impl Authorizer {
    /// For the server with this URL. Tokens are stored in `folder`, which belongs to Haft. Does no I/O yet.
    pub fn new(
        server: &str,
        http: HttpFactory,
        browser: Arc<dyn BrowserOpener>,
        folder: impl Into<PathBuf>,
        options: OAuthOptions,
    ) -> Result<Self, ClientError> {
        let OAuthOptions { registered, document, name, hosts, limit } = options;
        let resource = ProtectedResource::new(server, hosts)?;
        if let Some(document) = &document
            && (document.scheme() != "https" || document.path() == "/")
        {
            return Err(unauthorized(format!(
                "{document} cannot be a client metadata document: it needs https and a path"
            )));
        }
        let store = TokenStore::new(&folder.into(), resource.identifier());
        let flow = Flow { fetch: Fetch::new(http, resource), browser, limit, name, registered, document };
        Ok(Self { flow, store, state: Mutex::default() })
    }

    /// Asks the user for new tokens, whether or not there are any.
    pub fn login(&self, cancel: &Cancel) -> Result<(), ClientError> {
        Renewal::new(self, cancel).login()
    }

    /// Forgets tokens and registration, in memory and on disk.
    pub fn forget(&self) -> Result<(), ClientError> {
        self.state().tokens = None;
        self.store.put(None)
    }

    /// Uses these tokens from now on.
    pub(super) fn adopt(&self, tokens: &Tokens) -> String {
        let mut state = self.state();
        (state.is_loaded, state.tokens, state.retry_refresh_at) = (true, Some(tokens.clone()), None);
        tokens.access.expose().to_owned()
    }

    /// Uses these tokens from now on, and stores them.
    pub(super) fn keep(&self, entry: &TokenEntry, tokens: Tokens) -> Result<String, ClientError> {
        let token = self.adopt(&tokens);
        self.store.put(Some(&TokenEntry { tokens: Some(tokens), ..entry.clone() }))?;
        Ok(token)
    }

    /// Records that these scopes are requested after status 403. Returns false if they were before.
    pub(super) fn begin_upgrade(&self, scopes: &Scopes) -> bool {
        self.state().upgraded.insert(scopes.to_string())
    }

    /// Fails if the user was asked too often.
    pub(super) fn check_login_limit(&self) -> Result<(), ClientError> {
        let mut state = self.state();
        let now = Instant::now();
        while state.logins.front().is_some_and(|at| now.duration_since(*at) > LOGIN_WINDOW) {
            state.logins.pop_front();
        }
        if state.logins.len() >= MAX_LOGINS {
            return Err(unauthorized(format!(
                "{} has required a login {MAX_LOGINS} times within {} minutes. Try again later.",
                self.flow.fetch.resource.identifier(),
                LOGIN_WINDOW.as_secs() / 60
            )));
        }
        Ok(())
    }

    /// Records that the user is asked.
    pub(super) fn record_login(&self) {
        self.state().logins.push_back(Instant::now());
    }

    fn state(&self) -> MutexGuard<'_, AuthorizerState> {
        lock(&self.state)
    }
}

impl TokenProvider for Authorizer {
    fn token(&self) -> Option<String> {
        if self.flow.fetch.resource.is_unencrypted() {
            return None;
        }
        let tokens = {
            let mut state = self.state();
            if !state.is_loaded {
                // A read error is reported when the server requires a token.
                state.tokens = self.store.entry().ok().flatten().and_then(|entry| entry.tokens);
                state.is_loaded = true;
            }
            let failed_recently = state.retry_refresh_at.is_some_and(|at| Instant::now() < at);
            let tokens = state.tokens.clone()?;
            if tokens.lasts(REFRESH_BEFORE_EXPIRY_SECONDS) || tokens.refresh.is_none() || failed_recently {
                return Some(tokens.access.expose().to_owned());
            }
            tokens
        };
        if let Ok(Some(token)) = Renewal::new(self, &Cancel::new()).refresh(tokens.access.expose()) {
            return Some(token);
        }
        self.state().retry_refresh_at = Some(Instant::now() + REFRESH_RETRY_DELAY);
        Some(tokens.access.expose().to_owned())
    }

    fn challenged(
        &self,
        used: Option<&str>,
        status: u16,
        challenges: &[String],
        cancel: &Cancel,
    ) -> Result<String, ClientError> {
        Renewal::new(self, cancel).challenged(used, status, challenges)
    }
}

impl fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorizer")
            .field("server", &self.flow.fetch.resource.identifier())
            .finish_non_exhaustive()
    }
}
