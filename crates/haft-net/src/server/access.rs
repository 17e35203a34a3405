//! Access control: each request is checked for its `Host`, its `Origin` and its token, because web pages can reach local ports.

use std::net::SocketAddr;

use hyper::Request;
use hyper::header::{AUTHORIZATION, HOST, HeaderMap, ORIGIN};
use sha2::{Digest as _, Sha256};

use super::own_hosts;

/// Which requests a server accepts.
#[derive(Debug, Clone, Default)]
pub struct AccessOptions {
    /// The accepted tokens. Without any, every client is accepted.
    pub tokens: Vec<BearerToken>,
    /// Additional values of `Host`, for example the name of a proxy.
    pub hosts: Vec<String>,
    /// Web origins that may send requests besides the server's own, as in `Origin`.
    pub origins: Vec<String>,
}

/// A token and its principal.
#[derive(Clone)]
pub struct BearerToken {
    /// The name of its holder.
    pub principal: String,
    /// The secret after `Bearer`.
    pub secret: String,
}

impl std::fmt::Debug for BearerToken {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("BearerToken").field("principal", &self.principal).finish_non_exhaustive()
    }
}

/// Decides which requests are accepted.
pub struct AccessGuard {
    hosts: Vec<String>,
    origins: Vec<String>,
    /// The digest of each secret, and its principal.
    tokens: Vec<([u8; 32], String)>,
}

/// A request that is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessDenied {
    /// The HTTP status.
    pub status: u16,
    /// Why, and what to do.
    pub message: String,
    /// The error code of the challenge, if a token was given (RFC 6750).
    pub token_error: Option<&'static str>,
}

impl AccessDenied {
    fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), token_error: None }
    }

    fn of_token(message: &str, token_error: Option<&'static str>) -> Self {
        Self { status: 401, message: message.to_owned(), token_error }
    }
}

impl AccessGuard {
    /// The guard of a server that listens on this address.
    pub fn new(options: AccessOptions, address: SocketAddr) -> Self {
        let mut hosts = own_hosts(address);
        let mut origins: Vec<String> = hosts.iter().map(|host| format!("http://{host}")).collect();
        hosts.extend(options.hosts.iter().map(|host| host.to_ascii_lowercase()));
        origins.extend(options.origins.iter().map(|origin| origin.to_ascii_lowercase()));
        let tokens =
            options.tokens.into_iter().map(|token| (digest(token.secret.as_bytes()), token.principal));
        Self { hosts, origins, tokens: tokens.collect() }
    }

    /// Checks that the request names this server. Prevents DNS rebinding.
    pub fn check_host<B>(&self, request: &Request<B>) -> Result<(), AccessDenied> {
        let mut named = request.headers().get_all(HOST).iter();
        let (Some(host), None) = (named.next(), named.next()) else {
            return Err(AccessDenied::new(400, "There must be exactly one Host header"));
        };
        let authority = request.uri().authority().map(|authority| authority.as_str().as_bytes());
        for host in authority.into_iter().chain([host.as_bytes()]) {
            if !contains(&self.hosts, host) {
                let why = format!(
                    "Host {:?} is not allowed. To allow it, start the server with --allow-host.",
                    String::from_utf8_lossy(host)
                );
                return Err(AccessDenied::new(403, why));
            }
        }
        Ok(())
    }

    /// Checks that the request comes from no web page, or from an allowed one.
    pub fn check_origin(&self, headers: &HeaderMap) -> Result<(), AccessDenied> {
        for origin in headers.get_all(ORIGIN) {
            if !contains(&self.origins, origin.as_bytes()) {
                let why = format!(
                    "Origin {:?} is not allowed. To allow it, name it when the server is started.",
                    String::from_utf8_lossy(origin.as_bytes())
                );
                return Err(AccessDenied::new(403, why));
            }
        }
        Ok(())
    }

    /// The principal of the request's token; `None` if the server has no tokens.
    pub fn authenticate(&self, headers: &HeaderMap) -> Result<Option<&str>, AccessDenied> {
        if self.tokens.is_empty() {
            return Ok(None);
        }
        let mut given = headers.get_all(AUTHORIZATION).iter();
        let (Some(given), None) = (given.next(), given.next()) else {
            return Err(AccessDenied::of_token(
                "The token is missing. Send it as `Authorization: Bearer TOKEN`.",
                None,
            ));
        };
        let Some(secret) = bearer_secret(given.as_bytes()) else {
            let why = "Authorization must be Bearer TOKEN";
            return Err(AccessDenied::of_token(why, Some("invalid_request")));
        };
        let presented = digest(secret);
        let mut found = None;
        // All tokens are compared in full, so that the time does not depend on them.
        for (expected, principal) in &self.tokens {
            let difference = presented.iter().zip(expected).fold(0, |sum, (a, b)| sum | (a ^ b));
            if std::hint::black_box(difference) == 0 {
                found = Some(principal.as_str());
            }
        }
        let denied = || AccessDenied::of_token("The token is not valid.", Some("invalid_token"));
        found.map(Some).ok_or_else(denied)
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
