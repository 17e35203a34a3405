//! The proxies of the user's environment (`HTTPS_PROXY`, …): what is allowed is reached through them.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use base64::Engine as _;
use haft_tool::net::{Peer, split_port};

const MAX_RESPONSE_BYTES: usize = 16 << 10;
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);
const DEFAULT_PORT: u16 = 80;

/// An HTTP proxy of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ParentProxy {
    pub(super) host: Peer,
    pub(super) port: u16,
    /// The value of `Proxy-Authorization`.
    pub(super) authorization: Option<String>,
}

/// The proxies of the user's environment.
#[derive(Debug, Clone, Default)]
pub struct ParentProxies {
    http: Option<ParentProxy>,
    https: Option<ParentProxy>,
    /// Hosts that are reached without a proxy, as in `NO_PROXY`.
    exceptions: Vec<String>,
}

impl ParentProxies {
    /// Those of this process's environment. Proxies of other kinds than HTTP are not used.
    pub fn from_env() -> Self {
        Self::from_variables(&|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    /// Those that `var` names.
    pub(super) fn from_variables(var: &dyn Fn(&str) -> Option<String>) -> Self {
        let either = |lower: &str, upper: &str| var(lower).or_else(|| var(upper));
        let all = either("all_proxy", "ALL_PROXY");
        let proxy =
            |url: Option<String>| url.or_else(|| all.clone()).and_then(|url| ParentProxy::parse(&url));
        let exceptions = either("no_proxy", "NO_PROXY").unwrap_or_default();
        Self {
            http: proxy(either("http_proxy", "HTTP_PROXY")),
            https: proxy(either("https_proxy", "HTTPS_PROXY")),
            exceptions: exceptions.split(',').map(|name| name.trim().to_ascii_lowercase()).collect(),
        }
    }

    /// The proxy for a host; `plain` for HTTP without encryption.
    pub(super) fn proxy_for(&self, host: &Peer, plain: bool) -> Option<&ParentProxy> {
        let proxy = if plain { &self.http } else { &self.https };
        let is_local = match host {
            Peer::Address(address) => address.is_loopback(),
            name @ Peer::Name(_) => name.is_localhost(),
        };
        proxy.as_ref().filter(|_| !is_local && !self.is_exception(host))
    }

    fn is_exception(&self, host: &Peer) -> bool {
        let host = host.to_string();
        self.exceptions.iter().filter(|name| !name.is_empty()).any(|name| {
            let name = name.strip_prefix('*').unwrap_or(name).trim_start_matches('.');
            name.is_empty() || host == name || host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'))
        })
    }
}

impl ParentProxy {
    fn parse(url: &str) -> Option<Self> {
        let rest = match url.split_once("://") {
            Some(("http", rest)) => rest,
            Some(_) => return None,
            None => url,
        };
        let authority = rest.split(['/', '?', '#']).next()?;
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, authority),
        };
        let (host, port) = split_port(place.as_bytes())?;
        let encode = |user: &str| base64::engine::general_purpose::STANDARD.encode(decoded(user));
        Some(Self {
            host: Peer::parse(host).ok()?,
            port: port.unwrap_or(DEFAULT_PORT),
            authorization: user.map(|user| format!("Basic {}", encode(user))),
        })
    }

    /// Asks the proxy behind `stream` for a tunnel to `host`.
    pub(super) fn open_tunnel(&self, stream: &mut TcpStream, host: &Peer, port: u16) -> io::Result<()> {
        let authorization = self.authorization_header();
        let request = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{authorization}\r\n");
        stream.write_all(request.as_bytes())?;
        let deadline = Instant::now() + RESPONSE_TIMEOUT;
        let mut head = Vec::new();
        // One byte at a time: what follows the head belongs to the client.
        while !head.ends_with(b"\r\n\r\n") {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || head.len() >= MAX_RESPONSE_BYTES {
                return Err(io::Error::new(ErrorKind::TimedOut, "your proxy sent no response in time"));
            }
            stream.set_read_timeout(Some(left))?;
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        stream.set_read_timeout(None)?;
        let status = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let status = String::from_utf8_lossy(status);
        match status.split(' ').nth(1) {
            Some(code) if code.starts_with('2') => Ok(()),
            _ => Err(io::Error::other(format!("your proxy answered {}", status.escape_debug()))),
        }
    }

    /// The header line with its credentials, if it needs any.
    pub(super) fn authorization_header(&self) -> String {
        self.authorization
            .as_ref()
            .map(|value| format!("Proxy-Authorization: {value}\r\n"))
            .unwrap_or_default()
    }
}

/// The bytes of a text with `%` escapes.
fn decoded(text: &str) -> Vec<u8> {
    let (bytes, mut at, mut result) = (text.as_bytes(), 0, Vec::new());
    while at < bytes.len() {
        let escaped = text.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escaped.filter(|_| bytes[at] == b'%') {
            Some(byte) => (result.push(byte), at += 3).1,
            None => (result.push(bytes[at]), at += 1).1,
        }
    }
    result
}
