//! The server that tokens are for, and the URLs that it may send Haft and the browser to.

use haft_tool::Reach;
use haft_tool::net::{Authority, Domains, Peer};
use url::Url;

use super::errors::{quote, unauthorized};
use crate::client::ClientError;

const MAX_URL_BYTES: usize = 4096;

/// A server that requires tokens.
#[derive(Debug, Clone)]
pub(super) struct ProtectedResource {
    url: Url,
    authority: Authority,
    /// Additional hosts of the user.
    hosts: Vec<String>,
}

impl ProtectedResource {
    pub(super) fn new(server: &str, hosts: Vec<String>) -> Result<Self, ClientError> {
        let invalid =
            |why: &str| unauthorized(format!("tokens for {} are not supported: {why}", quote(server)));
        let mut url = parse_url(server).map_err(|why| invalid(&why))?;
        url.set_fragment(None);
        let authority = authority(&url).map_err(|why| invalid(&why))?;
        Domains::parse(&hosts).map_err(|error| unauthorized(error.message))?;
        Ok(Self { url, authority, hosts })
    }

    /// Whether a token would be sent unencrypted over the network.
    pub(super) fn is_unencrypted(&self) -> bool {
        self.url.scheme() == "http" && !is_loopback(&self.authority)
    }

    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// The resource identifier, which is also the key of the stored tokens.
    pub(super) fn identifier(&self) -> String {
        let text = self.url.as_str();
        let is_root = self.url.path() == "/" && self.url.query().is_none();
        if is_root { text.trim_end_matches('/').to_owned() } else { text.to_owned() }
    }

    pub(super) fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// Checks a URL that a server names: `https`, and not on this machine or its network, unless the server is there, too.
    pub(super) fn check_url(&self, text: &str) -> Result<Url, String> {
        let url = parse_url(text)?;
        if url.fragment().is_some() {
            return Err("it has a fragment".to_owned());
        }
        let target = authority(&url)?;
        let are_both_local = is_loopback(&target) && is_loopback(&self.authority);
        if url.scheme() == "http" && !are_both_local {
            return Err("only https is allowed, except for servers on this machine".to_owned());
        }
        if let Some(what) = haft_policy::not_public_host(&target)
            && !are_both_local
            && target != self.authority
            && !self.is_users_host(&target)
        {
            return Err(format!("it is {what}, unlike the server itself"));
        }
        Ok(url)
    }

    /// What a request to `url` may reach: public hosts, the user's hosts, and this machine if the server is on it.
    pub(super) fn reach(&self, url: &Url) -> Reach {
        let mut hosts = self.authority.entries();
        hosts.extend(self.hosts.iter().cloned());
        if let Ok(target) = authority(url)
            && is_loopback(&target)
            && is_loopback(&self.authority)
        {
            hosts.extend(target.entries());
        }
        Reach { inner: hosts.clone(), hosts, public: true, never: Vec::new() }
    }

    /// Whether a token for `resource` is valid for this server: the same origin, and the same path or a parent of it.
    pub(super) fn is_covered_by(&self, resource: &str) -> bool {
        let Ok(resource) = parse_url(resource) else { return false };
        let (parent, path) = (resource.path().trim_end_matches('/'), self.url.path());
        let is_within =
            path.strip_prefix(parent).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let has_same_query = resource.query().is_none() || resource.query() == self.url.query();
        same_origin(&resource, &self.url) && resource.fragment().is_none() && has_same_query && is_within
    }

    fn is_users_host(&self, target: &Authority) -> bool {
        Domains::parse(&self.hosts).is_ok_and(|hosts| target.is_in(&hosts))
    }
}

/// Whether two URLs have the same origin.
pub(super) fn same_origin(one: &Url, other: &Url) -> bool {
    one.origin().is_tuple() && one.origin() == other.origin()
}

fn parse_url(text: &str) -> Result<Url, String> {
    if text.len() > MAX_URL_BYTES {
        return Err(format!("it is longer than {MAX_URL_BYTES} bytes"));
    }
    // URL parsers remove some of these silently.
    if text.chars().any(|char| char.is_control() || char.is_whitespace()) {
        return Err("it contains spaces or control characters".to_owned());
    }
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("the scheme {} is not supported", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it contains credentials".to_owned());
    }
    Ok(url)
}

fn authority(url: &Url) -> Result<Authority, String> {
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return Err("it has no host".to_owned());
    };
    let peer = Peer::parse(host.as_bytes()).map_err(|why| format!("its host is invalid: {why}"))?;
    Ok(Authority::new(peer, port))
}

fn is_loopback(target: &Authority) -> bool {
    match &target.peer {
        Peer::Address(address) => address.is_loopback(),
        peer @ Peer::Name(_) => peer.is_localhost(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(server: &str) -> ProtectedResource {
        ProtectedResource::new(server, Vec::new()).unwrap()
    }

    #[test]
    fn token_is_sent_with_tls_or_on_loopback() {
        for (server, unencrypted) in [
            ("https://mcp.example.com/mcp", false),
            ("http://localhost:3000/mcp", false),
            ("http://127.0.0.1/", false),
            ("http://[::1]:8/x", false),
            ("http://mcp.example.com", true),
            ("http://10.0.0.5/mcp", true),
            ("http://127.0.0.1.example.com/mcp", true),
        ] {
            assert_eq!(resource(server).is_unencrypted(), unencrypted, "{server}");
        }
        for server in ["ftp://x", "https://u:p@x.example", "https://", "mcp"] {
            assert!(ProtectedResource::new(server, Vec::new()).is_err(), "{server}");
        }
        assert!(ProtectedResource::new("https://x.example", vec!["not a host".to_owned()]).is_err());
    }

    #[test]
    fn identifier_is_normalized() {
        for (server, identifier) in [
            ("HTTPS://MCP.Example.com", "https://mcp.example.com"),
            ("https://mcp.example.com:443/", "https://mcp.example.com"),
            ("https://mcp.example.com/mcp#part", "https://mcp.example.com/mcp"),
            ("https://mcp.example.com/mcp/", "https://mcp.example.com/mcp/"),
            ("https://mcp.example.com/?a=1", "https://mcp.example.com/?a=1"),
        ] {
            assert_eq!(resource(server).identifier(), identifier);
        }
    }

    #[test]
    fn url_of_a_server_must_be_public_https() {
        let server = resource("https://mcp.example.com/mcp");
        assert!(server.check_url("https://auth.example.org/authorize?a=1").is_ok());
        for bad in [
            "javascript:alert(1)",
            "java\nscript:alert(1)",
            " javascript:alert(1)",
            "file:///etc/passwd",
            "data:text/html,x",
            "vbscript:x",
            "ssh://x",
            "http://auth.example.org/",
            "http://127.0.0.1:6379/",
            "http://localhost/",
            "https://localhost/",
            "https://127.1/",
            "https://0x7f000001/",
            "https://[::ffff:127.0.0.1]/",
            "https://169.254.169.254/latest",
            "https://10.0.0.1/",
            "https://192.168.1.1/admin",
            "https://user@auth.example.org/",
            "https://auth.example.org/#x",
            "https://auth.example.org/\u{202e}x y",
            "//auth.example.org",
            "-h",
            "",
        ] {
            assert!(server.check_url(bad).is_err(), "{bad:?}");
        }
        assert!(server.check_url(&format!("https://auth.example.org/{}", "x".repeat(5000))).is_err());
    }

    #[test]
    fn private_host_is_allowed_for_itself_and_when_the_user_names_it() {
        assert!(resource("http://localhost:3000/mcp").check_url("http://127.0.0.1:4000/token").is_ok());
        assert!(resource("http://localhost:3000/mcp").check_url("http://10.0.0.1/token").is_err());
        assert!(resource("https://10.0.0.5/mcp").check_url("https://10.0.0.5/token").is_ok());
        assert!(resource("https://10.0.0.5/mcp").check_url("https://10.0.0.6/token").is_err());
        let named = ProtectedResource::new("https://10.0.0.5/mcp", vec!["10.0.0.6".to_owned()]).unwrap();
        assert!(named.check_url("https://10.0.0.6/token").is_ok());
        let reach = named.reach(&Url::parse("https://auth.example.org").unwrap());
        assert_eq!((reach.inner, reach.public), (vec!["10.0.0.5".to_owned(), "10.0.0.6".to_owned()], true));
    }

    #[test]
    fn only_a_local_server_reaches_other_local_ports() {
        let other = Url::parse("http://localhost:4000/token").unwrap();
        let from = |server: &str| resource(server).reach(&other).hosts;
        assert!(from("http://localhost:3000/mcp").contains(&"127.0.0.1:4000".to_owned()));
        assert_eq!(from("https://mcp.example.com/mcp"), ["mcp.example.com"]);
    }

    #[test]
    fn token_is_for_the_server_or_a_parent_path() {
        let server = resource("https://mcp.example.com/public/mcp");
        for good in [
            "https://mcp.example.com/public/mcp",
            "https://MCP.example.com:443/public",
            "https://mcp.example.com/",
            "https://mcp.example.com",
        ] {
            assert!(server.is_covered_by(good), "{good}");
        }
        for bad in [
            "https://evil.example.com/public/mcp",
            "http://mcp.example.com/public/mcp",
            "https://mcp.example.com:8443/public/mcp",
            "https://mcp.example.com/pub",
            "https://mcp.example.com/public/mcp/more",
            "https://mcp.example.com/public/mcp#x",
            "https://mcp.example.com/public/mcp?tenant=other",
            "https://mcp.example.com@evil.example/public/mcp",
            "mcp.example.com",
            "",
        ] {
            assert!(!server.is_covered_by(bad), "{bad}");
        }
    }
}
