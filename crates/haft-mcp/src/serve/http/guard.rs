//! Who may come in: judged by whom a request means, where it comes from, and what it carries, each for itself.

use std::net::SocketAddr;

use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderValue, ORIGIN, WWW_AUTHENTICATE};
use hyper::{Request, StatusCode};
use sha2::{Digest as _, Sha256};

use super::answer::Refusal;
use super::{HttpOptions, PATH};

/// Who is meant where no token is needed.
const ANYBODY: &str = "http";

/// Decides who may come in.
pub(super) struct Guard {
    hosts: Vec<String>,
    origins: Vec<String>,
    /// The digest of each secret, and who it belongs to.
    tokens: Vec<([u8; 32], String)>,
    /// Where to read how to get a token.
    metadata: Option<String>,
}

impl Guard {
    pub(super) fn new(options: &HttpOptions, address: SocketAddr) -> Self {
        let mut hosts = own_names(address);
        let mut origins: Vec<String> = hosts.iter().map(|host| format!("http://{host}")).collect();
        hosts.extend(options.hosts.iter().map(|host| host.to_ascii_lowercase()));
        origins.extend(options.origins.iter().map(|origin| origin.to_ascii_lowercase()));
        let tokens =
            options.tokens.iter().map(|token| (digest(token.secret.as_bytes()), token.principal.clone()));
        let metadata = options.metadata.as_ref().and_then(|metadata| metadata_address(&metadata.resource));
        Self { hosts, origins, tokens: tokens.collect(), metadata }
    }

    /// Whether the request means this server: a page whose name leads here by a trick means another one.
    pub(super) fn host<B>(&self, request: &Request<B>) -> Result<(), Refusal> {
        let mut named = request.headers().get_all(HOST).iter();
        let (Some(host), None) = (named.next(), named.next()) else {
            return Err(Refusal::new(StatusCode::BAD_REQUEST, "There must be one Host header"));
        };
        let also = request.uri().authority().map(|authority| authority.as_str().as_bytes());
        for host in also.into_iter().chain([host.as_bytes()]) {
            if !is_among(&self.hosts, host) {
                let why = format!(
                    "The host {:?} is none of this server's; name it when starting the server to allow it",
                    String::from_utf8_lossy(host)
                );
                return Err(Refusal::new(StatusCode::FORBIDDEN, why));
            }
        }
        Ok(())
    }

    /// Whether the request comes from no page, or from one that may send it.
    pub(super) fn origin(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        for origin in headers.get_all(ORIGIN) {
            if !is_among(&self.origins, origin.as_bytes()) {
                let why = format!(
                    "Pages of {:?} may send nothing here; name the origin when starting the server to allow it",
                    String::from_utf8_lossy(origin.as_bytes())
                );
                return Err(Refusal::new(StatusCode::FORBIDDEN, why));
            }
        }
        Ok(())
    }

    /// Who the request is from, by its token.
    pub(super) fn principal(&self, headers: &HeaderMap) -> Result<String, Refusal> {
        if self.tokens.is_empty() {
            return Ok(ANYBODY.to_owned());
        }
        let mut given = headers.get_all(AUTHORIZATION).iter();
        let (Some(given), None) = (given.next(), given.next()) else {
            return Err(self.challenge("Authorization: Bearer TOKEN is missing", None));
        };
        let Some(secret) = bearer(given.as_bytes()) else {
            return Err(self.challenge("Authorization must be Bearer TOKEN", Some("invalid_request")));
        };
        let presented = digest(secret);
        let mut found = None;
        // All are looked at, and all of each, so that the time it takes tells nothing about them.
        for (expected, principal) in &self.tokens {
            let difference = presented.iter().zip(expected).fold(0, |sum, (one, other)| sum | (one ^ other));
            if std::hint::black_box(difference) == 0 {
                found = Some(principal);
            }
        }
        found
            .cloned()
            .ok_or_else(|| self.challenge("The token is none of this server's", Some("invalid_token")))
    }

    fn challenge(&self, why: &str, error: Option<&str>) -> Refusal {
        let mut words = vec!["Bearer realm=\"haft\"".to_owned()];
        words.extend(error.map(|error| format!("error=\"{error}\"")));
        words.extend(self.metadata.as_ref().map(|address| format!("resource_metadata=\"{address}\"")));
        let refusal = Refusal::new(StatusCode::UNAUTHORIZED, why);
        match HeaderValue::from_str(&words.join(", ")) {
            Ok(words) => refusal.with(WWW_AUTHENTICATE, words),
            Err(_) => refusal,
        }
    }
}

/// What this machine calls the server by itself.
fn own_names(address: SocketAddr) -> Vec<String> {
    let port = address.port();
    let mut names = vec![format!("localhost:{port}"), format!("127.0.0.1:{port}"), format!("[::1]:{port}")];
    if !address.ip().is_unspecified() && !names.contains(&address.to_string()) {
        names.push(address.to_string());
    }
    if port == 80 {
        let bare: Vec<String> =
            names.iter().filter_map(|name| name.strip_suffix(":80").map(str::to_owned)).collect();
        names.extend(bare);
    }
    names
}

fn is_among(all: &[String], given: &[u8]) -> bool {
    all.iter().any(|one| one.as_bytes().eq_ignore_ascii_case(given))
}

fn bearer(given: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = given.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| rest.trim_ascii())
}

fn digest(secret: &[u8]) -> [u8; 32] {
    Sha256::digest(secret).into()
}

/// Where the metadata of a resource is: before its path.
fn metadata_address(resource: &str) -> Option<String> {
    let resource = url::Url::parse(resource).ok()?;
    let path = if resource.path() == "/" { "" } else { resource.path() };
    Some(format!("{}/.well-known/oauth-protected-resource{path}", resource.origin().ascii_serialization()))
}

/// Whether this is a path where clients look for metadata.
pub(super) fn is_metadata_path(path: &str) -> bool {
    path.strip_prefix("/.well-known/oauth-protected-resource")
        .is_some_and(|rest| rest.is_empty() || rest == PATH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_names_with_its_own_port_mean_the_server() {
        let names = own_names("127.0.0.1:4711".parse().unwrap());
        assert_eq!(names, ["localhost:4711", "127.0.0.1:4711", "[::1]:4711"]);
        assert!(own_names("127.0.0.1:80".parse().unwrap()).contains(&"localhost".to_owned()));
        assert!(own_names("192.0.2.7:81".parse().unwrap()).contains(&"192.0.2.7:81".to_owned()));
        assert!(!own_names("0.0.0.0:81".parse().unwrap()).contains(&"0.0.0.0:81".to_owned()));
    }

    #[test]
    fn metadata_is_found_before_the_path_of_what_it_is_about() {
        let found = metadata_address("https://tools.example.com/mcp");
        assert_eq!(
            found.as_deref(),
            Some("https://tools.example.com/.well-known/oauth-protected-resource/mcp")
        );
        let found = metadata_address("https://tools.example.com");
        assert_eq!(found.as_deref(), Some("https://tools.example.com/.well-known/oauth-protected-resource"));
    }
}
