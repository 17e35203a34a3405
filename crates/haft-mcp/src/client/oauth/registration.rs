//! Haft's identity at an authorization server: registered by the user, by a metadata document, or by Haft itself.

use std::fmt;

use haft_tool::{Secret, Value, json, now_ms};
use serde::{Deserialize, Serialize};
use url::Url;

use super::errors::{quote, unauthorized};
use super::fetch::{Fetch, parse_object};
use super::metadata::AuthorizationServer;
use super::scopes::Scopes;
use super::store::write_optional_secret;
use crate::client::ClientError;

/// The longest accepted client id or secret.
const MAX_CREDENTIAL_BYTES: usize = 4096;

/// A client that the user registered with an authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredClient {
    /// The client id.
    pub id: String,
    /// The client secret.
    pub secret: Option<Secret>,
    /// The authorization server; `None` is the first one that the server names.
    pub issuer: Option<String>,
    /// The registered redirect URI: `http` to `127.0.0.1` or `localhost`. `None` is `http://127.0.0.1/callback` at a free
    /// port, as the standard for native applications specifies.
    pub redirect: Option<Url>,
}

/// How a client authenticates at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum AuthMethod {
    /// Not at all: the code and its verifier are enough.
    #[serde(rename = "none")]
    None,
    #[serde(rename = "client_secret_basic")]
    Basic,
    #[serde(rename = "client_secret_post")]
    Post,
}

impl AuthMethod {
    fn parse(name: &str) -> Option<Self> {
        [Self::None, Self::Basic, Self::Post].into_iter().find(|method| method.as_str() == name)
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
        }
    }

    /// Whether it is among the `supported` methods; all are if the authorization server has no metadata.
    fn is_supported(self, supported: Option<&[String]>) -> bool {
        supported.is_none_or(|supported| supported.iter().any(|name| name == self.as_str()))
    }

    /// The method for a client with or without a secret.
    fn choose(supported: Option<&[String]>, has_secret: bool) -> Self {
        match (has_secret, supported) {
            (false, _) => Self::None,
            (true, None) => Self::Post,
            (true, Some(_)) => [Self::Basic, Self::Post, Self::None]
                .into_iter()
                .find(|method| method.is_supported(supported))
                .unwrap_or(Self::Basic),
        }
    }
}

impl fmt::Display for AuthMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Haft as a client of one authorization server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OAuthClient {
    pub(super) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "write_optional_secret")]
    pub(super) secret: Option<Secret>,
    pub(super) method: AuthMethod,
    /// The redirect URI of Haft's own registration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) redirect: Option<String>,
    /// The scopes that it may request, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) scopes: Option<Scopes>,
    /// When its secret expires, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "ends")]
    pub(super) expires: Option<u64>,
    /// Whether the user registered it.
    #[serde(default, rename = "by_hand")]
    pub(super) is_users: bool,
}

impl OAuthClient {
    /// The client that the user registered.
    pub(super) fn from_registered(
        registered: &RegisteredClient,
        server: &AuthorizationServer,
    ) -> Result<Self, ClientError> {
        if let Some(issuer) = registered.issuer.as_ref().filter(|issuer| **issuer != server.issuer) {
            return Err(unauthorized(format!(
                "the client {} is registered with {issuer}, but the server now names {}. Register it there, or correct its \
                 issuer.",
                quote(&registered.id),
                quote(&server.issuer)
            )));
        }
        let method = AuthMethod::choose(server.methods.as_deref(), registered.secret.is_some());
        Ok(Self { method, ..Self::public(&registered.id) }.with_secret_of(registered))
    }

    /// Adds the user's secret, which is never stored with the tokens.
    pub(super) fn with_secret_of(self, registered: &RegisteredClient) -> Self {
        Self { secret: registered.secret.clone(), is_users: true, ..self }
    }

    /// The client that the metadata document at `url` describes.
    pub(super) fn from_document(url: &Url) -> Self {
        Self::public(url.as_str())
    }

    fn public(id: &str) -> Self {
        let (secret, redirect, scopes, expires) = (None, None, None, None);
        let method = AuthMethod::None;
        Self { id: id.to_owned(), secret, method, redirect, scopes, expires, is_users: false }
    }

    /// Whether Haft registered it and it can still request `scopes`.
    pub(super) fn is_usable(&self, scopes: &Scopes) -> bool {
        let now = now_ms() / 1000;
        self.redirect.is_some()
            && self.expires.is_none_or(|expires| now < expires)
            && self.scopes.as_ref().is_none_or(|known| known.covers(scopes))
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
            return Err(unauthorized(format!(
                "{} does not support automatic registration. Register Haft there and configure its client id.",
                quote(&server.issuer)
            )));
        };
        // A program on the user's machine cannot keep a secret from its user, so it prefers to have none.
        let method = [AuthMethod::None, AuthMethod::Basic, AuthMethod::Post]
            .into_iter()
            .find(|method| method.is_supported(server.methods.as_deref()))
            .unwrap_or(AuthMethod::None);
        let mut request = json!({
            "client_name": name,
            "redirect_uris": [redirect],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": method.as_str(),
            "application_type": "native",
        });
        if !scopes.is_empty() {
            request["scope"] = scopes.to_string().into();
        }
        let response = fetch.post_json(endpoint, &request)?;
        let answer = parse_object(&response);
        if !matches!(response.status, 200 | 201) {
            let error = answer.ok().map(|answer| format_error(&answer)).unwrap_or_default();
            return Err(unauthorized(format!(
                "{endpoint} did not register Haft ({}{error}). Register it there and configure its client id.",
                response.status
            )));
        }
        let answer = answer.map_err(|why| ClientError::invalid_message(format!("{endpoint}: {why}")))?;
        Self::read(answer, server, redirect).map_err(|why| {
            ClientError::invalid_message(format!(
                "{endpoint} answered the registration with an invalid client: {why}"
            ))
        })
    }

    fn read(answer: Value, server: &AuthorizationServer, redirect: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct RegistrationResponse {
            client_id: String,
            client_secret: Option<Secret>,
            client_secret_expires_at: Option<u64>,
            token_endpoint_auth_method: Option<String>,
            scope: Option<String>,
        }
        let wire: RegistrationResponse =
            serde_json::from_value(answer).map_err(|error| quote(&error.to_string()))?;
        let secret = wire.client_secret.filter(|secret| !secret.expose().is_empty());
        let is_long = |text: &str| text.len() > MAX_CREDENTIAL_BYTES;
        if wire.client_id.is_empty()
            || is_long(&wire.client_id)
            || secret.as_ref().is_some_and(|secret| is_long(secret.expose()))
        {
            return Err("its client id or secret is empty or too long".to_owned());
        }
        let method = match wire.token_endpoint_auth_method {
            None => AuthMethod::choose(server.methods.as_deref(), secret.is_some()),
            Some(name) => AuthMethod::parse(&name)
                .ok_or_else(|| format!("the authentication method {} is not supported", quote(&name)))?,
        };
        if method != AuthMethod::None && secret.is_none() {
            return Err(format!("it requires {method} but has no secret"));
        }
        Ok(Self {
            id: wire.client_id,
            secret,
            method,
            redirect: Some(redirect.to_owned()),
            scopes: wire.scope.map(|scope| Scopes::parse(&scope)),
            expires: wire.client_secret_expires_at.filter(|expires| *expires > 0),
            is_users: false,
        })
    }
}

/// `: error: description` of an error response.
pub(super) fn format_error(answer: &Value) -> String {
    let text = |name: &str| answer[name].as_str().filter(|text| !text.is_empty()).map(quote);
    let parts = [text("error"), text("error_description")].into_iter().flatten();
    parts.map(|part| format!(": {part}")).collect()
}
