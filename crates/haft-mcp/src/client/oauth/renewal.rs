//! Another token for one that is gone, turned down, or not good for enough. One at a time for each server, whoever asks.

use std::time::Duration;

use haft_files::FileLockGuard;
use haft_tool::Cancel;

use super::authorizer::Authorizer;
use super::challenge::Challenge;
use super::discovery::{Found, discover};
use super::flow::{Flow, Notes};
use super::grant::{Denied, Grant, Tokens};
use super::registration::OAuthClient;
use super::scopes::{OFFLINE, Scopes};
use super::store::Entry;
use super::words::{refused, said};
use crate::client::ClientError;

/// How long a call waits for somebody else who is renewing.
const PATIENCE: Duration = Duration::from_secs(20);

/// The renewal of one server's token, for somebody who may lose interest.
pub(super) struct Renewal<'a> {
    of: &'a Authorizer,
    flow: Flow,
}

impl<'a> Renewal<'a> {
    pub(super) fn new(of: &'a Authorizer, cancel: &Cancel) -> Self {
        Self { of, flow: Flow { fetch: of.flow.fetch.until(cancel), ..of.flow.clone() } }
    }

    /// Another token for `used`, which was turned down.
    pub(super) fn challenged(
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
            return Err(refused(format!(
                "{} does not allow this ({status}{words}); another token would not help",
                self.server()
            )));
        }
        let _turn = self.turn()?;
        let entry = self.of.store.entry()?;
        if let Some(tokens) = entry.as_ref().and_then(|entry| entry.tokens.as_ref()) {
            let newer = used != Some(tokens.access.expose());
            let enough = challenge.scopes.as_ref().is_none_or(|wanted| tokens.scopes().cover(wanted));
            if newer && (enough || !wants_more) {
                return Ok(self.of.adopt(tokens));
            }
        }
        let found = self.discover(&challenge, entry.as_ref())?;
        let mut entry = self.bound(entry, &found)?;
        if !wants_more
            && let Some(entry) = &mut entry
            && let Some(token) = self.refreshed(entry)?
        {
            return Ok(token);
        }
        let scopes = match entry.as_ref().and_then(|entry| entry.tokens.as_ref()) {
            Some(tokens) if wants_more => self.raise(tokens, &challenge)?,
            Some(tokens) => tokens.asked.with(&challenge.scopes.unwrap_or_default()),
            None => first_scopes(&found, &challenge),
        };
        self.ask(&found, &scopes, entry.as_ref())
    }

    /// A token that the user is asked for, whatever is at hand.
    pub(super) fn login(&self) -> Result<(), ClientError> {
        let _turn = self.turn()?;
        let (entry, challenge) = (self.of.store.entry()?, Challenge::default());
        let found = self.discover(&challenge, entry.as_ref())?;
        let entry = self.bound(entry, &found)?;
        self.ask(&found, &first_scopes(&found, &challenge), entry.as_ref()).map(|_| ())
    }

    /// A successor of `used` without the user: somebody else's, or a new one.
    pub(super) fn quietly(&self, used: &str) -> Result<Option<String>, ClientError> {
        let _turn = self.of.store.turn(PATIENCE, &self.flow.fetch.cancel)?;
        let Some(mut entry) = self.of.store.entry()? else { return Ok(None) };
        match &entry.tokens {
            Some(tokens) if tokens.access.expose() != used => Ok(Some(self.of.adopt(tokens))),
            _ => self.refreshed(&mut entry),
        }
    }

    /// Waits for whoever is at it, if it makes sense to begin at all.
    fn turn(&self) -> Result<FileLockGuard, ClientError> {
        if self.flow.fetch.home.is_in_the_clear() {
            return Err(refused(format!(
                "{} wants a token, which would cross the network in the clear; use https",
                self.server()
            )));
        }
        self.of.store.turn(self.flow.limit, &self.flow.fetch.cancel)
    }

    fn server(&self) -> String {
        self.flow.fetch.home.resource()
    }

    fn discover(&self, challenge: &Challenge, entry: Option<&Entry>) -> Result<Found, ClientError> {
        let registered = self.flow.registered.as_ref().and_then(|registered| registered.issuer.as_deref());
        let known = registered.or_else(|| entry.map(|entry| entry.issuer.as_str()));
        discover(&self.flow.fetch, challenge, known)
    }

    /// The entry, if it is from who was found: nothing of one authorization server is shown to another.
    fn bound(&self, entry: Option<Entry>, found: &Found) -> Result<Option<Entry>, ClientError> {
        let Some(entry) = entry else { return Ok(None) };
        if entry.issuer == found.server.issuer {
            return Ok(Some(entry));
        }
        // RegisteredClient by hand, and not said where: then where it was used first.
        if let Some(registered) = &self.flow.registered
            && registered.issuer.is_none()
            && registered.id == entry.client.id
        {
            return Err(refused(format!(
                "the client {} was used with {}, and {} now names {}; if that is right, name it as the client's issuer",
                said(&registered.id),
                said(&entry.issuer),
                self.server(),
                said(&found.server.issuer)
            )));
        }
        Ok(None)
    }

    /// A token got without the user, if that can be; if not, `entry` is without what will never be taken again.
    fn refreshed(&self, entry: &mut Entry) -> Result<Option<String>, ClientError> {
        let (Some(old), Some(client)) = (entry.tokens.clone(), self.client(entry)) else { return Ok(None) };
        if old.refresh.is_none() {
            return Ok(None);
        }
        let fetch = &self.flow.fetch;
        let endpoint = fetch.home.admits(&entry.token_endpoint);
        let endpoint = endpoint.map_err(|why| refused(format!("{}: {why}", said(&entry.token_endpoint))))?;
        let grant = Grant { fetch, endpoint: &endpoint, client: &client, resource: &entry.resource };
        match grant.refresh(&old) {
            Ok(tokens) => return self.of.keep(entry, tokens).map(Some),
            Err(Denied::Other(error)) => return Err(error),
            Err(Denied::Client(_)) => entry.client.redirect = None,
            Err(Denied::Grant(_)) => {}
        }
        entry.tokens = Some(Tokens { refresh: None, ..old });
        self.of.store.put(Some(entry))?;
        Ok(None)
    }

    /// As whom the tokens of `entry` are renewed; nobody, if the user has another client now.
    fn client(&self, entry: &Entry) -> Option<OAuthClient> {
        match &self.flow.registered {
            None => Some(entry.client.clone()),
            Some(registered) => {
                (registered.id == entry.client.id).then(|| entry.client.clone().with_secret_of(registered))
            }
        }
    }

    /// What to ask for when a token was not good for enough: all that was asked before, and what is missing.
    fn raise(&self, tokens: &Tokens, challenge: &Challenge) -> Result<Scopes, ClientError> {
        let wanted = challenge.scopes.clone().unwrap_or_default();
        let scopes = tokens.asked.with(&wanted);
        if tokens.scopes().cover(&wanted) {
            return Err(refused(format!(
                "{} says that the token is not good for this, and names nothing that it lacks ({wanted}); asking again \
                 would not help",
                self.server()
            )));
        }
        if !self.of.raises_to(&scopes) {
            return Err(refused(format!(
                "{} wants {wanted}, which was asked for and not given; somebody with more rights has to sign in",
                self.server()
            )));
        }
        Ok(scopes)
    }

    /// Asks the user.
    fn ask(&self, found: &Found, scopes: &Scopes, entry: Option<&Entry>) -> Result<String, ClientError> {
        self.of.may_ask()?;
        let notes = Notes { keep: &|entry| self.of.store.put(Some(entry)), asked: &|| self.of.has_asked() };
        let (entry, tokens) = self.flow.run(found, scopes, entry, &notes)?;
        self.of.keep(&entry, tokens)
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
