//! The environment variables that make programs use a proxy.

use std::net::SocketAddr;

/// Hosts that programs reach without the proxy.
const NO_PROXY: &str = "localhost,127.0.0.1,::1";
/// `ALL_PROXY` names an HTTP proxy too: some Python clients fail at the start if it names a SOCKS proxy.
const PROXY_VARIABLES: [&str; 12] = [
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "FTP_PROXY",
    "ftp_proxy",
    "npm_config_proxy",
    "npm_config_https_proxy",
    "CARGO_HTTP_PROXY",
    "PIP_PROXY",
];
/// Makes package managers report a refusal at once instead of repeating the request, and wait while the user is asked.
const REFUSAL_VARIABLES: [(&str, &str); 7] = [
    ("npm_config_fetch_retries", "0"),
    ("PIP_RETRIES", "0"),
    ("PIP_DEFAULT_TIMEOUT", "120"),
    ("CARGO_NET_RETRY", "0"),
    ("CARGO_HTTP_TIMEOUT", "120"),
    ("UV_HTTP_RETRIES", "0"),
    ("UV_HTTP_TIMEOUT", "120"),
];

/// The variables that make programs use the proxy at `address`.
pub fn proxy_variables(address: SocketAddr) -> Vec<(&'static str, String)> {
    let url = format!("http://{address}");
    let proxy = PROXY_VARIABLES.map(|name| (name, url.clone()));
    // Node's own fetch reads the others only if NODE_USE_ENV_PROXY is set.
    let more = [("NO_PROXY", NO_PROXY), ("no_proxy", NO_PROXY), ("NODE_USE_ENV_PROXY", "1")];
    proxy.into_iter().chain(more.map(|(name, value)| (name, value.to_owned()))).collect()
}

/// Variables for commands whose proxy refuses everything that the user does not allow; the user's own values take precedence.
pub fn refusal_variables() -> &'static [(&'static str, &'static str)] {
    &REFUSAL_VARIABLES
}
