//! From a server to the one who gives out its tokens.

use url::Url;

use super::challenge::Challenge;
use super::fetch::{Fetch, Look};
use super::metadata::{AuthorizationServer, ResourceMetadata};
use super::scopes::Scopes;
use super::words::{refused, said};
use crate::client::{ClientError, McpError};

/// Who gives out a server's tokens, and what to ask for.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) server: AuthorizationServer,
    /// What the token is for.
    pub(super) resource: String,
    /// What the server says that tokens are usually asked for.
    pub(super) scopes: Option<Scopes>,
}

/// Finds out who gives out the tokens. If `known` is among them it is that one, also if it is down at the moment: what it
/// gave out is not to be lost over that.
pub(super) fn discover(
    fetch: &Fetch,
    challenge: &Challenge,
    known: Option<&str>,
) -> Result<Found, ClientError> {
    let mut missed = Vec::new();
    let Some(resource) = resource_metadata(fetch, challenge, &mut missed)? else {
        return older(fetch, missed);
    };
    let is_known = |issuer: &&String| Some(issuer.as_str()) == known;
    let still = resource.issuers.iter().any(|issuer| is_known(&issuer));
    let mut failed = None;
    for issuer in resource.issuers.iter().filter(|issuer| !still || is_known(issuer)) {
        match authorization_server(fetch, issuer) {
            Ok(server) => return Ok(Found { server, resource: resource.resource, scopes: resource.scopes }),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    Err(failed.unwrap_or_else(|| {
        refused(format!("{} wants a token and names nobody who gives them out", fetch.home.resource()))
    }))
}

/// The server's own words, from where it says or from where they usually are.
fn resource_metadata(
    fetch: &Fetch,
    challenge: &Challenge,
    missed: &mut Vec<(String, bool)>,
) -> Result<Option<ResourceMetadata>, ClientError> {
    let mut places = Vec::new();
    if let Some(named) = &challenge.resource_metadata {
        match fetch.home.admits(named) {
            Ok(url) => places.push(url),
            // A server behind a proxy often has a wrong idea of its own address; where it usually is may still do.
            Err(why) => missed.push((format!("{}: {why}", said(named)), false)),
        }
    }
    for place in well_known(fetch.home.url(), "oauth-protected-resource") {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    for place in places {
        match fetch.look(&place)? {
            Look::Document(document) => match ResourceMetadata::read(document, &place, &fetch.home) {
                // Some hosts have an answer for every address.
                Err(error) if error.kind == McpError::InvalidMessage => missed.push((error.message, false)),
                read => return read.map(Some),
            },
            Look::Nothing { why, broken } => missed.push((why, broken)),
        }
    }
    Ok(None)
}

/// What the one that is called `issuer` says of itself.
fn authorization_server(fetch: &Fetch, issuer: &str) -> Result<AuthorizationServer, ClientError> {
    let cannot =
        |why: &str| refused(format!("the authorization server {} cannot be asked: {why}", said(issuer)));
    let url = fetch.home.admits(issuer).map_err(|why| cannot(&why))?;
    if url.query().is_some() {
        return Err(cannot("its name has a query"));
    }
    let mut missed = Vec::new();
    for place in metadata_places(&url) {
        match fetch.look(&place)? {
            Look::Document(document) => {
                match AuthorizationServer::read(document, &place, issuer, false, &fetch.home) {
                    Err(error) if error.kind == McpError::InvalidMessage => missed.push(error.message),
                    read => return read,
                }
            }
            Look::Nothing { why, .. } => missed.push(why),
        }
    }
    Err(ClientError::unreachable(format!(
        "the authorization server {} does not describe itself ({})",
        said(issuer),
        missed.join("; ")
    )))
}

/// The way of 2025-03-26: the server's own host gives out its tokens.
fn older(fetch: &Fetch, mut missed: Vec<(String, bool)>) -> Result<Found, ClientError> {
    let origin = fetch.home.origin();
    let place =
        Url::parse(&origin).map_err(|error| ClientError::invalid_message(format!("{origin}: {error}")))?;
    let found = |server| Ok(Found { server, resource: fetch.home.resource(), scopes: None });
    for place in metadata_places(&place) {
        match fetch.look(&place)? {
            Look::Document(document) => {
                match AuthorizationServer::read(document, &place, &origin, true, &fetch.home) {
                    Err(error) if error.kind == McpError::InvalidMessage => {
                        missed.push((error.message, false));
                    }
                    read => return found(read?),
                }
            }
            Look::Nothing { why, broken } => missed.push((why, broken)),
        }
    }
    // What is broken now may be there later, and would then say otherwise.
    if missed.iter().any(|(_, broken)| *broken) {
        let missed: Vec<_> = missed.into_iter().map(|(why, _)| why).collect();
        return Err(ClientError::unreachable(format!(
            "{} wants a token, and who gives them out could not be found: {}",
            fetch.home.resource(),
            missed.join("; ")
        )));
    }
    found(AuthorizationServer::silent(&origin)?)
}

/// Where the document of that name is: for the path, then for the whole host.
fn well_known(url: &Url, name: &str) -> Vec<Url> {
    let at = |path: &str| {
        let mut place = url.clone();
        place.set_query(None);
        place.set_fragment(None);
        place.set_path(&format!("/.well-known/{name}{path}"));
        place
    };
    let path = url.path().trim_end_matches('/');
    let mut places = vec![at(path), at("")];
    places.dedup();
    places
}

/// Where an authorization server describes itself, in the order to look.
fn metadata_places(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let at = |path: String| {
        let mut place = issuer.clone();
        place.set_path(&path);
        place
    };
    let mut places = vec![
        at(format!("/.well-known/oauth-authorization-server{path}")),
        at(format!("/.well-known/openid-configuration{path}")),
        at(format!("{path}/.well-known/openid-configuration")),
    ];
    places.dedup();
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(places: &[Url]) -> Vec<&str> {
        places.iter().map(Url::as_str).collect()
    }

    #[test]
    fn a_server_is_described_for_its_path_and_for_its_host() {
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
    fn an_authorization_server_is_looked_for_in_the_order_of_the_specification() {
        let at = |url: &str| metadata_places(&Url::parse(url).unwrap());
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
