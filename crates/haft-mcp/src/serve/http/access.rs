//! Access control: each request is checked for its `Host`, its `Origin` and its token.

use std::net::SocketAddr;

use haft_net::server::own_hosts;
use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderValue, ORIGIN, WWW_AUTHENTICATE};
use hyper::{Request, StatusCode};
use sha2::{Digest as _, Sha256};

use super::response::Rejection;
use super::{HttpServerOptions, PATH};

/// The principal of all clients of a server without tokens.
const ANONYMOUS: &str = "http";

/// Decides which requests are accepted.
pub(super) struct AccessGuard {
    hosts: Vec<String>,
    origins: Vec<String>,
    /// The digest of each secret, and its principal.
    tokens: Vec<([u8; 32], String)>,
    /// Where clients find out how to get a token.
    metadata_url: Option<String>,
}

impl AccessGuard {
    pub(super) fn new(options: &HttpServerOptions, address: SocketAddr) -> Self {
        let mut hosts = own_hosts(address);
        let mut origins: Vec<String> = hosts.iter().map(|host| format!("http://{host}")).collect();
        hosts.extend(options.hosts.iter().map(|host| host.to_ascii_lowercase()));
        origins.extend(options.origins.iter().map(|origin| origin.to_ascii_lowercase()));
        let tokens =
            options.tokens.iter().map(|token| (digest(token.secret.as_bytes()), token.principal.clone()));
        let metadata_url = options.metadata.as_ref().and_then(|metadata| metadata_url(&metadata.resource));
        Self { hosts, origins, tokens: tokens.collect(), metadata_url }
    }

    /// Checks that the request names this server. Prevents DNS rebinding.
    pub(super) fn check_host<B>(&self, request: &Request<B>) -> Result<(), Rejection> {
        let mut named = request.headers().get_all(HOST).iter();
        let (Some(host), None) = (named.next(), named.next()) else {
            return Err(Rejection::new(StatusCode::BAD_REQUEST, "There must be exactly one Host header"));
        };
        let authority = request.uri().authority().map(|authority| authority.as_str().as_bytes());
        for host in authority.into_iter().chain([host.as_bytes()]) {
            if !contains(&self.hosts, host) {
                let why = format!(
                    "Host {:?} is not allowed. To allow it, name it when the server is started.",
                    String::from_utf8_lossy(host)
                );
                return Err(Rejection::new(StatusCode::FORBIDDEN, why));
            }
        }
        Ok(())
    }

    /// Checks that the request comes from no web page, or from an allowed one.
    pub(super) fn check_origin(&self, headers: &HeaderMap) -> Result<(), Rejection> {
        for origin in headers.get_all(ORIGIN) {
            if !contains(&self.origins, origin.as_bytes()) {
                let why = format!(
                    "Origin {:?} is not allowed. To allow it, name it when the server is started.",
                    String::from_utf8_lossy(origin.as_bytes())
                );
                return Err(Rejection::new(StatusCode::FORBIDDEN, why));
            }
        }
        Ok(())
    }

    /// The principal of the request's token.
    pub(super) fn authenticate(&self, headers: &HeaderMap) -> Result<String, Rejection> {
        if self.tokens.is_empty() {
            return Ok(ANONYMOUS.to_owned());
        }
        let mut given = headers.get_all(AUTHORIZATION).iter();
        let (Some(given), None) = (given.next(), given.next()) else {
            return Err(self.challenge("Authorization: Bearer TOKEN is missing", None));
        };
        let Some(secret) = bearer_secret(given.as_bytes()) else {
            return Err(self.challenge("Authorization must be Bearer TOKEN", Some("invalid_request")));
        };
        let presented = digest(secret);
        let mut found = None;
        // All tokens are compared in full, so that the time does not depend on them.
        for (expected, principal) in &self.tokens {
            let difference = presented.iter().zip(expected).fold(0, |sum, (a, b)| sum | (a ^ b));
            if std::hint::black_box(difference) == 0 {
                found = Some(principal);
            }
        }
        found.cloned().ok_or_else(|| self.challenge("The token is unknown", Some("invalid_token")))
    }

    fn challenge(&self, why: &str, error: Option<&str>) -> Rejection {
        let mut parts = vec!["Bearer realm=\"haft\"".to_owned()];
        parts.extend(error.map(|error| format!("error=\"{error}\"")));
        parts.extend(self.metadata_url.as_ref().map(|url| format!("resource_metadata=\"{url}\"")));
        let rejection = Rejection::new(StatusCode::UNAUTHORIZED, why);
        match HeaderValue::from_str(&parts.join(", ")) {
            Ok(challenge) => rejection.with(WWW_AUTHENTICATE, challenge),
            Err(_) => rejection,
        }
    }
}

fn contains(all: &[String], given: &[u8]) -> bool {
    all.iter().any(|one| one.as_bytes().eq_ignore_ascii_case(given))
}

fn bearer_secret(authorization: &[u8]) -> Option<&[u8]> {
    const SCHEME: &[u8] = b"bearer ";
    let (scheme, rest) = authorization.split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then(|| rest.trim_ascii())
}

fn digest(secret: &[u8]) -> [u8; 32] {
    Sha256::digest(secret).into()
}

/// The URL of a resource's metadata (RFC 9728).
fn metadata_url(resource: &str) -> Option<String> {
    let resource = url::Url::parse(resource).ok()?;
    let path = if resource.path() == "/" { "" } else { resource.path() };
    Some(format!("{}/.well-known/oauth-protected-resource{path}", resource.origin().ascii_serialization()))
}

/// Whether clients look for the metadata at this path.
pub(super) fn is_metadata_path(path: &str) -> bool {
    path.strip_prefix("/.well-known/oauth-protected-resource")
        .is_some_and(|rest| rest.is_empty() || rest == PATH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_url_puts_the_well_known_path_first() {
        let found = metadata_url("https://tools.example.com/mcp");
        assert_eq!(
            found.as_deref(),
            Some("https://tools.example.com/.well-known/oauth-protected-resource/mcp")
        );
        let found = metadata_url("https://tools.example.com");
        assert_eq!(found.as_deref(), Some("https://tools.example.com/.well-known/oauth-protected-resource"));
    }
}
