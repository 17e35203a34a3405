//! Replaces a token that has expired, was rejected or lacks a scope; one thread and one process at a time per server.

use std::time::Duration;

use haft_files::FileLockGuard;
use haft_tool::Cancel;

use super::authorizer::Authorizer;
use super::challenge::Challenge;
use super::discovery::{Discovered, discover};
use super::errors::{quote, unauthorized};
use super::flow::{Flow, FlowHooks};
use super::grant::{GrantError, TokenGrant, Tokens};
use super::registration::OAuthClient;
use super::scopes::{OFFLINE_ACCESS, Scopes};
use super::store::TokenEntry;
use crate::client::ClientError;

/// How long a refresh waits for another process.
const REFRESH_LOCK_TIMEOUT: Duration = Duration::from_secs(20);

/// A renewal that can be cancelled.
pub(super) struct Renewal<'a> {
    authorizer: &'a Authorizer,
    flow: Flow,
}

impl<'a> Renewal<'a> {
    pub(super) fn new(authorizer: &'a Authorizer, cancel: &Cancel) -> Self {
        let fetch = authorizer.flow.fetch.with_cancel(cancel);
        Self { authorizer, flow: Flow { fetch, ..authorizer.flow.clone() } }
    }

    /// Gets another token after the server has rejected `used`.
    pub(super) fn challenged(
        &self,
        used: Option<&str>,
        status: u16,
        challenges: &[String],
    ) -> Result<String, ClientError> {
        let challenge = Challenge::read(challenges);
        let needs_scope = status == 403 && challenge.error.as_deref() == Some("insufficient_scope");
        if status != 401 && !needs_scope {
            let error = challenge.error.as_deref().map(|error| format!(": {}", quote(error)));
            return Err(unauthorized(format!(
                "{} does not allow this ({status}{}); another token would not help",
                self.server(),
                error.unwrap_or_default()
            )));
        }
        let _lock = self.lock()?;
        let entry = self.authorizer.store.entry()?;
        if let Some(tokens) = entry.as_ref().and_then(|entry| entry.tokens.as_ref()) {
            let is_newer = used != Some(tokens.access.expose());
            let is_enough = challenge.scopes.as_ref().is_none_or(|needed| tokens.scopes().covers(needed));
            if is_newer && (is_enough || !needs_scope) {
                return Ok(self.authorizer.adopt(tokens));
            }
        }
        let found = self.discover(&challenge, entry.as_ref())?;
        let mut entry = self.entry_of_issuer(entry, &found)?;
        if !needs_scope
            && let Some(entry) = &mut entry
            && let Some(token) = self.refresh_entry(entry)?
        {
            return Ok(token);
        }
        let scopes = match entry.as_ref().and_then(|entry| entry.tokens.as_ref()) {
            Some(tokens) if needs_scope => self.upgraded_scopes(tokens, &challenge)?,
            Some(tokens) => tokens.asked.union(&challenge.scopes.unwrap_or_default()),
            None => initial_scopes(&found, &challenge),
        };
        self.ask_user(&found, &scopes, entry.as_ref())
    }

    /// Asks the user for a token, whether or not there is one.
    pub(super) fn login(&self) -> Result<(), ClientError> {
        let _lock = self.lock()?;
        let (entry, challenge) = (self.authorizer.store.entry()?, Challenge::default());
        let found = self.discover(&challenge, entry.as_ref())?;
        let entry = self.entry_of_issuer(entry, &found)?;
        self.ask_user(&found, &initial_scopes(&found, &challenge), entry.as_ref()).map(|_| ())
    }

    /// Replaces `used` without the user: by another process's token, or by refreshing.
    pub(super) fn refresh(&self, used: &str) -> Result<Option<String>, ClientError> {
        let _lock = self.authorizer.store.lock(REFRESH_LOCK_TIMEOUT, &self.flow.fetch.cancel)?;
        let Some(mut entry) = self.authorizer.store.entry()? else { return Ok(None) };
        match &entry.tokens {
            Some(tokens) if tokens.access.expose() != used => Ok(Some(self.authorizer.adopt(tokens))),
            _ => self.refresh_entry(&mut entry),
        }
    }

    /// Waits for other threads and processes. Fails if the token would be sent unencrypted.
    fn lock(&self) -> Result<FileLockGuard, ClientError> {
        if self.flow.fetch.resource.is_unencrypted() {
            return Err(unauthorized(format!(
                "{} requires a token, which would be sent unencrypted. Use https.",
                self.server()
            )));
        }
        self.authorizer.store.lock(self.flow.limit, &self.flow.fetch.cancel)
    }

    fn server(&self) -> String {
        self.flow.fetch.resource.identifier()
    }

    fn discover(&self, challenge: &Challenge, entry: Option<&TokenEntry>) -> Result<Discovered, ClientError> {
        let registered = self.flow.registered.as_ref().and_then(|registered| registered.issuer.as_deref());
        let known = registered.or_else(|| entry.map(|entry| entry.issuer.as_str()));
        discover(&self.flow.fetch, challenge, known)
    }

    /// The entry, if the discovered issuer made it: no secret of one issuer is sent to another.
    fn entry_of_issuer(
        &self,
        entry: Option<TokenEntry>,
        found: &Discovered,
    ) -> Result<Option<TokenEntry>, ClientError> {
        let Some(entry) = entry else { return Ok(None) };
        if entry.issuer == found.server.issuer {
            return Ok(Some(entry));
        }
        // A client that was registered by the user without an issuer belongs to the first one.
        if let Some(registered) = &self.flow.registered
            && registered.issuer.is_none()
            && registered.id == entry.client.id
        {
            return Err(unauthorized(format!(
                "the client {} was used with {}, but {} now names {}. If that is right, set it as the client's issuer.",
                quote(&registered.id),
                quote(&entry.issuer),
                self.server(),
                quote(&found.server.issuer)
            )));
        }
        Ok(None)
    }

    /// Refreshes the tokens of `entry`. `None` if that is not possible; then a rejected refresh token is removed.
    fn refresh_entry(&self, entry: &mut TokenEntry) -> Result<Option<String>, ClientError> {
        let (Some(old), Some(client)) = (entry.tokens.clone(), self.client(entry)) else { return Ok(None) };
        if old.refresh.is_none() {
            return Ok(None);
        }
        let fetch = &self.flow.fetch;
        let endpoint = fetch.resource.check_url(&entry.token_endpoint);
        let endpoint =
            endpoint.map_err(|why| unauthorized(format!("{}: {why}", quote(&entry.token_endpoint))))?;
        let grant = TokenGrant { fetch, endpoint: &endpoint, client: &client, resource: &entry.resource };
        match grant.refresh(&old) {
            Ok(tokens) => return self.authorizer.keep(entry, tokens).map(Some),
            Err(GrantError::Other(error)) => return Err(error),
            Err(GrantError::Client(_)) => entry.client.redirect = None,
            Err(GrantError::Grant(_)) => {}
        }
        entry.tokens = Some(Tokens { refresh: None, ..old });
        self.authorizer.store.put(Some(entry))?;
        Ok(None)
    }

    /// The client that refreshes the tokens of `entry`; `None` if the user has configured another one.
    fn client(&self, entry: &TokenEntry) -> Option<OAuthClient> {
        match &self.flow.registered {
            None => Some(entry.client.clone()),
            Some(registered) => {
                (registered.id == entry.client.id).then(|| entry.client.clone().with_secret_of(registered))
            }
        }
    }

    /// The scopes to request after status 403: all that were requested, and the missing ones.
    fn upgraded_scopes(&self, tokens: &Tokens, challenge: &Challenge) -> Result<Scopes, ClientError> {
        let needed = challenge.scopes.clone().unwrap_or_default();
        let scopes = tokens.asked.union(&needed);
        if tokens.scopes().covers(&needed) {
            return Err(unauthorized(format!(
                "{} rejects the token although it has all scopes that it names ({needed})",
                self.server()
            )));
        }
        if !self.authorizer.begin_upgrade(&scopes) {
            return Err(unauthorized(format!(
                "{} requires {needed}, which was requested but not granted. Log in as a user with more rights.",
                self.server()
            )));
        }
        Ok(scopes)
    }

    fn ask_user(
        &self,
        found: &Discovered,
        scopes: &Scopes,
        entry: Option<&TokenEntry>,
    ) -> Result<String, ClientError> {
        self.authorizer.check_login_limit()?;
        let hooks = FlowHooks {
            store: &|entry| self.authorizer.store.put(Some(entry)),
            asked: &|| self.authorizer.record_login(),
        };
        let (entry, tokens) = self.flow.run(found, scopes, entry, &hooks)?;
        self.authorizer.keep(&entry, tokens)
    }
}

/// The scopes of a first request: those of the challenge or of the server's metadata, and offline access if offered.
fn initial_scopes(found: &Discovered, challenge: &Challenge) -> Scopes {
    let mut scopes = challenge.scopes.clone().or_else(|| found.scopes.clone()).unwrap_or_default();
    // Alone it would replace the authorization server's default scopes.
    if !scopes.is_empty() && found.server.scopes.contains(OFFLINE_ACCESS) {
        scopes.add(OFFLINE_ACCESS);
    }
    scopes
}
