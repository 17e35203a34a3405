//! Finds the authorization server of a server.

use url::Url;

use super::challenge::Challenge;
use super::errors::{quote, unauthorized};
use super::fetch::{Fetch, FetchedDocument};
use super::metadata::{AuthorizationServer, ServerMetadata};
use super::scopes::Scopes;
use crate::client::{ClientError, McpError};

/// A server's authorization server, and what to request from it.
#[derive(Debug)]
pub(super) struct Discovered {
    pub(super) server: AuthorizationServer,
    /// The resource that tokens are for.
    pub(super) resource: String,
    /// The scopes that the server's metadata names.
    pub(super) scopes: Option<Scopes>,
}

/// Finds the authorization server. If `known` is among several, only that one is used, even if it is down, because the
/// stored tokens are its.
pub(super) fn discover(
    fetch: &Fetch,
    challenge: &Challenge,
    known: Option<&str>,
) -> Result<Discovered, ClientError> {
    let mut misses = Vec::new();
    let Some(metadata) = server_metadata(fetch, challenge, &mut misses)? else {
        return discover_on_host(fetch, misses);
    };
    let is_known = |issuer: &&String| Some(issuer.as_str()) == known;
    let has_known = metadata.issuers.iter().any(|issuer| is_known(&issuer));
    let mut first_error = None;
    for issuer in metadata.issuers.iter().filter(|issuer| !has_known || is_known(issuer)) {
        match authorization_server(fetch, issuer) {
            Ok(server) => {
                return Ok(Discovered { server, resource: metadata.resource, scopes: metadata.scopes });
            }
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    Err(first_error.unwrap_or_else(|| {
        let server = fetch.resource.identifier();
        unauthorized(format!("{server} requires a token but names no authorization server"))
    }))
}

/// A URL without a usable document: why, and whether that may be temporary.
type Miss = (String, bool);

/// The server's metadata, from the URL in the challenge or from a well-known one.
fn server_metadata(
    fetch: &Fetch,
    challenge: &Challenge,
    misses: &mut Vec<Miss>,
) -> Result<Option<ServerMetadata>, ClientError> {
    let mut urls = Vec::new();
    if let Some(named) = &challenge.resource_metadata {
        match fetch.resource.check_url(named) {
            Ok(url) => urls.push(url),
            // A server behind a proxy may name a wrong URL; the well-known one is tried, too.
            Err(why) => misses.push((format!("{}: {why}", quote(named)), false)),
        }
    }
    for url in well_known(fetch.resource.url(), "oauth-protected-resource") {
        if !urls.contains(&url) {
            urls.push(url);
        }
    }
    for url in urls {
        match fetch.get_document(&url)? {
            FetchedDocument::Found(document) => match ServerMetadata::read(document, &url, &fetch.resource) {
                // Some hosts answer every URL with a page.
                Err(error) if error.kind == McpError::InvalidMessage => misses.push((error.message, false)),
                read => return read.map(Some),
            },
            FetchedDocument::Missing { why, is_temporary } => misses.push((why, is_temporary)),
        }
    }
    Ok(None)
}

/// The metadata of `issuer`.
fn authorization_server(fetch: &Fetch, issuer: &str) -> Result<AuthorizationServer, ClientError> {
    let invalid =
        |why: &str| unauthorized(format!("the authorization server {} cannot be used: {why}", quote(issuer)));
    let issuer_url = fetch.resource.check_url(issuer).map_err(|why| invalid(&why))?;
    if issuer_url.query().is_some() {
        return Err(invalid("its name has a query"));
    }
    let mut misses = Vec::new();
    for url in metadata_urls(&issuer_url) {
        match fetch.get_document(&url)? {
            FetchedDocument::Found(document) => {
                match AuthorizationServer::read(document, &url, issuer, false, &fetch.resource) {
                    Err(error) if error.kind == McpError::InvalidMessage => misses.push(error.message),
                    read => return read,
                }
            }
            FetchedDocument::Missing { why, .. } => misses.push(why),
        }
    }
    Err(ClientError::unreachable(format!(
        "the authorization server {} has no metadata ({})",
        quote(issuer),
        misses.join("; ")
    )))
}

/// Version 2025-03-26: the server's own host is its authorization server.
fn discover_on_host(fetch: &Fetch, mut misses: Vec<Miss>) -> Result<Discovered, ClientError> {
    let origin = fetch.resource.origin();
    let origin_url =
        Url::parse(&origin).map_err(|error| ClientError::invalid_message(format!("{origin}: {error}")))?;
    let discovered = |server| Ok(Discovered { server, resource: fetch.resource.identifier(), scopes: None });
    for url in metadata_urls(&origin_url) {
        match fetch.get_document(&url)? {
            FetchedDocument::Found(document) => {
                match AuthorizationServer::read(document, &url, &origin, true, &fetch.resource) {
                    Err(error) if error.kind == McpError::InvalidMessage => {
                        misses.push((error.message, false));
                    }
                    read => return discovered(read?),
                }
            }
            FetchedDocument::Missing { why, is_temporary } => misses.push((why, is_temporary)),
        }
    }
    // A document that is temporarily unavailable could name another authorization server.
    if misses.iter().any(|(_, is_temporary)| *is_temporary) {
        let misses: Vec<_> = misses.into_iter().map(|(why, _)| why).collect();
        return Err(ClientError::unreachable(format!(
            "{} requires a token, and its authorization server was not found: {}",
            fetch.resource.identifier(),
            misses.join("; ")
        )));
    }
    discovered(AuthorizationServer::without_metadata(&origin)?)
}

/// The well-known URLs of a document: with the path of `url`, then without.
fn well_known(url: &Url, name: &str) -> Vec<Url> {
    let with_path = |path: &str| {
        let mut well_known = url.clone();
        well_known.set_query(None);
        well_known.set_fragment(None);
        well_known.set_path(&format!("/.well-known/{name}{path}"));
        well_known
    };
    let mut urls = vec![with_path(url.path().trim_end_matches('/')), with_path("")];
    urls.dedup();
    urls
}

/// The URLs of an issuer's metadata, in the order of the specification.
fn metadata_urls(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let with_path = |path: String| {
        let mut url = issuer.clone();
        url.set_path(&path);
        url
    };
    let mut urls = vec![
        with_path(format!("/.well-known/oauth-authorization-server{path}")),
        with_path(format!("/.well-known/openid-configuration{path}")),
        with_path(format!("{path}/.well-known/openid-configuration")),
    ];
    urls.dedup();
    urls
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(urls: &[Url]) -> Vec<&str> {
        urls.iter().map(Url::as_str).collect()
    }

    #[test]
    fn server_metadata_is_looked_for_with_and_without_the_path() {
        let at = |url: &str| well_known(&Url::parse(url).unwrap(), "oauth-protected-resource");
        assert_eq!(
            texts(&at("https://h.example/public/mcp?x=1")),
            [
                "https://h.example/.well-known/oauth-protected-resource/public/mcp",
                "https://h.example/.well-known/oauth-protected-resource",
            ]
        );
        assert_eq!(
            texts(&at("https://h.example/")),
            ["https://h.example/.well-known/oauth-protected-resource"]
        );
    }

    #[test]
    fn issuer_metadata_is_looked_for_in_the_order_of_the_specification() {
        let at = |url: &str| metadata_urls(&Url::parse(url).unwrap());
        assert_eq!(
            texts(&at("https://a.example/tenant1")),
            [
                "https://a.example/.well-known/oauth-authorization-server/tenant1",
                "https://a.example/.well-known/openid-configuration/tenant1",
                "https://a.example/tenant1/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            texts(&at("https://a.example")),
            [
                "https://a.example/.well-known/oauth-authorization-server",
                "https://a.example/.well-known/openid-configuration",
            ]
        );
    }
}
