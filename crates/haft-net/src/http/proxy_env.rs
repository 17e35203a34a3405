//! The proxies of the environment (`HTTP_PROXY`, …).

use haft_tool::ToolError;
use haft_tool::net::Peer;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use reqwest::Proxy;

use super::target::HttpTarget;

/// The variables that configure proxies, for error messages.
pub(super) const PROXY_VARIABLES: &str = "HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY";

/// A proxy for one request.
pub(super) struct EnvProxy {
    pub(super) proxy: Proxy,
    pub(super) host: String,
    pub(super) port: u16,
}

/// The proxy for a target. Targets on this machine have none.
pub(super) fn proxy_for(proxies: &Matcher, target: &HttpTarget) -> Result<Option<EnvProxy>, ToolError> {
    let is_local = match &target.peer {
        Peer::Address(address) => address.is_loopback(),
        peer @ Peer::Name(_) => peer.is_localhost(),
    };
    if is_local {
        return Ok(None);
    }
    let found = target.url.as_str().parse().ok().and_then(|uri| proxies.intercept(&uri));
    found.map(|found| parse(&found)).transpose()
}

fn parse(found: &Intercept) -> Result<EnvProxy, ToolError> {
    let uri = found.uri();
    let invalid = |why: &str| {
        ToolError::failed(format!("the proxy {uri} cannot be used: {why}; check {PROXY_VARIABLES}"))
    };
    let host = uri.host().ok_or_else(|| invalid("it has no host"))?.trim_matches(['[', ']']).to_owned();
    // With the schemes ending in h and a, the proxy resolves names: machines behind a proxy often cannot.
    let (scheme, default_port) = match uri.scheme_str() {
        Some("socks5" | "socks5h") => ("socks5h", 1080),
        Some("socks4" | "socks4a") => ("socks4a", 1080),
        Some("https") => ("https", 443),
        _ => ("http", 80),
    };
    let port = uri.port_u16().unwrap_or(default_port);
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let mut proxy =
        Proxy::all(format!("{scheme}://{authority}")).map_err(|error| invalid(&error.to_string()))?;
    if let Some(header) = found.basic_auth() {
        proxy = proxy.custom_http_auth(header.clone());
    } else if let Some((user, password)) = found.raw_auth() {
        proxy = proxy.basic_auth(user, password);
    }
    Ok(EnvProxy { proxy, host, port })
}
