//! The server that tokens are for, and where its word may send Haft and the browser.

use haft_tool::Reach;
use haft_tool::net::{Authority, Domains, Peer};
use url::Url;

use super::words::{refused, said};
use crate::client::ClientError;

/// Longer than any address that is needed here.
const LONGEST: usize = 4096;

/// A server as the user names it.
#[derive(Debug, Clone)]
pub(super) struct Home {
    url: Url,
    authority: Authority,
    /// Hosts that the user counts among his own, as entries of a list.
    hosts: Vec<String>,
}

impl Home {
    pub(super) fn new(server: &str, hosts: Vec<String>) -> Result<Self, ClientError> {
        let wrong = |why: &str| refused(format!("{} cannot be a server with tokens: {why}", said(server)));
        let mut url = read(server).map_err(|why| wrong(&why))?;
        url.set_fragment(None);
        let authority = authority(&url).map_err(|why| wrong(&why))?;
        Domains::parse(&hosts).map_err(|error| refused(error.message))?;
        Ok(Self { url, authority, hosts })
    }

    /// Whether a token could be read by others on its way there.
    pub(super) fn is_in_the_clear(&self) -> bool {
        self.url.scheme() == "http" && !is_this_machine(&self.authority)
    }

    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// Its name as a resource, which is also what its tokens are kept under.
    pub(super) fn resource(&self) -> String {
        let text = self.url.as_str();
        let bare = self.url.path() == "/" && self.url.query().is_none();
        if bare { text.trim_end_matches('/').to_owned() } else { text.to_owned() }
    }

    /// The root of its host.
    pub(super) fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// An address that a stranger names, if Haft and the browser may be sent there: with TLS, and to no place that only
    /// this machine or its network can reach, unless the server is such a place itself.
    pub(super) fn admits(&self, text: &str) -> Result<Url, String> {
        let url = read(text)?;
        if url.fragment().is_some() {
            return Err("it has a fragment".to_owned());
        }
        let place = authority(&url)?;
        let both_here = is_this_machine(&place) && is_this_machine(&self.authority);
        if url.scheme() == "http" && !both_here {
            return Err("only https will do, but for servers on this machine".to_owned());
        }
        if let Some(what) = haft_policy::not_public_host(&place)
            && !both_here
            && place != self.authority
            && !self.is_own(&place)
        {
            return Err(format!("it is {what}, and the server itself is elsewhere"));
        }
        Ok(url)
    }

    /// What may be reached to ask at `url`: every public host; the user's own ones; this machine if the server is there.
    pub(super) fn reach(&self, url: &Url) -> Reach {
        let mut hosts = self.authority.entries();
        hosts.extend(self.hosts.iter().cloned());
        if let Ok(place) = authority(url)
            && is_this_machine(&place)
            && is_this_machine(&self.authority)
        {
            hosts.extend(place.entries());
        }
        Reach { inner: hosts.clone(), hosts, public: true, never: Vec::new() }
    }

    /// Whether a token for `resource` is one for this server: the same host, and the same path or one above it.
    pub(super) fn is_covered_by(&self, resource: &str) -> bool {
        let Ok(resource) = read(resource) else { return false };
        let (above, below) = (resource.path().trim_end_matches('/'), self.url.path());
        let within = below.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let same_query = resource.query().is_none() || resource.query() == self.url.query();
        same_origin(&resource, &self.url) && resource.fragment().is_none() && same_query && within
    }

    fn is_own(&self, place: &Authority) -> bool {
        Domains::parse(&self.hosts).is_ok_and(|hosts| place.is_in(&hosts))
    }
}

/// Whether two addresses have one origin, so that what one of them is told is no secret from the other.
pub(super) fn same_origin(one: &Url, other: &Url) -> bool {
    one.origin().is_tuple() && one.origin() == other.origin()
}

fn read(text: &str) -> Result<Url, String> {
    if text.len() > LONGEST {
        return Err(format!("it has more than {LONGEST} bytes"));
    }
    // Parsers drop some of these without a word.
    if text.chars().any(|char| char.is_control() || char.is_whitespace()) {
        return Err("it has blanks or control characters".to_owned());
    }
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("only https is spoken here, not {}", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it has credentials in it".to_owned());
    }
    Ok(url)
}

fn authority(url: &Url) -> Result<Authority, String> {
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return Err("it names no host".to_owned());
    };
    let peer = Peer::parse(host.as_bytes()).map_err(|why| format!("its host cannot be reached: {why}"))?;
    Ok(Authority::new(peer, port))
}

fn is_this_machine(place: &Authority) -> bool {
    match &place.peer {
        Peer::Address(address) => address.is_loopback(),
        peer @ Peer::Name(_) => peer.is_localhost(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(server: &str) -> Home {
        Home::new(server, Vec::new()).unwrap()
    }

    #[test]
    fn a_token_is_sent_with_tls_or_on_this_machine() {
        for (server, clear) in [
            ("https://mcp.example.com/mcp", false),
            ("http://localhost:3000/mcp", false),
            ("http://127.0.0.1/", false),
            ("http://[::1]:8/x", false),
            ("http://mcp.example.com", true),
            ("http://10.0.0.5/mcp", true),
            ("http://127.0.0.1.example.com/mcp", true),
        ] {
            assert_eq!(home(server).is_in_the_clear(), clear, "{server}");
        }
        for server in ["ftp://x", "https://u:p@x.example", "https://", "mcp"] {
            assert!(Home::new(server, Vec::new()).is_err(), "{server}");
        }
        assert!(Home::new("https://x.example", vec!["not a host".to_owned()]).is_err());
    }

    #[test]
    fn a_resource_has_one_spelling() {
        for (server, resource) in [
            ("HTTPS://MCP.Example.com", "https://mcp.example.com"),
            ("https://mcp.example.com:443/", "https://mcp.example.com"),
            ("https://mcp.example.com/mcp#part", "https://mcp.example.com/mcp"),
            ("https://mcp.example.com/mcp/", "https://mcp.example.com/mcp/"),
            ("https://mcp.example.com/?a=1", "https://mcp.example.com/?a=1"),
        ] {
            assert_eq!(home(server).resource(), resource);
        }
    }

    #[test]
    fn a_strangers_address_leads_to_no_inner_place_and_runs_nothing() {
        let server = home("https://mcp.example.com/mcp");
        assert!(server.admits("https://auth.example.org/authorize?a=1").is_ok());
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
            assert!(server.admits(bad).is_err(), "{bad:?}");
        }
        assert!(server.admits(&format!("https://auth.example.org/{}", "x".repeat(5000))).is_err());
    }

    #[test]
    fn an_inner_place_is_reached_from_itself_and_when_the_user_names_it() {
        assert!(home("http://localhost:3000/mcp").admits("http://127.0.0.1:4000/token").is_ok());
        assert!(home("http://localhost:3000/mcp").admits("http://10.0.0.1/token").is_err());
        assert!(home("https://10.0.0.5/mcp").admits("https://10.0.0.5/token").is_ok());
        assert!(home("https://10.0.0.5/mcp").admits("https://10.0.0.6/token").is_err());
        let named = Home::new("https://10.0.0.5/mcp", vec!["10.0.0.6".to_owned()]).unwrap();
        assert!(named.admits("https://10.0.0.6/token").is_ok());
        let reach = named.reach(&Url::parse("https://auth.example.org").unwrap());
        assert_eq!((reach.inner, reach.public), (vec!["10.0.0.5".to_owned(), "10.0.0.6".to_owned()], true));
    }

    #[test]
    fn only_a_server_on_this_machine_reaches_others_there() {
        let other = Url::parse("http://localhost:4000/token").unwrap();
        let from = |server: &str| home(server).reach(&other).hosts;
        assert!(from("http://localhost:3000/mcp").contains(&"127.0.0.1:4000".to_owned()));
        assert_eq!(from("https://mcp.example.com/mcp"), ["mcp.example.com"]);
    }

    #[test]
    fn a_token_is_for_the_server_or_for_what_is_above_it() {
        let server = home("https://mcp.example.com/public/mcp");
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
