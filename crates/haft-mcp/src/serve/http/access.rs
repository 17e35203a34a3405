//! Access control of MCP clients: a request that is not accepted is answered as the protocol wants it.

use std::net::SocketAddr;

use haft_net::server::{AccessDenied, AccessGuard, AccessOptions};
use hyper::header::{HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Request, StatusCode};

use super::response::Rejection;
use super::{HttpServerOptions, PATH};

/// The principal of all clients of a server without tokens.
const ANONYMOUS: &str = "http";

/// Decides which requests are accepted.
pub(super) struct ClientAccess {
    guard: AccessGuard,
    /// Where clients find out how to get a token.
    metadata_url: Option<String>,
}

impl ClientAccess {
    pub(super) fn new(options: &HttpServerOptions, address: SocketAddr) -> Self {
        let accepted = AccessOptions {
            tokens: options.tokens.clone(),
            hosts: options.hosts.clone(),
            origins: options.origins.clone(),
        };
        let metadata_url = options.metadata.as_ref().and_then(|metadata| metadata_url(&metadata.resource));
        Self { guard: AccessGuard::new(accepted, address), metadata_url }
    }

    /// Checks `Host` and `Origin`.
    pub(super) fn check_source<B>(&self, request: &Request<B>) -> Result<(), Rejection> {
        let checked =
            self.guard.check_host(request).and_then(|()| self.guard.check_origin(request.headers()));
        checked.map_err(|denied| self.rejection(denied))
    }

    /// The principal of the request's token.
    pub(super) fn authenticate(&self, headers: &HeaderMap) -> Result<String, Rejection> {
        let principal = self.guard.authenticate(headers).map_err(|denied| self.rejection(denied))?;
        Ok(principal.unwrap_or(ANONYMOUS).to_owned())
    }

    fn rejection(&self, denied: AccessDenied) -> Rejection {
        let status = StatusCode::from_u16(denied.status).unwrap_or(StatusCode::FORBIDDEN);
        let rejection = Rejection::new(status, denied.message);
        if status != StatusCode::UNAUTHORIZED {
            return rejection;
        }
        let mut parts = vec!["Bearer realm=\"haft\"".to_owned()];
        parts.extend(denied.token_error.map(|error| format!("error=\"{error}\"")));
        parts.extend(self.metadata_url.as_ref().map(|url| format!("resource_metadata=\"{url}\"")));
        match HeaderValue::from_str(&parts.join(", ")) {
            Ok(challenge) => rejection.with(WWW_AUTHENTICATE, challenge),
            Err(_) => rejection,
        }
    }
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
