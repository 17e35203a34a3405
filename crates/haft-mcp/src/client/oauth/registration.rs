//! How Haft is known to an authorization server: as the user registered it, by a document, or by registering itself.

use std::fmt;

use haft_tool::{Secret, Value, json, now_ms};
use serde::{Deserialize, Serialize};
use url::Url;

use super::fetch::{Fetch, document};
use super::metadata::AuthorizationServer;
use super::scopes::Scopes;
use super::store::exposed;
use super::words::{refused, said};
use crate::client::ClientError;

/// Longer than any name or secret of a client.
const LONGEST: usize = 4096;

/// A client that the user registered with an authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredClient {
    /// Its name there.
    pub id: String,
    /// Its secret, if it has one.
    pub secret: Option<Secret>,
    /// Who it was registered with. Not named, it is the first one that the server names.
    pub issuer: Option<String>,
    /// The redirect it was registered with: `http` to `127.0.0.1` or `localhost`. Not named, it is
    /// `http://127.0.0.1/callback` at a port that is free, which is what the standard for native programs wants.
    pub redirect: Option<Url>,
}

/// How a client proves who it is when it changes a code for tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Method {
    /// Not at all: whoever has the code and its verifier is the one.
    #[serde(rename = "none")]
    None,
    #[serde(rename = "client_secret_basic")]
    Basic,
    #[serde(rename = "client_secret_post")]
    Post,
}

impl Method {
    fn parse(word: &str) -> Option<Self> {
        [Self::None, Self::Basic, Self::Post].into_iter().find(|method| method.word() == word)
    }

    const fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
        }
    }

    /// The way for a client that has a secret or has none, where `methods` are taken; nothing is said if they are not.
    fn choose(methods: Option<&[String]>, secret: bool) -> Self {
        let takes =
            |method: Self| methods.is_none_or(|methods| methods.iter().any(|word| word == method.word()));
        match (secret, methods) {
            (false, _) => Self::None,
            (true, None) => Self::Post,
            (true, Some(_)) => [Self::Basic, Self::Post, Self::None]
                .into_iter()
                .find(|method| takes(*method))
                .unwrap_or(Self::Basic),
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Haft, as one authorization server knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OAuthClient {
    pub(super) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "exposed")]
    pub(super) secret: Option<Secret>,
    pub(super) method: Method,
    /// The redirect that it registered itself with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) redirect: Option<String>,
    /// What it may ask for, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) scopes: Option<Scopes>,
    /// When its secret ends, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ends: Option<u64>,
    /// Whether the user registered it.
    #[serde(default)]
    pub(super) by_hand: bool,
}

impl OAuthClient {
    /// The one that the user registered.
    pub(super) fn registered(
        known: &RegisteredClient,
        server: &AuthorizationServer,
    ) -> Result<Self, ClientError> {
        if let Some(issuer) = known.issuer.as_ref().filter(|issuer| **issuer != server.issuer) {
            return Err(refused(format!(
                "the client {} is registered with {issuer}, and the server now names {}; register it there, or correct its \
                 issuer",
                said(&known.id),
                said(&server.issuer)
            )));
        }
        let method = Method::choose(server.methods.as_deref(), known.secret.is_some());
        Ok(Self { method, ..Self::public(&known.id) }.with_secret_of(known))
    }

    /// The same with the secret that the user keeps elsewhere; it is never written down beside the tokens.
    pub(super) fn with_secret_of(self, known: &RegisteredClient) -> Self {
        Self { secret: known.secret.clone(), by_hand: true, ..self }
    }

    /// The one that a document at `url` describes.
    pub(super) fn documented(url: &Url) -> Self {
        Self::public(url.as_str())
    }

    fn public(id: &str) -> Self {
        let (secret, redirect, scopes, ends) = (None, None, None, None);
        Self { id: id.to_owned(), secret, method: Method::None, redirect, scopes, ends, by_hand: false }
    }

    /// Whether it registered itself and can be used again, to ask for `scopes`.
    pub(super) fn still_good(&self, scopes: &Scopes) -> bool {
        let now = now_ms() / 1000;
        self.redirect.is_some()
            && self.ends.is_none_or(|ends| now < ends)
            && self.scopes.as_ref().is_none_or(|known| known.cover(scopes))
    }

    /// Registers with `server`.
    pub(super) fn register(
        fetch: &Fetch,
        server: &AuthorizationServer,
        name: &str,
        redirect: &str,
        scopes: &Scopes,
    ) -> Result<Self, ClientError> {
        let Some(endpoint) = &server.registration else {
            return Err(refused(format!(
                "{} takes no clients that register themselves; register Haft there by hand and give its client id",
                said(&server.issuer)
            )));
        };
        // A program on somebody's machine keeps no secret from its user, so it asks for none where that is possible.
        let takes = |method: &Method| {
            server.methods.as_ref().is_none_or(|methods| methods.iter().any(|word| word == method.word()))
        };
        let method =
            [Method::None, Method::Basic, Method::Post].into_iter().find(takes).unwrap_or(Method::None);
        let mut wish = json!({
            "client_name": name,
            "redirect_uris": [redirect],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": method.word(),
            "application_type": "native",
        });
        if !scopes.is_empty() {
            wish["scope"] = scopes.to_string().into();
        }
        let response = fetch.post_json(endpoint, &wish)?;
        let answer = document(&response);
        if !matches!(response.status, 200 | 201) {
            let words = answer.ok().map(|answer| spoken(&answer)).unwrap_or_default();
            return Err(refused(format!(
                "{endpoint} did not register Haft ({}{words}); register it there by hand and give its client id",
                response.status
            )));
        }
        let answer = answer.map_err(|why| ClientError::invalid_message(format!("{endpoint}: {why}")))?;
        let client = Self::read(answer, server, redirect).map_err(|why| {
            ClientError::invalid_message(format!(
                "{endpoint} registered Haft with an answer that cannot be used: {why}"
            ))
        })?;
        Ok(client)
    }

    fn read(answer: Value, server: &AuthorizationServer, redirect: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Wire {
            client_id: String,
            client_secret: Option<Secret>,
            client_secret_expires_at: Option<u64>,
            token_endpoint_auth_method: Option<String>,
            scope: Option<String>,
        }
        let wire: Wire = serde_json::from_value(answer).map_err(|error| said(&error.to_string()))?;
        let secret = wire.client_secret.filter(|secret| !secret.expose().is_empty());
        let long = |text: &str| text.len() > LONGEST;
        if wire.client_id.is_empty()
            || long(&wire.client_id)
            || secret.as_ref().is_some_and(|secret| long(secret.expose()))
        {
            return Err("its client id or secret is empty or too long".to_owned());
        }
        let method = match wire.token_endpoint_auth_method {
            None => Method::choose(server.methods.as_deref(), secret.is_some()),
            Some(word) => {
                Method::parse(&word).ok_or_else(|| format!("Haft cannot prove itself by {}", said(&word)))?
            }
        };
        if method != Method::None && secret.is_none() {
            return Err(format!("it wants {method} and gives no secret"));
        }
        Ok(Self {
            id: wire.client_id,
            secret,
            method,
            redirect: Some(redirect.to_owned()),
            scopes: wire.scope.map(|scope| Scopes::parse(&scope)),
            ends: wire.client_secret_expires_at.filter(|ends| *ends > 0),
            by_hand: false,
        })
    }
}

/// `: error: description` as an answer gives them.
pub(super) fn spoken(answer: &Value) -> String {
    let word = |name: &str| answer[name].as_str().filter(|word| !word.is_empty()).map(said);
    let words = [word("error"), word("error_description")].into_iter().flatten();
    words.map(|word| format!(": {word}")).collect()
}
