//! One attempt: the user is sent to the authorization server, and what comes back is changed for tokens.

use std::sync::Arc;
use std::time::Duration;

use haft_net::proxy::RedirectListener;
use url::Url;

use super::callback::judge;
use super::discovery::Found;
use super::fetch::Fetch;
use super::grant::{Denied, Grant, Tokens};
use super::opener::BrowserOpener;
use super::proof::Proof;
use super::registration::{OAuthClient, RegisteredClient};
use super::scopes::{OFFLINE, Scopes};
use super::store::Entry;
use super::words::{passed_on, refused, said};
use crate::client::{ClientError, McpError};

/// Where the browser's answer is taken.
const PATH: &str = "/callback";

/// What every attempt needs.
#[derive(Clone)]
pub(super) struct Flow {
    pub(super) fetch: Fetch,
    pub(super) opener: Arc<dyn BrowserOpener>,
    /// How long the user may take.
    pub(super) limit: Duration,
    /// How Haft calls itself.
    pub(super) name: String,
    pub(super) registered: Option<RegisteredClient>,
    /// Where a document about Haft is.
    pub(super) document: Option<Url>,
}

/// Who is told what happens on the way.
pub(super) struct Notes<'a> {
    /// What to remember if there are no tokens in the end.
    pub(super) keep: &'a dyn Fn(&Entry) -> Result<(), ClientError>,
    /// The user is being asked.
    pub(super) asked: &'a dyn Fn(),
}

/// Haft as the authorization server knows it, and where it listens.
struct Ready {
    client: OAuthClient,
    redirect: String,
    listener: RedirectListener,
    /// Whether it was known before.
    reused: bool,
}

impl Flow {
    /// Gets tokens for `scopes` from who was found. `known` is what is kept of an earlier time with the same one.
    pub(super) fn run(
        &self,
        found: &Found,
        scopes: &Scopes,
        known: Option<&Entry>,
        notes: &Notes<'_>,
    ) -> Result<(Entry, Tokens), ClientError> {
        let mut client = known.map(|entry| &entry.client);
        loop {
            let ready = self.ready(found, scopes, client)?;
            let reused = ready.reused;
            let entry = Entry {
                issuer: found.server.issuer.clone(),
                resource: found.resource.clone(),
                token_endpoint: found.server.token.to_string(),
                client: ready.client.clone(),
                tokens: None,
            };
            // Older tokens may still be good for something, and belong to the older client.
            if entry.client.redirect.is_some() && known.is_none_or(|entry| entry.tokens.is_none()) {
                (notes.keep)(&entry)?;
            }
            let denied = match self.attempt(found, scopes, ready, notes) {
                Ok(tokens) => return Ok((entry, tokens)),
                Err(denied) => denied,
            };
            let forgotten = match &denied {
                Denied::Client(_) => true,
                // The page that the user saw may have said so; here nothing is heard of it.
                Denied::Other(error) => error.kind == McpError::TimedOut,
                Denied::Grant(_) => false,
            };
            if reused
                && forgotten
                && let Some(old) = known
            {
                let client = OAuthClient { redirect: None, ..old.client.clone() };
                (notes.keep)(&Entry { client, ..old.clone() })?;
            }
            if !reused || !matches!(denied, Denied::Client(_)) {
                return Err(denied.error());
            }
            // An authorization server that has forgotten Haft gets to know it again, once: what is new is not reused.
            client = None;
        }
    }

    /// In the order of the specification: what the user registered, a document, a registration of Haft's own.
    fn ready(
        &self,
        found: &Found,
        scopes: &Scopes,
        known: Option<&OAuthClient>,
    ) -> Result<Ready, ClientError> {
        if let Some(registered) = &self.registered {
            let client = OAuthClient::registered(registered, &found.server)?;
            let (listener, redirect) = listen(registered.redirect.as_ref())?;
            return Ok(Ready { client, redirect, listener, reused: false });
        }
        if let Some(document) = self.document.as_ref().filter(|_| found.server.takes_documents) {
            let (listener, redirect) = listen(None)?;
            return Ok(Ready {
                client: OAuthClient::documented(document),
                redirect,
                listener,
                reused: false,
            });
        }
        // Few authorization servers let a native program choose its port anew, so the old one is taken if it is free.
        if let Some(client) = known.filter(|client| client.still_good(scopes))
            && let Some(redirect) = client.redirect.as_ref().and_then(|redirect| Url::parse(redirect).ok())
            && let Ok((listener, redirect)) = listen(Some(&redirect))
        {
            return Ok(Ready { client: client.clone(), redirect, listener, reused: true });
        }
        let (listener, redirect) = listen(None)?;
        let client = OAuthClient::register(&self.fetch, &found.server, &self.name, &redirect, scopes)?;
        Ok(Ready { client, redirect, listener, reused: false })
    }

    fn attempt(
        &self,
        found: &Found,
        scopes: &Scopes,
        ready: Ready,
        notes: &Notes<'_>,
    ) -> Result<Tokens, Denied> {
        let Ready { client, redirect, listener, .. } = ready;
        let proof = Proof::new().map_err(Denied::Other)?;
        let url = authorization_url(found, &client, &redirect, scopes, &proof);
        let asking = format!("{} was to be asked for a token", said(&found.server.issuer));
        let failed = |error: &haft_tool::ToolError| Denied::Other(passed_on(&asking, error));
        self.opener.open(&url).map_err(|error| failed(&error))?;
        (notes.asked)();
        let heard =
            listener.wait(self.limit, &self.fetch.cancel, &|query| judge(query, &proof.state, &found.server));
        let code = heard.map_err(|error| failed(&error))?.map_err(Denied::Other)?;
        let grant = Grant {
            fetch: &self.fetch,
            endpoint: &found.server.token,
            client: &client,
            resource: &found.resource,
        };
        grant.exchange(&code, &proof.verifier, &redirect, scopes.clone())
    }
}

/// Listens where `redirect` says, or at a port that is free; and says where.
fn listen(redirect: Option<&Url>) -> Result<(RedirectListener, String), ClientError> {
    let taken = |error: &haft_tool::ToolError| passed_on("the browser's answer cannot be taken", error);
    let Some(redirect) = redirect else {
        let listener = RedirectListener::bind(None, PATH).map_err(|error| taken(&error))?;
        let redirect = format!("http://127.0.0.1:{}{PATH}", listener.port());
        return Ok((listener, redirect));
    };
    let here = redirect.scheme() == "http" && matches!(redirect.host_str(), Some("127.0.0.1" | "localhost"));
    if !here || redirect.query().is_some() || redirect.fragment().is_some() {
        return Err(refused(format!(
            "the redirect {} cannot be listened at; register http://127.0.0.1/callback, or localhost, with a port or without",
            said(redirect.as_str())
        )));
    }
    let listener = RedirectListener::bind(redirect.port(), redirect.path()).map_err(|error| taken(&error))?;
    let mut redirect = redirect.clone();
    // It is `http`, which can have a port.
    let _ = redirect.set_port(Some(listener.port()));
    Ok((listener, redirect.to_string()))
}

/// Where the user is sent.
fn authorization_url(
    found: &Found,
    client: &OAuthClient,
    redirect: &str,
    scopes: &Scopes,
    proof: &Proof,
) -> Url {
    let mut url = found.server.authorization.clone();
    {
        let mut query = url.query_pairs_mut();
        query.append_pair("response_type", "code");
        query.append_pair("client_id", &client.id);
        query.append_pair("redirect_uri", redirect);
        query.append_pair("state", proof.state.expose());
        query.append_pair("code_challenge", &proof.challenge());
        query.append_pair("code_challenge_method", "S256");
        query.append_pair("resource", &found.resource);
        if !scopes.is_empty() {
            query.append_pair("scope", &scopes.to_string());
        }
        if scopes.has(OFFLINE) {
            // Without it such a token is not given out.
            query.append_pair("prompt", "consent");
        }
    }
    url
}
