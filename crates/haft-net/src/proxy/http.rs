//! HTTP requests to the proxy: CONNECT, and plain requests with an absolute URL.

use haft_tool::net::{Peer, split_port};

use super::connection::{ClientConnection, RequestHead};
use super::parent::ParentProxy;
use super::server::ProxySlot;
use super::tunnel::BodyLength;
use super::upstream::{Upstream, UpstreamError};
use super::wake::WaitEnd;

const MAX_HEAD_BYTES: usize = 64 << 10;
const HTTP_PORT: u16 = 80;

/// Headers that apply to one connection only, and `Host`, which is set from the checked host.
const DROPPED_HEADERS: [&[u8]; 6] = [b"connection", b"keep-alive", b"te", b"trailer", b"upgrade", b"host"];
const PROXY_HEADER_PREFIX: &[u8] = b"proxy-";

/// Serves one request.
pub(super) fn serve(mut client: ClientConnection, upstream: &Upstream, slot: &ProxySlot) {
    let head = match client.take_head(MAX_HEAD_BYTES) {
        Ok(RequestHead::Complete(head)) => head,
        Ok(RequestHead::TooLong) => {
            return client.finish(&response("431 Request Header Fields Too Large", "the head is too long"));
        }
        Err(WaitEnd::TimedOut) => {
            return client.finish(&response("408 Request Timeout", "the head did not arrive in time"));
        }
        Err(WaitEnd::Stopped | WaitEnd::Closed) => return,
    };
    let request = match ProxyRequest::parse(&head) {
        Ok(request) => request,
        Err(why) => return client.finish(&response("400 Bad Request", why)),
    };
    let connected = match upstream.connect(request.host, request.port, request.forward.is_some(), slot) {
        Ok(connected) => connected,
        Err(error) => {
            if let Some(status) = status(&error) {
                client.finish(&response(&status, &error.to_string()));
            }
            return;
        }
    };
    match request.forward {
        None => {
            if client.send(b"HTTP/1.1 200 Connection established\r\n\r\n").is_ok() {
                client.tunnel(&connected.stream, Vec::new(), BodyLength::UntilEof);
            }
        }
        // What follows the last chunk would be another request to the user's proxy, for a host that is not checked.
        Some(forward) if connected.parent.is_some() && forward.body == BodyLength::UntilEof => {
            let why = "the body must have a Content-Length, because the request goes through another proxy";
            client.finish(&response("411 Length Required", why));
        }
        Some(forward) => {
            let head = forward.head(&connected.host, request.port, connected.parent.as_ref());
            client.tunnel(&connected.stream, head, forward.body);
        }
    }
}

/// The status of an error; `None` if the client gets no response.
fn status(error: &UpstreamError) -> Option<String> {
    Some(match error {
        // Many clients show the status line and not the body.
        UpstreamError::Refused(refused) => format!("403 {refused}"),
        UpstreamError::TooManyConnections => "503 Service Unavailable".to_owned(),
        UpstreamError::NameNotFound(_) | UpstreamError::Unreachable(..) => "502 Bad Gateway".to_owned(),
        UpstreamError::Stopped => return None,
    })
}

fn response(status: &str, line: &str) -> Vec<u8> {
    let length = line.len() + 1;
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{line}\n"
    )
    .into_bytes()
}

/// A parsed request.
struct ProxyRequest<'a> {
    host: &'a [u8],
    port: u16,
    /// `None` for CONNECT.
    forward: Option<ForwardedRequest<'a>>,
}

/// A plain request, to be forwarded.
struct ForwardedRequest<'a> {
    method: &'a [u8],
    path: Vec<u8>,
    version: &'a [u8],
    headers: Vec<(&'a [u8], &'a [u8])>,
    body: BodyLength,
}

impl<'a> ProxyRequest<'a> {
    fn parse(head: &'a [u8]) -> Result<Self, &'static str> {
        let head = head.strip_suffix(b"\r\n\r\n").ok_or("the lines do not end with CR LF")?;
        let mut lines = split_lines(head);
        let first = lines.next().unwrap_or_default();
        let words: Vec<&[u8]> = first.split(|byte| *byte == b' ').collect();
        let [method, target, version] = words[..] else {
            return Err("the first line is not `METHOD target HTTP/1.1`");
        };
        if !is_token(method) || !matches!(version, b"HTTP/1.1" | b"HTTP/1.0") {
            return Err("the first line is not `METHOD target HTTP/1.1`");
        }
        if target.iter().any(u8::is_ascii_control) {
            return Err("the target contains a control character");
        }
        let headers = lines.map(header).collect::<Result<Vec<_>, _>>()?;
        if method == b"CONNECT" {
            let (host, port) = split_port(target).ok_or("the target is not `host:port`")?;
            let port = port.ok_or("the target has no port")?;
            return Ok(Self { host, port, forward: None });
        }
        let (authority, path) = split_target(target)?;
        let (host, port) = split_port(authority).ok_or("the target has no port after the colon")?;
        let forward = ForwardedRequest { method, path, version, body: body_length(&headers)?, headers };
        Ok(Self { host, port: port.unwrap_or(HTTP_PORT), forward: Some(forward) })
    }
}

impl ForwardedRequest<'_> {
    /// The head that is sent to the server: with the checked host, and for one request only. The user's proxy gets the whole
    /// URL.
    fn head(&self, host: &Peer, port: u16, parent: Option<&ParentProxy>) -> Vec<u8> {
        let port = if port == HTTP_PORT { String::new() } else { format!(":{port}") };
        let named: Vec<&[u8]> =
            self.values(b"connection").flat_map(|list| list.split(|b| *b == b',')).collect();
        let place = if parent.is_some() { format!("http://{host}{port}") } else { String::new() };
        let mut head =
            [self.method, b" ", place.as_bytes(), &self.path, b" ", self.version, b"\r\n"].concat();
        head.extend(parent.map(ParentProxy::authorization_header).unwrap_or_default().into_bytes());
        head.extend_from_slice(format!("Host: {host}{port}\r\nConnection: close\r\n").as_bytes());
        for (name, value) in &self.headers {
            // The body is forwarded unchanged, so its length must be forwarded even if `Connection` names the header.
            let is_length = is(name, b"content-length") || is(name, b"transfer-encoding");
            let dropped = DROPPED_HEADERS.iter().any(|dropped| is(name, dropped))
                || name.get(..PROXY_HEADER_PREFIX.len()).is_some_and(|start| is(start, PROXY_HEADER_PREFIX))
                || named.iter().any(|named| is(name, named.trim_ascii()));
            if is_length || !dropped {
                head.extend_from_slice(&[name, &b": "[..], value, b"\r\n"].concat());
            }
        }
        head.extend_from_slice(b"\r\n");
        head
    }

    fn values<'a>(&'a self, wanted: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        values(&self.headers, wanted)
    }
}

/// The authority and the path of `http://host/path`.
fn split_target(target: &[u8]) -> Result<(&[u8], Vec<u8>), &'static str> {
    let scheme = target.iter().position(|byte| *byte == b':').map(|at| target.split_at(at));
    let rest = match scheme {
        Some((scheme, rest)) if is(scheme, b"http") => rest.strip_prefix(b"://"),
        Some((scheme, _)) if is(scheme, b"https") => {
            return Err("https needs CONNECT");
        }
        _ => None,
    };
    let rest = rest.ok_or("this is a proxy: the target must be `http://host/path`")?;
    let after = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#')).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(after);
    let path = match path.first() {
        Some(b'/') => path.to_vec(),
        _ => [b"/", path].concat(),
    };
    Ok((authority, path))
}

/// The length of the body; an ambiguous one is refused.
fn body_length(headers: &[(&[u8], &[u8])]) -> Result<BodyLength, &'static str> {
    let mut lengths = values(headers, b"content-length");
    let mut encodings = values(headers, b"transfer-encoding");
    match (lengths.next(), encodings.next()) {
        (None, None) => Ok(BodyLength::Bytes(0)),
        (None, Some(encoding)) if is(encoding, b"chunked") && encodings.next().is_none() => {
            Ok(BodyLength::UntilEof)
        }
        (Some(length), None) if lengths.next().is_none() => {
            let digits = !length.is_empty() && length.iter().all(u8::is_ascii_digit);
            let length = std::str::from_utf8(length).ok().filter(|_| digits);
            let length = length.and_then(|length| length.parse().ok());
            length.map(BodyLength::Bytes).ok_or("Content-Length is not a number")
        }
        _ => Err("the length of the body is ambiguous"),
    }
}

fn values<'a>(headers: &'a [(&'a [u8], &'a [u8])], wanted: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    headers.iter().filter(move |(name, _)| is(name, wanted)).map(|(_, value)| *value)
}

fn header(line: &[u8]) -> Result<(&[u8], &[u8]), &'static str> {
    let colon = line.iter().position(|byte| *byte == b':').ok_or("a header has no colon")?;
    let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
    if !is_token(name) {
        return Err("the name of a header is invalid");
    }
    if value.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
        return Err("the value of a header contains a control character");
    }
    Ok((name, value))
}

/// The lines between CR LF. A single CR or LF stays in its line and is refused there.
fn split_lines(mut head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut more = true;
    std::iter::from_fn(move || {
        if !more {
            return None;
        }
        let at = head.windows(2).position(|two| two == b"\r\n");
        more = at.is_some();
        let line = &head[..at.unwrap_or(head.len())];
        head = at.map_or(&[], |at| &head[at + 2..]);
        Some(line)
    })
}

fn is_token(text: &[u8]) -> bool {
    let may = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !text.is_empty() && text.iter().all(may)
}

fn is(text: &[u8], lower: &[u8]) -> bool {
    text.eq_ignore_ascii_case(lower)
}
