//! Reading the address of a request.

use haft_tool::ToolError;
use haft_tool::net::{Authority, Peer};
use url::Url;

/// Longer than any address that servers take.
const LONGEST: usize = 16 * 1024;

/// Where one request goes.
#[derive(Debug, Clone)]
pub(super) struct Address {
    /// What is asked for; its host is spelled as it was judged.
    pub(super) url: Url,
    pub(super) peer: Peer,
    pub(super) port: u16,
}

impl Address {
    pub(super) fn read(text: &str) -> Result<Self, ToolError> {
        if text.len() > LONGEST {
            return Err(ToolError::invalid_arguments(format!(
                "the address has {} bytes; at most {LONGEST} can be sent",
                text.len()
            )));
        }
        let url = Url::parse(text.trim()).map_err(|error| wrong(text, &error.to_string()))?;
        Self::of(url).map_err(|why| wrong(text, &why))
    }

    /// Where a redirect leads.
    pub(super) fn join(&self, location: &str) -> Result<Self, ToolError> {
        let url = self.url.join(location).map_err(|error| wrong(location, &error.to_string()))?;
        Self::of(url).map_err(|why| wrong(location, &why))
    }

    fn of(mut url: Url) -> Result<Self, String> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("only http and https are spoken here, not {}", url.scheme()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(
                "what stands before its @ is not the host; leave it out and send credentials as a header"
                    .to_owned(),
            );
        }
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return Err("it names no host".to_owned());
        };
        let peer =
            Peer::parse(host.as_bytes()).map_err(|why| format!("its host cannot be reached: {why}"))?;
        url.set_host(Some(&peer.to_string())).map_err(|error| error.to_string())?;
        Ok(Self { url, peer, port })
    }

    /// The host, with its port where that is not one of the web's.
    pub(super) fn place(&self) -> Authority {
        Authority::new(self.peer.clone(), self.port)
    }

    /// Whether a redirect to `other` leads nowhere else, a `www.` apart.
    pub(super) fn same_host(&self, other: &Self) -> bool {
        let bare = |peer: &Peer| {
            let name = peer.to_string();
            name.strip_prefix("www.").map(str::to_owned).unwrap_or(name)
        };
        let web = |port: u16| matches!(port, 80 | 443);
        bare(&self.peer) == bare(&other.peer)
            && (self.port == other.port || web(self.port) && web(other.port))
    }

    /// Whether what was meant for this one may be told to `other`.
    pub(super) fn trusts(&self, other: &Self) -> bool {
        let not_in_the_clear = self.url.scheme() == "http" || other.url.scheme() == "https";
        self.peer == other.peer && self.same_host(other) && not_in_the_clear
    }
}

fn wrong(text: &str, why: &str) -> ToolError {
    let text = haft_tool::clip_chars(text, 200, 0).escape_debug().to_string();
    ToolError::invalid_arguments(format!("`{text}` is no address that can be fetched: {why}"))
}
