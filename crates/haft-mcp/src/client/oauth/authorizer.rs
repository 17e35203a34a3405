//! One server's tokens, as everybody in this process shares them.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use haft_tool::{Cancel, lock};
use url::Url;

use super::fetch::{Fetch, HttpFactory};
use super::flow::Flow;
use super::grant::Tokens;
use super::home::Home;
use super::opener::BrowserOpener;
use super::registration::RegisteredClient;
use super::renewal::Renewal;
use super::scopes::Scopes;
use super::store::{Entry, Store};
use super::words::refused;
use crate::client::{ClientError, TokenProvider};

/// A token that ends sooner than this is renewed before it is used.
const SOON: u64 = 60;
/// How long a renewal that failed is not tried again unasked.
const REST: Duration = Duration::from_mins(1);
/// How often the user is asked, and within which time: a server that is never content must not keep a browser busy.
const MOST_FLOWS: usize = 6;
const FLOWS_IN: Duration = Duration::from_mins(10);

/// How one server's tokens are got.
#[derive(Debug, Clone)]
pub struct OAuthOptions {
    /// A client that the user registered by hand; it is used before all others.
    pub registered: Option<RegisteredClient>,
    /// Where a document about Haft is (`https`, with a path), for authorization servers that take one.
    pub document: Option<Url>,
    /// How Haft calls itself where it registers.
    pub name: String,
    /// Hosts that are the user's own and may be reached although they are not public, such as the sign-on of a company.
    pub hosts: Vec<String>,
    /// How long the user may take to answer.
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

/// Gets, renews and keeps the tokens for one server.
pub struct Authorizer {
    pub(super) flow: Flow,
    pub(super) store: Store,
    held: Mutex<Held>,
}

/// What this process knows.
#[derive(Default)]
struct Held {
    loaded: bool,
    tokens: Option<Tokens>,
    /// Sets of scopes that were asked for because a server wanted more.
    raised: BTreeSet<String>,
    flows: VecDeque<Instant>,
    rests_until: Option<Instant>,
}

impl Authorizer {
    /// For the server at this address. Tokens are kept in `folder`, which is Haft's own. Nothing is asked or read yet.
    pub fn new(
        server: &str,
        doors: HttpFactory,
        opener: Arc<dyn BrowserOpener>,
        folder: impl Into<PathBuf>,
        options: OAuthOptions,
    ) -> Result<Self, ClientError> {
        let OAuthOptions { registered, document, name, hosts, limit } = options;
        let home = Home::new(server, hosts)?;
        if let Some(document) = &document
            && (document.scheme() != "https" || document.path() == "/")
        {
            return Err(refused(format!(
                "{document} cannot be the document of a client: it needs https and a path"
            )));
        }
        let store = Store::new(&folder.into(), home.resource());
        let flow = Flow { fetch: Fetch::new(doors, home), opener, limit, name, registered, document };
        Ok(Self { flow, store, held: Mutex::default() })
    }

    /// Asks the user for new tokens, whatever is at hand.
    pub fn login(&self, cancel: &Cancel) -> Result<(), ClientError> {
        Renewal::new(self, cancel).login()
    }

    /// Forgets tokens and registration, here and on disk.
    pub fn forget(&self) -> Result<(), ClientError> {
        self.held().tokens = None;
        self.store.put(None)
    }

    /// Takes note of tokens that are good.
    pub(super) fn adopt(&self, tokens: &Tokens) -> String {
        let mut held = self.held();
        (held.loaded, held.tokens, held.rests_until) = (true, Some(tokens.clone()), None);
        tokens.access.expose().to_owned()
    }

    /// The same, and keeps them.
    pub(super) fn keep(&self, entry: &Entry, tokens: Tokens) -> Result<String, ClientError> {
        let token = self.adopt(&tokens);
        self.store.put(Some(&Entry { tokens: Some(tokens), ..entry.clone() }))?;
        Ok(token)
    }

    /// Whether these scopes were not asked for yet because a server wanted more.
    pub(super) fn raises_to(&self, scopes: &Scopes) -> bool {
        self.held().raised.insert(scopes.to_string())
    }

    /// Whether the user was not asked too often already.
    pub(super) fn may_ask(&self) -> Result<(), ClientError> {
        let mut held = self.held();
        let now = Instant::now();
        while held.flows.front().is_some_and(|at| now.duration_since(*at) > FLOWS_IN) {
            held.flows.pop_front();
        }
        if held.flows.len() >= MOST_FLOWS {
            return Err(refused(format!(
                "{} has wanted the user's consent {MOST_FLOWS} times within {} minutes; it is not asked for again so soon",
                self.flow.fetch.home.resource(),
                FLOWS_IN.as_secs() / 60
            )));
        }
        Ok(())
    }

    /// Counts how often the user is asked.
    pub(super) fn has_asked(&self) {
        self.held().flows.push_back(Instant::now());
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        lock(&self.held)
    }
}

impl TokenProvider for Authorizer {
    fn token(&self) -> Option<String> {
        if self.flow.fetch.home.is_in_the_clear() {
            return None;
        }
        let tokens = {
            let mut held = self.held();
            if !held.loaded {
                // Who cannot read the file has no token, and hears why when the server wants one.
                held.tokens = self.store.entry().ok().flatten().and_then(|entry| entry.tokens);
                held.loaded = true;
            }
            let resting = held.rests_until.is_some_and(|until| Instant::now() < until);
            let tokens = held.tokens.clone()?;
            if tokens.lasts(SOON) || tokens.refresh.is_none() || resting {
                return Some(tokens.access.expose().to_owned());
            }
            tokens
        };
        if let Ok(Some(token)) = Renewal::new(self, &Cancel::new()).quietly(tokens.access.expose()) {
            return Some(token);
        }
        self.held().rests_until = Some(Instant::now() + REST);
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
        f.debug_struct("Authorizer").field("server", &self.flow.fetch.home.resource()).finish_non_exhaustive()
    }
}
