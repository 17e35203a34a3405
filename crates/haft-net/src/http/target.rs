//! The parsed URL of a request.

use haft_tool::ToolError;
use haft_tool::net::{Authority, Peer};
use url::Url;

const MAX_URL_BYTES: usize = 16 << 10;
const MAX_SHOWN_CHARS: usize = 200;
const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

/// Where one request goes.
#[derive(Debug, Clone)]
pub(super) struct HttpTarget {
    /// The URL; its host is spelled as it was checked.
    pub(super) url: Url,
    pub(super) peer: Peer,
    pub(super) port: u16,
}

impl HttpTarget {
    pub(super) fn parse(text: &str) -> Result<Self, ToolError> {
        if text.len() > MAX_URL_BYTES {
            return Err(ToolError::invalid_arguments(format!(
                "the URL has {} bytes; the limit is {MAX_URL_BYTES}",
                text.len()
            )));
        }
        let url = Url::parse(text.trim()).map_err(|error| invalid(text, &error.to_string()))?;
        Self::new(url).map_err(|why| invalid(text, &why))
    }

    /// The target of a redirect.
    pub(super) fn join(&self, location: &str) -> Result<Self, ToolError> {
        let url = self.url.join(location).map_err(|error| invalid(location, &error.to_string()))?;
        Self::new(url).map_err(|why| invalid(location, &why))
    }

    fn new(mut url: Url) -> Result<Self, String> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("only http and https are supported, not {}", url.scheme()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("it has a user name or password; send credentials as a header".to_owned());
        }
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return Err("it has no host".to_owned());
        };
        let peer = Peer::parse(host.as_bytes()).map_err(|why| format!("its host is invalid: {why}"))?;
        url.set_host(Some(&peer.to_string())).map_err(|error| error.to_string())?;
        Ok(Self { url, peer, port })
    }

    /// The host, with the port unless that is 80 or 443.
    pub(super) fn authority(&self) -> Authority {
        Authority::new(self.peer.clone(), self.port)
    }

    /// Whether `other` has the same host, apart from a leading `www.`.
    pub(super) fn is_same_host(&self, other: &Self) -> bool {
        let bare = |peer: &Peer| {
            let name = peer.to_string();
            name.strip_prefix("www.").map(str::to_owned).unwrap_or(name)
        };
        let is_web = |port: u16| matches!(port, HTTP_PORT | HTTPS_PORT);
        bare(&self.peer) == bare(&other.peer)
            && (self.port == other.port || is_web(self.port) && is_web(other.port))
    }

    /// Whether headers that may contain credentials for this target may be sent to `other`.
    pub(super) fn may_share_headers_with(&self, other: &Self) -> bool {
        let stays_encrypted = self.url.scheme() == "http" || other.url.scheme() == "https";
        self.peer == other.peer && self.is_same_host(other) && stays_encrypted
    }
}

fn invalid(text: &str, why: &str) -> ToolError {
    let text = haft_tool::clip_chars(text, MAX_SHOWN_CHARS, 0).escape_debug().to_string();
    ToolError::invalid_arguments(format!("`{text}` cannot be fetched: {why}"))
}
