//! One server's tokens: at hand, renewed, or asked for.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haft_tool::Cancel;
use url::Url;

use super::challenge::Challenge;
use super::discovery::{Found, discover};
use super::fetch::{Doors, Fetch};
use super::flow::Flow;
use super::grant::{Denied, Grant, Tokens};
use super::home::Home;
use super::opener::Opener;
use super::registration::Registered;
use super::scopes::{OFFLINE, Scopes};
use super::store::{Entry, Store};
use super::words::{refused, said};
use crate::client::{Authorize, ClientError};

/// A token that ends sooner than this is renewed before it is used.
const SOON: u64 = 60;
/// How long a renewal that failed is not tried again unasked.
const REST: Duration = Duration::from_mins(1);
/// How long a call waits for somebody else who is renewing.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often the user is asked, and within which time: a server that is never content must not keep a browser busy.
const MOST_FLOWS: usize = 6;
const FLOWS_IN: Duration = Duration::from_mins(10);

/// How one server's tokens are got.
#[derive(Debug, Clone)]
pub struct Options {
    /// A client that the user registered by hand; it is used before all others.
    pub registered: Option<Registered>,
    /// Where a document about Haft is (`https`, with a path), for authorization servers that take one.
    pub document: Option<Url>,
    /// How Haft calls itself where it registers.
    pub name: String,
    /// Hosts that are the user's own and may be reached although they are not public, such as the sign-on of a company.
    pub hosts: Vec<String>,
    /// How long the user may take to answer.
    pub limit: Duration,
    /// Ends every wait.
    pub cancel: Cancel,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            registered: None,
            document: None,
            name: "Haft".to_owned(),
            hosts: Vec::new(),
            limit: Duration::from_mins(5),
            cancel: Cancel::new(),
        }
    }
}

/// Gets, renews and keeps the tokens for one server.
pub struct Authorizer {
    flow: Flow,
    store: Store,
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
        doors: Doors,
        opener: Arc<dyn Opener>,
        folder: impl Into<PathBuf>,
        options: Options,
    ) -> Result<Self, ClientError> {
        let Options { registered, document, name, hosts, limit, cancel } = options;
        let home = Home::new(server, hosts)?;
        if let Some(document) = &document
            && (document.scheme() != "https" || document.path() == "/")
        {
            return Err(refused(format!(
                "{document} cannot be the document of a client: it needs https and a path"
            )));
        }
        let store = Store::new(&folder.into(), home.resource());
        let flow = Flow { fetch: Fetch::new(doors, home), opener, cancel, limit, name, registered, document };
        Ok(Self { flow, store, held: Mutex::default() })
    }

    /// Asks the user for new tokens, whatever is at hand.
    pub fn login(&self) -> Result<(), ClientError> {
        let _turn = self.store.turn(self.flow.limit, &self.flow.cancel)?;
        let entry = self.store.entry()?;
        let found = self.discover(&Challenge::default(), entry.as_ref())?;
        let entry = self.bound(entry, &found)?;
        let scopes = first_scopes(&found, &Challenge::default());
        self.ask(&found, &scopes, entry.as_ref()).map(|_| ())
    }

    /// Forgets tokens and registration, here and on disk.
    pub fn forget(&self) -> Result<(), ClientError> {
        self.held().tokens = None;
        self.store.put(None)
    }

    /// Another token for one that was turned down with `status`; `used` is the one that was sent, if there was one.
    pub fn renew(
        &self,
        used: Option<&str>,
        status: u16,
        challenges: &[String],
    ) -> Result<String, ClientError> {
        let challenge = Challenge::read(challenges);
        let wants_more = status == 403 && challenge.error.as_deref() == Some("insufficient_scope");
        if status != 401 && !wants_more {
            let words =
                challenge.error.as_deref().map(|error| format!(": {}", said(error))).unwrap_or_default();
            let server = self.flow.fetch.home.resource();
            return Err(refused(format!(
                "{server} does not allow this ({status}{words}); another token would not help"
            )));
        }
        let _turn = self.store.turn(self.flow.limit, &self.flow.cancel)?;
        let entry = self.store.entry()?;
        if let Some(tokens) = entry.as_ref().and_then(|entry| entry.tokens.as_ref()) {
            let newer = used != Some(tokens.access.expose());
            let enough = challenge.scopes.as_ref().is_none_or(|wanted| tokens.scopes().cover(wanted));
            if newer && (enough || !wants_more) {
                return Ok(self.adopt(tokens.clone()));
            }
        }
        let found = self.discover(&challenge, entry.as_ref())?;
        let entry = self.bound(entry, &found)?;
        if !wants_more && let Some(token) = self.refreshed(entry.as_ref())? {
            return Ok(token);
        }
        let scopes = match entry.as_ref().and_then(|entry| entry.tokens.as_ref()) {
            Some(tokens) if wants_more => self.raise(tokens, &challenge)?,
            Some(tokens) => tokens.asked.with(&challenge.scopes.clone().unwrap_or_default()),
            None => first_scopes(&found, &challenge),
        };
        self.ask(&found, &scopes, entry.as_ref())
    }

    fn discover(&self, challenge: &Challenge, entry: Option<&Entry>) -> Result<Found, ClientError> {
        let registered = self.flow.registered.as_ref().and_then(|registered| registered.issuer.as_deref());
        let known = registered.or_else(|| entry.map(|entry| entry.issuer.as_str()));
        discover(&self.flow.fetch, challenge, known)
    }

    /// The entry, if it is from who was found: nothing of one authorization server is shown to another.
    fn bound(&self, entry: Option<Entry>, found: &Found) -> Result<Option<Entry>, ClientError> {
        let (same, other): (Option<Entry>, Option<Entry>) = match entry {
            Some(entry) if entry.issuer == found.server.issuer => (Some(entry), None),
            other => (None, other),
        };
        // Registered by hand, and not said where: then where it was used first.
        if let (Some(other), Some(registered)) = (other, &self.flow.registered)
            && registered.issuer.is_none()
            && registered.id == other.client.id
        {
            return Err(refused(format!(
                "the client {} was used with {}, and {} now names {}; if that is right, name it as the client's issuer",
                said(&registered.id),
                said(&other.issuer),
                self.flow.fetch.home.resource(),
                said(&found.server.issuer)
            )));
        }
        Ok(same)
    }

    /// A token got without the user, if that can be.
    fn refreshed(&self, entry: Option<&Entry>) -> Result<Option<String>, ClientError> {
        let Some((entry, old)) = entry.and_then(|entry| Some((entry, entry.tokens.as_ref()?))) else {
            return Ok(None);
        };
        if old.refresh.is_none() {
            return Ok(None);
        }
        let fetch = &self.flow.fetch;
        let endpoint = fetch.home.admits(&entry.token_endpoint);
        let endpoint = endpoint.map_err(|why| refused(format!("{}: {why}", said(&entry.token_endpoint))))?;
        let grant = Grant { fetch, endpoint: &endpoint, client: &entry.client, resource: &entry.resource };
        match grant.refresh(old) {
            Ok(tokens) => self.keep(&Entry { tokens: Some(tokens), ..entry.clone() }).map(Some),
            Err(Denied::Grant(_) | Denied::Client(_)) => {
                // It will never be taken again, so it is not offered again.
                let spent = Tokens { refresh: None, ..old.clone() };
                self.store.put(Some(&Entry { tokens: Some(spent), ..entry.clone() }))?;
                Ok(None)
            }
            Err(Denied::Other(error)) => Err(error),
        }
    }

    /// What to ask for when a token was not good for enough: all that was asked before, and what is missing.
    fn raise(&self, tokens: &Tokens, challenge: &Challenge) -> Result<Scopes, ClientError> {
        let wanted = challenge.scopes.clone().unwrap_or_default();
        let scopes = tokens.asked.with(&wanted);
        let server = self.flow.fetch.home.resource();
        if tokens.scopes().cover(&wanted) {
            return Err(refused(format!(
                "{server} says that the token is not good for this, and names nothing that it lacks ({wanted}); asking again \
                 would not help"
            )));
        }
        if !self.held().raised.insert(scopes.to_string()) {
            return Err(refused(format!(
                "{server} wants {wanted}, which was asked for and not given; somebody with more rights has to sign in"
            )));
        }
        Ok(scopes)
    }

    /// Asks the user.
    fn ask(&self, found: &Found, scopes: &Scopes, entry: Option<&Entry>) -> Result<String, ClientError> {
        self.may_ask()?;
        let entry = self.flow.run(found, scopes, entry, &|entry| self.store.put(Some(entry)))?;
        self.keep(&entry)
    }

    fn may_ask(&self) -> Result<(), ClientError> {
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
        held.flows.push_back(now);
        Ok(())
    }

    /// Keeps an entry with tokens, here and on disk.
    fn keep(&self, entry: &Entry) -> Result<String, ClientError> {
        let Some(tokens) = entry.tokens.clone() else {
            return Err(ClientError::garbled("the authorization server gave no token"));
        };
        let token = self.adopt(tokens);
        self.store.put(Some(entry))?;
        Ok(token)
    }

    fn adopt(&self, tokens: Tokens) -> String {
        let token = tokens.access.expose().to_owned();
        let mut held = self.held();
        (held.loaded, held.tokens, held.rests_until) = (true, Some(tokens), None);
        token
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A successor of `used` without the user: somebody else's, or a new one.
    fn renew_quietly(&self, used: &str) -> Result<Option<String>, ClientError> {
        let _turn = self.store.turn(PATIENCE, &self.flow.cancel)?;
        let entry = self.store.entry()?;
        match entry.as_ref().and_then(|entry| entry.tokens.as_ref()) {
            Some(tokens) if tokens.access.expose() != used => Ok(Some(self.adopt(tokens.clone()))),
            _ => self.refreshed(entry.as_ref()),
        }
    }
}

/// What to ask for at first: what the server wants now, or what it says it usually wants; and to be let in again later
/// where that has a name.
fn first_scopes(found: &Found, challenge: &Challenge) -> Scopes {
    let mut scopes = challenge.scopes.clone().or_else(|| found.scopes.clone()).unwrap_or_default();
    // Alone it would take the place of what an authorization server gives to who names nothing.
    if !scopes.is_empty() && found.server.scopes.has(OFFLINE) {
        scopes.add(OFFLINE);
    }
    scopes
}

impl Authorize for Authorizer {
    /// The token at hand. One that ends soon is renewed first, if that needs nobody's consent.
    fn token(&self) -> Option<String> {
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
        if let Ok(Some(token)) = self.renew_quietly(tokens.access.expose()) {
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
    ) -> Result<String, ClientError> {
        self.renew(used, status, challenges)
    }
}

impl fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorizer").field("server", &self.flow.fetch.home.resource()).finish_non_exhaustive()
    }
}
