//! The proxies that the environment names.

use haft_tool::ToolError;
use haft_tool::net::Peer;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use reqwest::Proxy;

use super::address::Address;

/// A proxy for one request.
pub(super) struct Via {
    pub(super) proxy: Proxy,
    /// Its host and port, to look up and to name in errors.
    pub(super) host: String,
    pub(super) port: u16,
}

/// The proxy that `address` is to be reached through.
pub(super) fn via(proxies: &Matcher, address: &Address) -> Result<Option<Via>, ToolError> {
    // No proxy is on the way to this machine.
    let own = match &address.peer {
        Peer::Address(own) => own.is_loopback(),
        peer @ Peer::Name(_) => peer.is_localhost(),
    };
    let found =
        if own { None } else { address.url.as_str().parse().ok().and_then(|uri| proxies.intercept(&uri)) };
    found.map(|found| read(&found)).transpose()
}

fn read(found: &Intercept) -> Result<Via, ToolError> {
    let uri = found.uri();
    let wrong = |why: &str| {
        ToolError::failed(format!(
            "the proxy {uri} cannot be used: {why}; look at HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY"
        ))
    };
    let host = uri.host().ok_or_else(|| wrong("it names no host"))?.trim_matches(['[', ']']).to_owned();
    let scheme = match uri.scheme_str() {
        // Names are the proxy's to look up: whoever needs one often cannot look them up here.
        Some("socks5" | "socks5h") => "socks5h",
        Some("socks4" | "socks4a") => "socks4a",
        Some("https") => "https",
        _ => "http",
    };
    let port = uri.port_u16().unwrap_or(match scheme {
        "http" => 80,
        "https" => 443,
        _ => 1080,
    });
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let mut proxy =
        Proxy::all(format!("{scheme}://{authority}")).map_err(|error| wrong(&error.to_string()))?;
    if let Some(header) = found.basic_auth() {
        proxy = proxy.custom_http_auth(header.clone());
    } else if let Some((user, password)) = found.raw_auth() {
        proxy = proxy.basic_auth(user, password);
    }
    Ok(Via { proxy, host, port })
}
