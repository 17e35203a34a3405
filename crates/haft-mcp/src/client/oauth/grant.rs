//! Exchanges a code or a refresh token for tokens.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_tool::{HttpResponse, Secret, Value, now_ms};
use serde::{Deserialize, Serialize};
use url::Url;

use super::errors::{quote, unauthorized};
use super::fetch::{Fetch, parse_object, redact};
use super::registration::{AuthMethod, OAuthClient, format_error};
use super::scopes::Scopes;
use super::store::{write_optional_secret, write_secret};
use crate::client::ClientError;

/// The longest token that fits into a header.
const MAX_TOKEN_BYTES: usize = 32 * 1024;
/// The longest accepted lifetime of a token: ten years.
const MAX_LIFETIME_SECONDS: u64 = 10 * 365 * 24 * 60 * 60;
/// The longest lifetime that is read from a number with a fraction.
const MAX_FRACTIONAL_SECONDS: f64 = 1e15;
/// The first status code of server errors.
const MIN_SERVER_ERROR_STATUS: u16 = 500;

/// The tokens for one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tokens {
    #[serde(serialize_with = "write_secret")]
    pub(super) access: Secret,
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "write_optional_secret")]
    pub(super) refresh: Option<Secret>,
    /// When the access token expires, in seconds since 1970, if known.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "ends")]
    pub(super) expires: Option<u64>,
    /// The requested scopes.
    #[serde(default)]
    pub(super) asked: Scopes,
    /// The granted scopes, if they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) granted: Option<Scopes>,
}

impl Tokens {
    /// Whether the access token is valid for `seconds` more, as far as is known.
    pub(super) fn lasts(&self, seconds: u64) -> bool {
        self.expires.is_none_or(|expires| now_ms() / 1000 + seconds < expires)
    }

    /// The scopes of the access token.
    pub(super) fn scopes(&self) -> &Scopes {
        self.granted.as_ref().unwrap_or(&self.asked)
    }
}

/// Why there are no tokens.
#[derive(Debug)]
pub(super) enum GrantError {
    /// The code or the refresh token is rejected.
    Grant(ClientError),
    /// The client is unknown.
    Client(ClientError),
    Other(ClientError),
}

impl GrantError {
    pub(super) fn into_error(self) -> ClientError {
        match self {
            Self::Grant(error) | Self::Client(error) | Self::Other(error) => error,
        }
    }
}

/// A token endpoint and who requests tokens for what.
pub(super) struct TokenGrant<'a> {
    pub(super) fetch: &'a Fetch,
    pub(super) endpoint: &'a Url,
    pub(super) client: &'a OAuthClient,
    pub(super) resource: &'a str,
}

impl TokenGrant<'_> {
    /// Exchanges a code.
    pub(super) fn exchange(
        &self,
        code: &Secret,
        verifier: &Secret,
        redirect: &str,
        asked: Scopes,
    ) -> Result<Tokens, GrantError> {
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code.expose()),
            ("code_verifier", verifier.expose()),
            ("redirect_uri", redirect),
        ];
        let answer = self.post(&form, &[code, verifier])?;
        read_tokens(&answer, asked).map_err(|why| self.invalid(&why))
    }

    /// Exchanges the refresh token.
    pub(super) fn refresh(&self, old: &Tokens) -> Result<Tokens, GrantError> {
        let Some(refresh) = &old.refresh else {
            return Err(GrantError::Grant(unauthorized("the token has expired and cannot be refreshed")));
        };
        let form = [("grant_type", "refresh_token"), ("refresh_token", refresh.expose())];
        let answer = self.post(&form, &[refresh, &old.access])?;
        let mut tokens = read_tokens(&answer, old.asked.clone()).map_err(|why| self.invalid(&why))?;
        tokens.granted = tokens.granted.or_else(|| old.granted.clone());
        // Without a new refresh token the old one stays valid.
        tokens.refresh = tokens.refresh.or_else(|| old.refresh.clone());
        Ok(tokens)
    }

    fn post(&self, form: &[(&str, &str)], secrets: &[&Secret]) -> Result<Value, GrantError> {
        let OAuthClient { id, secret, method, .. } = self.client;
        let mut form = form.to_vec();
        form.push(("resource", self.resource));
        let mut headers = Vec::new();
        let client_secret = secret.as_ref().map_or("", Secret::expose);
        match method {
            AuthMethod::Basic => headers.push(("Authorization".to_owned(), basic_auth(id, client_secret))),
            AuthMethod::Post => form.extend([("client_id", id.as_str()), ("client_secret", client_secret)]),
            AuthMethod::None => form.push(("client_id", id)),
        }
        let secrets: Vec<&Secret> = secrets.iter().copied().chain(secret).collect();
        let response =
            self.fetch.post_form(self.endpoint, headers, &form, &secrets).map_err(GrantError::Other)?;
        if response.status == 200 {
            return parse_object(&response).map_err(|why| self.invalid(&why));
        }
        Err(self.refused(&response, &secrets))
    }

    fn refused(&self, response: &HttpResponse, secrets: &[&Secret]) -> GrantError {
        let answer = parse_object(response).unwrap_or_default();
        let why = redact(&format_error(&answer), secrets);
        let error = unauthorized(format!("{} issued no token ({}{why})", self.endpoint, response.status));
        match answer["error"].as_str() {
            Some("invalid_grant") => GrantError::Grant(error),
            Some("invalid_client" | "unauthorized_client") => GrantError::Client(error),
            _ if response.status >= MIN_SERVER_ERROR_STATUS => {
                GrantError::Other(ClientError::unreachable(error.message))
            }
            _ => GrantError::Other(error),
        }
    }

    fn invalid(&self, why: &str) -> GrantError {
        let why = format!("{} issued an invalid token: {why}", self.endpoint);
        GrantError::Other(ClientError::invalid_message(why))
    }
}

/// HTTP Basic authentication; both parts are encoded, so that they may contain a colon.
fn basic_auth(id: &str, secret: &str) -> String {
    let encode = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    format!("Basic {}", STANDARD.encode(format!("{}:{}", encode(id), encode(secret))))
}

fn read_tokens(answer: &Value, asked: Scopes) -> Result<Tokens, String> {
    let text = |name: &str| answer[name].as_str().filter(|text| !text.is_empty());
    let access = text("access_token").ok_or("it has no access_token")?;
    let token_type = text("token_type").ok_or("it has no token_type")?;
    if !token_type.eq_ignore_ascii_case("bearer") {
        return Err(format!("its type is {}, but only Bearer is supported", quote(token_type)));
    }
    if access.len() > MAX_TOKEN_BYTES || !access.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("it is too long or contains characters that a header cannot contain".to_owned());
    }
    let refresh = text("refresh_token").filter(|token| token.len() <= MAX_TOKEN_BYTES).map(Secret::new);
    let granted = answer["scope"].as_str().map(Scopes::parse);
    let granted = granted.filter(|granted| !granted.is_empty() && *granted != asked);
    let lifetime = read_seconds(&answer["expires_in"]).map(|seconds| seconds.min(MAX_LIFETIME_SECONDS));
    let expires = lifetime.map(|lifetime| now_ms() / 1000 + lifetime);
    Ok(Tokens { access: Secret::new(access), refresh, expires, asked, granted })
}

/// Seconds as a number, also from a string or with a fraction.
fn read_seconds(value: &Value) -> Option<u64> {
    let text = value.as_str().and_then(|text| text.trim().parse().ok());
    let range = 0.0..MAX_FRACTIONAL_SECONDS;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the range")]
    let whole = || value.as_f64().filter(|seconds| range.contains(seconds)).map(|seconds| seconds as u64);
    text.or_else(|| value.as_u64()).or_else(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_tool::json;

    fn access(answer: &Value) -> Result<Tokens, String> {
        read_tokens(answer, Scopes::parse("a"))
    }

    #[test]
    fn token_is_read_with_all_fields() {
        let now = now_ms() / 1000;
        let answer = json!({"access_token": "t", "token_type": "bEaReR", "expires_in": 60, "refresh_token": "r", "scope": "a b"});
        let tokens = access(&answer).unwrap();
        assert_eq!((tokens.access.expose(), tokens.refresh.unwrap().expose()), ("t", "r"));
        assert_eq!(tokens.granted, Some(Scopes::parse("a b")));
        assert!((now + 60..now + 120).contains(&tokens.expires.unwrap()));
    }

    #[test]
    fn unusual_lifetimes_are_read_or_ignored() {
        let ends = |expires: Value| {
            let answer = json!({"access_token": "t", "token_type": "Bearer", "expires_in": expires});
            access(&answer).unwrap().expires.map(|ends| ends.saturating_sub(now_ms() / 1000))
        };
        for (expires, least) in
            [(json!("3600"), 3500), (json!(3600.9), 3500), (json!(u64::MAX), MAX_LIFETIME_SECONDS - 60)]
        {
            assert!(ends(expires.clone()).is_some_and(|left| left >= least), "{expires}");
        }
        for none in [json!(null), json!(-1), json!("soon"), json!([]), json!(1e300)] {
            assert_eq!(ends(none.clone()), None, "{none}");
        }
    }

    #[test]
    fn invalid_token_is_refused() {
        for answer in [
            json!({}),
            json!({"access_token": "t"}),
            json!({"access_token": "", "token_type": "Bearer"}),
            json!({"access_token": 7, "token_type": "Bearer"}),
            json!({"access_token": "t", "token_type": "DPoP"}),
            json!({"access_token": "t\r\nX-Evil: 1", "token_type": "Bearer"}),
            json!({"access_token": "t t", "token_type": "Bearer"}),
            json!({"access_token": "\u{e9}", "token_type": "Bearer"}),
            json!({"access_token": "t".repeat(MAX_TOKEN_BYTES + 1), "token_type": "Bearer"}),
        ] {
            assert!(access(&answer).is_err(), "{answer}");
        }
    }

    #[test]
    fn colon_in_a_client_id_is_encoded() {
        assert_eq!(basic_auth("a:b", "c d"), format!("Basic {}", STANDARD.encode("a%3Ab:c+d")));
    }
}
