//! One login: the user is sent to the authorization server, and the code that comes back is exchanged for tokens.

use std::sync::Arc;
use std::time::Duration;

use haft_net::proxy::RedirectListener;
use haft_tool::ToolError;
use url::Url;

use super::browser::BrowserOpener;
use super::callback::judge;
use super::discovery::Discovered;
use super::errors::{convert, quote, unauthorized};
use super::fetch::Fetch;
use super::grant::{GrantError, TokenGrant, Tokens};
use super::pkce::Pkce;
use super::registration::{OAuthClient, RegisteredClient};
use super::scopes::{OFFLINE_ACCESS, Scopes};
use super::store::TokenEntry;
use crate::client::{ClientError, McpError};

/// The path of the redirect URI.
const CALLBACK_PATH: &str = "/callback";

/// What every login needs.
#[derive(Clone)]
pub(super) struct Flow {
    pub(super) fetch: Fetch,
    pub(super) browser: Arc<dyn BrowserOpener>,
    /// How long the user may take.
    pub(super) limit: Duration,
    /// The name under which Haft registers.
    pub(super) name: String,
    pub(super) registered: Option<RegisteredClient>,
    /// The URL of Haft's client metadata document.
    pub(super) document: Option<Url>,
}

/// Callbacks during a login.
pub(super) struct FlowHooks<'a> {
    /// Stores what should be kept even if there are no tokens in the end.
    pub(super) store: &'a dyn Fn(&TokenEntry) -> Result<(), ClientError>,
    /// The user is being asked.
    pub(super) asked: &'a dyn Fn(),
}

/// A client that is ready for a login.
struct ReadyClient {
    client: OAuthClient,
    redirect: String,
    listener: RedirectListener,
    /// Whether the client was registered earlier.
    is_reused: bool,
}

impl Flow {
    /// Gets tokens for `scopes`. `known` is the stored entry of the same authorization server.
    pub(super) fn run(
        &self,
        found: &Discovered,
        scopes: &Scopes,
        known: Option<&TokenEntry>,
        hooks: &FlowHooks<'_>,
    ) -> Result<(TokenEntry, Tokens), ClientError> {
        let mut client = known.map(|entry| &entry.client);
        loop {
            let ready = self.prepare(found, scopes, client)?;
            let is_reused = ready.is_reused;
            let entry = TokenEntry {
                issuer: found.server.issuer.clone(),
                resource: found.resource.clone(),
                token_endpoint: found.server.token.to_string(),
                client: ready.client.clone(),
                tokens: None,
            };
            // Stored tokens belong to the stored client and may still be good for something.
            if entry.client.redirect.is_some() && known.is_none_or(|entry| entry.tokens.is_none()) {
                (hooks.store)(&entry)?;
            }
            let error = match self.attempt(found, scopes, ready, hooks) {
                Ok(tokens) => return Ok((entry, tokens)),
                Err(error) => error,
            };
            // After a timeout, too: the browser may have shown that the client is unknown.
            let is_client_suspect = match &error {
                GrantError::Client(_) => true,
                GrantError::Other(error) => error.kind == McpError::TimedOut,
                GrantError::Grant(_) => false,
            };
            if is_reused
                && is_client_suspect
                && let Some(known) = known
            {
                let client = OAuthClient { redirect: None, ..known.client.clone() };
                (hooks.store)(&TokenEntry { client, ..known.clone() })?;
            }
            if !is_reused || !matches!(error, GrantError::Client(_)) {
                return Err(error.into_error());
            }
            // The authorization server has forgotten the client: register again, once.
            client = None;
        }
    }

    /// Chooses a client in the order of the specification: the user's, a metadata document, Haft's own registration.
    fn prepare(
        &self,
        found: &Discovered,
        scopes: &Scopes,
        known: Option<&OAuthClient>,
    ) -> Result<ReadyClient, ClientError> {
        if let Some(registered) = &self.registered {
            let client = OAuthClient::from_registered(registered, &found.server)?;
            let (listener, redirect) = listen(registered.redirect.as_ref())?;
            return Ok(ReadyClient { client, redirect, listener, is_reused: false });
        }
        if let Some(document) = self.document.as_ref().filter(|_| found.server.supports_documents) {
            let (listener, redirect) = listen(None)?;
            let client = OAuthClient::from_document(document);
            return Ok(ReadyClient { client, redirect, listener, is_reused: false });
        }
        // Few authorization servers accept another port than the registered one, so that one is tried.
        if let Some(client) = known.filter(|client| client.is_usable(scopes))
            && let Some(redirect) = client.redirect.as_ref().and_then(|redirect| Url::parse(redirect).ok())
            && let Ok((listener, redirect)) = listen(Some(&redirect))
        {
            return Ok(ReadyClient { client: client.clone(), redirect, listener, is_reused: true });
        }
        let (listener, redirect) = listen(None)?;
        let client = OAuthClient::register(&self.fetch, &found.server, &self.name, &redirect, scopes)?;
        Ok(ReadyClient { client, redirect, listener, is_reused: false })
    }

    fn attempt(
        &self,
        found: &Discovered,
        scopes: &Scopes,
        ready: ReadyClient,
        hooks: &FlowHooks<'_>,
    ) -> Result<Tokens, GrantError> {
        let ReadyClient { client, redirect, listener, .. } = ready;
        let pkce = Pkce::new().map_err(GrantError::Other)?;
        let url = authorization_url(found, &client, &redirect, scopes, &pkce);
        let what = format!("login at {}", quote(&found.server.issuer));
        let failed = |error: &ToolError| GrantError::Other(convert(&what, error));
        self.browser.open(&url).map_err(|error| failed(&error))?;
        (hooks.asked)();
        let answer =
            listener.wait(self.limit, &self.fetch.cancel, &|query| judge(query, &pkce.state, &found.server));
        let code = answer.map_err(|error| failed(&error))?.map_err(GrantError::Other)?;
        let grant = TokenGrant {
            fetch: &self.fetch,
            endpoint: &found.server.token,
            client: &client,
            resource: &found.resource,
        };
        grant.exchange(&code, &pkce.verifier, &redirect, scopes.clone())
    }
}

/// Listens on loopback, at the port of `redirect` if it has one; returns the redirect URI.
fn listen(redirect: Option<&Url>) -> Result<(RedirectListener, String), ClientError> {
    let failed = |error: &ToolError| convert("cannot listen for the browser", error);
    let Some(redirect) = redirect else {
        let listener = RedirectListener::bind(None, CALLBACK_PATH).map_err(|error| failed(&error))?;
        let redirect = format!("http://127.0.0.1:{}{CALLBACK_PATH}", listener.port());
        return Ok((listener, redirect));
    };
    let is_local =
        redirect.scheme() == "http" && matches!(redirect.host_str(), Some("127.0.0.1" | "localhost"));
    if !is_local || redirect.query().is_some() || redirect.fragment().is_some() {
        return Err(unauthorized(format!(
            "the redirect {} is not supported. Register http://127.0.0.1/callback or http://localhost/callback, with or \
             without a port.",
            quote(redirect.as_str())
        )));
    }
    let listener =
        RedirectListener::bind(redirect.port(), redirect.path()).map_err(|error| failed(&error))?;
    let mut redirect = redirect.clone();
    // An http URL can always have a port.
    let _ = redirect.set_port(Some(listener.port()));
    Ok((listener, redirect.to_string()))
}

fn authorization_url(
    found: &Discovered,
    client: &OAuthClient,
    redirect: &str,
    scopes: &Scopes,
    pkce: &Pkce,
) -> Url {
    let mut url = found.server.authorization.clone();
    {
        let mut query = url.query_pairs_mut();
        query.append_pair("response_type", "code");
        query.append_pair("client_id", &client.id);
        query.append_pair("redirect_uri", redirect);
        query.append_pair("state", pkce.state.expose());
        query.append_pair("code_challenge", &pkce.challenge());
        query.append_pair("code_challenge_method", "S256");
        query.append_pair("resource", &found.resource);
        if !scopes.is_empty() {
            query.append_pair("scope", &scopes.to_string());
        }
        if scopes.contains(OFFLINE_ACCESS) {
            // Required by OpenID Connect for this scope.
            query.append_pair("prompt", "consent");
        }
    }
    url
}
