//! HTTP to a proxy: CONNECT, and plain requests with a whole address in their first line.

use super::client::{Client, Head};
use super::gate::{Failure, Gate};
use super::listener::Place;
use super::tunnel::Body;
use super::wait::Stop;
use haft_tool::net::{Peer, split_port};

/// The longest request head.
const HEAD: usize = 64 * 1024;

/// What is between two neighbours only, and so is not passed on; `Host` is set anew.
const NOT_PASSED_ON: [&[u8]; 6] = [b"connection", b"keep-alive", b"te", b"trailer", b"upgrade", b"host"];

/// Serves one request.
pub(super) fn serve(mut client: Client, gate: &Gate, place: &Place) {
    let head = match client.head(HEAD) {
        Ok(Head::Whole(head)) => head,
        Ok(Head::TooLong) => {
            return client.last_word(&answer("431 Request Header Fields Too Large", "the head is too long"));
        }
        Err(Stop::Late) => {
            return client.last_word(&answer("408 Request Timeout", "the head did not come in time"));
        }
        Err(Stop::Ended | Stop::Gone) => return,
    };
    let request = match Request::parse(&head) {
        Ok(request) => request,
        Err(why) => return client.last_word(&answer("400 Bad Request", why)),
    };
    let (upstream, host) = match gate.reach(request.host, request.port, place) {
        Ok(reached) => reached,
        Err(failure) => {
            if let Some(status) = status(&failure) {
                client.last_word(&answer(&status, &failure.to_string()));
            }
            return;
        }
    };
    match request.forward {
        None => {
            if client.say(b"HTTP/1.1 200 Connection established\r\n\r\n").is_ok() {
                client.join(&upstream, Vec::new(), Body::Open);
            }
        }
        Some(forward) => {
            let head = forward.head(&host, request.port);
            client.join(&upstream, head, forward.body);
        }
    }
}

/// The status line of a failure, if there is still somebody to tell.
fn status(failure: &Failure) -> Option<String> {
    Some(match failure {
        // Many clients show the words of the status line and never the body of the answer.
        Failure::Refused(refused) => format!("403 {refused}"),
        Failure::Busy => "503 Service Unavailable".to_owned(),
        Failure::Unknown(_) | Failure::Unreachable(..) => "502 Bad Gateway".to_owned(),
        Failure::Ended => return None,
    })
}

fn answer(status: &str, line: &str) -> Vec<u8> {
    let length = line.len() + 1;
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{line}\n"
    )
    .into_bytes()
}

/// What a client asks for.
struct Request<'a> {
    host: &'a [u8],
    port: u16,
    /// None for CONNECT.
    forward: Option<Forward<'a>>,
}

/// A request that is passed on.
struct Forward<'a> {
    method: &'a [u8],
    path: Vec<u8>,
    version: &'a [u8],
    headers: Vec<(&'a [u8], &'a [u8])>,
    body: Body,
}

impl<'a> Request<'a> {
    fn parse(head: &'a [u8]) -> Result<Self, &'static str> {
        let head = head.strip_suffix(b"\r\n\r\n").ok_or("its lines do not end as HTTP's do")?;
        let mut lines = split_lines(head);
        let first = lines.next().unwrap_or_default();
        let words: Vec<&[u8]> = first.split(|byte| *byte == b' ').collect();
        let [method, target, version] = words[..] else {
            return Err("its first line is not `METHOD target HTTP/1.1`");
        };
        if !is_token(method) || !matches!(version, b"HTTP/1.1" | b"HTTP/1.0") {
            return Err("its first line is not `METHOD target HTTP/1.1`");
        }
        if target.iter().any(u8::is_ascii_control) {
            return Err("its target holds a control character");
        }
        let headers = lines.map(header).collect::<Result<Vec<_>, _>>()?;
        if method == b"CONNECT" {
            let (host, port) = split_port(target).ok_or("its target is not `host:port`")?;
            let port = port.ok_or("its target names no port")?;
            return Ok(Self { host, port, forward: None });
        }
        let (authority, path) = split_target(target)?;
        let (host, port) = split_port(authority).ok_or("its target names no port after the colon")?;
        let forward = Forward { method, path, version, body: body(&headers)?, headers };
        Ok(Self { host, port: port.unwrap_or(80), forward: Some(forward) })
    }
}

impl Forward<'_> {
    /// The head as the server gets it: for the host that was checked, and for this one request.
    fn head(&self, host: &Peer, port: u16) -> Vec<u8> {
        let port = if port == 80 { String::new() } else { format!(":{port}") };
        let named: Vec<&[u8]> =
            self.values(b"connection").flat_map(|list| list.split(|b| *b == b',')).collect();
        let mut head = [self.method, b" ", &self.path, b" ", self.version, b"\r\n"].concat();
        head.extend_from_slice(format!("Host: {host}{port}\r\nConnection: close\r\n").as_bytes());
        for (name, value) in &self.headers {
            // The body is passed on as it came, so what tells its length cannot be dropped on a client's word.
            let of_the_body = is(name, b"content-length") || is(name, b"transfer-encoding");
            let dropped = NOT_PASSED_ON.iter().any(|dropped| is(name, dropped))
                || name.get(..6).is_some_and(|start| is(start, b"proxy-"))
                || named.iter().any(|named| is(name, named.trim_ascii()));
            if of_the_body || !dropped {
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

/// The host and the path of `http://host/path`.
fn split_target(target: &[u8]) -> Result<(&[u8], Vec<u8>), &'static str> {
    let scheme = target.iter().position(|byte| *byte == b':').map(|at| target.split_at(at));
    let rest = match scheme {
        Some((scheme, rest)) if is(scheme, b"http") => rest.strip_prefix(b"://"),
        Some((scheme, _)) if is(scheme, b"https") => {
            return Err("an https address is asked for with CONNECT");
        }
        _ => None,
    };
    let rest = rest.ok_or("this is a proxy: its target must be `http://host/path`")?;
    let after = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#')).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(after);
    let path = match path.first() {
        Some(b'/') => path.to_vec(),
        _ => [b"/", path].concat(),
    };
    Ok((authority, path))
}

/// How long the body is: a length that can be read in two ways is none.
fn body(headers: &[(&[u8], &[u8])]) -> Result<Body, &'static str> {
    let mut lengths = values(headers, b"content-length");
    let mut encodings = values(headers, b"transfer-encoding");
    match (lengths.next(), encodings.next()) {
        (None, None) => Ok(Body::Exactly(0)),
        (None, Some(encoding)) if is(encoding, b"chunked") && encodings.next().is_none() => Ok(Body::Open),
        (Some(length), None) if lengths.next().is_none() => {
            let digits = !length.is_empty() && length.iter().all(u8::is_ascii_digit);
            let length = std::str::from_utf8(length).ok().filter(|_| digits);
            let length = length.and_then(|length| length.parse().ok());
            length.map(Body::Exactly).ok_or("its Content-Length is no number")
        }
        _ => Err("the length of its body can be read in more than one way"),
    }
}

fn values<'a>(headers: &'a [(&'a [u8], &'a [u8])], wanted: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    headers.iter().filter(move |(name, _)| is(name, wanted)).map(|(_, value)| *value)
}

fn header(line: &[u8]) -> Result<(&[u8], &[u8]), &'static str> {
    let colon = line.iter().position(|byte| *byte == b':').ok_or("a header has no colon")?;
    let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
    if !is_token(name) {
        return Err("the name of a header holds a character that none may have");
    }
    if value.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
        return Err("the value of a header holds a control character");
    }
    Ok((name, value))
}

/// The lines between CR LF; a CR or LF by itself stays in its line, and is refused there.
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
