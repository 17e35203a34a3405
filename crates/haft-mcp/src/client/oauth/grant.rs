//! Changing a code, or an older token, for tokens.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_tool::{HttpResponse, Secret, Value, now_ms};
use serde::{Deserialize, Serialize};
use url::Url;

use super::fetch::{Fetch, cover, document};
use super::registration::{Method, OAuthClient, spoken};
use super::scopes::Scopes;
use super::store::{exposed, shown};
use super::words::{refused, said};
use crate::client::ClientError;

/// Longer than any token that fits into a header.
const LONGEST: usize = 32 * 1024;
/// Longer than any token lasts.
const TEN_YEARS: u64 = 10 * 365 * 24 * 60 * 60;

/// What an authorization server gave out for one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tokens {
    #[serde(serialize_with = "shown")]
    pub(super) access: Secret,
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "exposed")]
    pub(super) refresh: Option<Secret>,
    /// When the first ends, in seconds since 1970, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ends: Option<u64>,
    /// What was asked for.
    #[serde(default)]
    pub(super) asked: Scopes,
    /// What was given, if that was said to be something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) granted: Option<Scopes>,
}

impl Tokens {
    /// Whether the token lasts for `seconds` more, as far as is known.
    pub(super) fn lasts(&self, seconds: u64) -> bool {
        self.ends.is_none_or(|ends| now_ms() / 1000 + seconds < ends)
    }

    /// What the token is good for.
    pub(super) fn scopes(&self) -> &Scopes {
        self.granted.as_ref().unwrap_or(&self.asked)
    }
}

/// Why there are no tokens.
#[derive(Debug)]
pub(super) enum Denied {
    /// The code or the older token is not taken (any more).
    Grant(ClientError),
    /// The authorization server does not know Haft (any more).
    Client(ClientError),
    Other(ClientError),
}

impl Denied {
    pub(super) fn error(self) -> ClientError {
        match self {
            Self::Grant(error) | Self::Client(error) | Self::Other(error) => error,
        }
    }
}

/// Where and as whom tokens are asked for, and what they are for.
pub(super) struct Grant<'a> {
    pub(super) fetch: &'a Fetch,
    pub(super) endpoint: &'a Url,
    pub(super) client: &'a OAuthClient,
    pub(super) resource: &'a str,
}

impl Grant<'_> {
    /// Changes a code.
    pub(super) fn exchange(
        &self,
        code: &Secret,
        verifier: &Secret,
        redirect: &str,
        asked: Scopes,
    ) -> Result<Tokens, Denied> {
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code.expose()),
            ("code_verifier", verifier.expose()),
            ("redirect_uri", redirect),
        ];
        self.ask(&form, &[code, verifier])
            .and_then(|answer| read(&answer, asked).map_err(|why| self.garbled(&why)))
    }

    /// Changes an older token that has a successor.
    pub(super) fn refresh(&self, old: &Tokens) -> Result<Tokens, Denied> {
        let Some(refresh) = &old.refresh else {
            return Err(Denied::Grant(refused("the token has ended and cannot be renewed")));
        };
        let form = [("grant_type", "refresh_token"), ("refresh_token", refresh.expose())];
        let answer = self.ask(&form, &[refresh, &old.access])?;
        let mut tokens = read(&answer, old.asked.clone()).map_err(|why| self.garbled(&why))?;
        tokens.granted = tokens.granted.or_else(|| old.granted.clone());
        // Whoever gives no new one lets the old one stand.
        tokens.refresh = tokens.refresh.or_else(|| old.refresh.clone());
        Ok(tokens)
    }

    fn ask(&self, form: &[(&str, &str)], secrets: &[&Secret]) -> Result<Value, Denied> {
        let OAuthClient { id, secret, method, .. } = self.client;
        let mut form = form.to_vec();
        form.push(("resource", self.resource));
        let mut headers = Vec::new();
        let known = secret.as_ref().map_or("", Secret::expose);
        match method {
            Method::Basic => headers.push(("Authorization".to_owned(), basic(id, known))),
            Method::Post => form.extend([("client_id", id.as_str()), ("client_secret", known)]),
            Method::None => form.push(("client_id", id)),
        }
        let hidden: Vec<&Secret> = secrets.iter().copied().chain(secret).collect();
        let response = self.fetch.post_form(self.endpoint, headers, &form, &hidden).map_err(Denied::Other)?;
        if response.status == 200 {
            return document(&response).map_err(|why| self.garbled(&why));
        }
        Err(self.denied(&response, &hidden))
    }

    fn denied(&self, response: &HttpResponse, hidden: &[&Secret]) -> Denied {
        let answer = document(response).unwrap_or_default();
        let words = cover(&spoken(&answer), hidden);
        let error = refused(format!("{} gives no token ({}{words})", self.endpoint, response.status));
        match answer["error"].as_str() {
            Some("invalid_grant") => Denied::Grant(error),
            Some("invalid_client" | "unauthorized_client") => Denied::Client(error),
            _ if response.status >= 500 => Denied::Other(ClientError::unreachable(error.message)),
            _ => Denied::Other(error),
        }
    }

    fn garbled(&self, why: &str) -> Denied {
        let endpoint = self.endpoint;
        Denied::Other(ClientError::invalid_message(format!(
            "{endpoint} gives a token that cannot be used: {why}"
        )))
    }
}

/// Names and secrets are encoded before they are joined, so that a colon in one of them stays there.
fn basic(id: &str, secret: &str) -> String {
    let encode = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    format!("Basic {}", STANDARD.encode(format!("{}:{}", encode(id), encode(secret))))
}

fn read(answer: &Value, asked: Scopes) -> Result<Tokens, String> {
    let text = |name: &str| answer[name].as_str().filter(|text| !text.is_empty());
    let access = text("access_token").ok_or("it has no access_token")?;
    let kind = text("token_type").ok_or("it has no token_type")?;
    if !kind.eq_ignore_ascii_case("bearer") {
        return Err(format!("its type is {}, and only Bearer is spoken here", said(kind)));
    }
    // It goes into a header.
    if access.len() > LONGEST || !access.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("it is too long or has characters that headers have not".to_owned());
    }
    let refresh = text("refresh_token").filter(|token| token.len() <= LONGEST).map(Secret::new);
    let granted = answer["scope"]
        .as_str()
        .map(Scopes::parse)
        .filter(|granted| !granted.is_empty() && *granted != asked);
    let ends = lasting(&answer["expires_in"]).map(|seconds| now_ms() / 1000 + seconds.min(TEN_YEARS));
    Ok(Tokens { access: Secret::new(access), refresh, ends, asked, granted })
}

/// Seconds as a number, also where they are written as text or with a fraction.
fn lasting(value: &Value) -> Option<u64> {
    let text = value.as_str().and_then(|text| text.trim().parse().ok());
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked just before")]
    let whole =
        || value.as_f64().filter(|seconds| (0.0..1e15).contains(seconds)).map(|seconds| seconds as u64);
    text.or_else(|| value.as_u64()).or_else(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_tool::json;

    fn access(answer: &Value) -> Result<Tokens, String> {
        read(answer, Scopes::parse("a"))
    }

    #[test]
    fn a_token_is_read_with_all_that_is_said_of_it() {
        let now = now_ms() / 1000;
        let answer = json!({"access_token": "t", "token_type": "bEaReR", "expires_in": 60, "refresh_token": "r", "scope": "a b"});
        let tokens = access(&answer).unwrap();
        assert_eq!((tokens.access.expose(), tokens.refresh.unwrap().expose()), ("t", "r"));
        assert_eq!(tokens.granted, Some(Scopes::parse("a b")));
        assert!((now + 60..now + 120).contains(&tokens.ends.unwrap()));
    }

    #[test]
    fn odd_times_are_understood_or_left_out() {
        let ends = |expires: Value| {
            let answer = json!({"access_token": "t", "token_type": "Bearer", "expires_in": expires});
            access(&answer).unwrap().ends.map(|ends| ends.saturating_sub(now_ms() / 1000))
        };
        for (expires, least) in
            [(json!("3600"), 3500), (json!(3600.9), 3500), (json!(u64::MAX), TEN_YEARS - 60)]
        {
            assert!(ends(expires.clone()).is_some_and(|left| left >= least), "{expires}");
        }
        for none in [json!(null), json!(-1), json!("soon"), json!([]), json!(1e300)] {
            assert_eq!(ends(none.clone()), None, "{none}");
        }
    }

    #[test]
    fn garbage_is_no_token() {
        for answer in [
            json!({}),
            json!({"access_token": "t"}),
            json!({"access_token": "", "token_type": "Bearer"}),
            json!({"access_token": 7, "token_type": "Bearer"}),
            json!({"access_token": "t", "token_type": "DPoP"}),
            json!({"access_token": "t\r\nX-Evil: 1", "token_type": "Bearer"}),
            json!({"access_token": "t t", "token_type": "Bearer"}),
            json!({"access_token": "\u{e9}", "token_type": "Bearer"}),
            json!({"access_token": "t".repeat(LONGEST + 1), "token_type": "Bearer"}),
        ] {
            assert!(access(&answer).is_err(), "{answer}");
        }
    }

    #[test]
    fn a_colon_in_a_name_stays_in_the_name() {
        assert_eq!(basic("a:b", "c d"), format!("Basic {}", STANDARD.encode("a%3Ab:c+d")));
    }
}
