//! A client that can be as rude as it likes.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};

use haft_mcp::serve::{BearerToken, HttpServerHandle, HttpServerLimits, HttpServerOptions, serve_http};
use serde_json::Value;

use crate::support::{LATER, Toys};

/// The token of the one who may come in.
pub(crate) const TOKEN: &str = "correct horse battery staple";
/// The token of somebody else who may.
pub(crate) const OTHER: &str = "another secret";

/// A server of toys.
pub(crate) struct House {
    pub(crate) toys: Toys,
    pub(crate) running: HttpServerHandle,
}

/// The usual server.
pub(crate) fn house() -> House {
    house_with(|_| {})
}

/// A server that is a little different.
pub(crate) fn house_with(change: impl FnOnce(&mut HttpServerOptions)) -> House {
    let toys = Toys::default();
    let token = |principal: &str, secret: &str| BearerToken {
        principal: principal.to_owned(),
        secret: secret.to_owned(),
    };
    let tokens = vec![token("one", TOKEN), token("other", OTHER)];
    let mut options = HttpServerOptions::new("127.0.0.1:0".parse().unwrap(), tokens);
    change(&mut options);
    let running = serve_http(toys.server(), options).unwrap();
    House { toys, running }
}

impl House {
    pub(crate) fn address(&self) -> SocketAddr {
        self.running.address()
    }

    pub(crate) fn host(&self) -> String {
        self.address().to_string()
    }

    pub(crate) fn connect(&self) -> Line {
        let stream = TcpStream::connect(self.address()).unwrap();
        stream.set_read_timeout(Some(LATER)).unwrap();
        stream.set_write_timeout(Some(LATER)).unwrap();
        Line { stream, held: Vec::new(), body: Body::None }
    }

    /// A POST that has everything it needs, for changing it.
    pub(crate) fn post(&self, message: &Value) -> ClientRequest {
        let mut ask = ClientRequest::new("POST", message.to_string().into_bytes());
        ask.set("Host", &self.host());
        ask.set("Authorization", &format!("Bearer {TOKEN}"));
        ask.set("Content-Type", "application/json");
        ask.set("Accept", "application/json, text/event-stream");
        ask
    }

    /// A POST of a request of the new era.
    pub(crate) fn post_modern(&self, message: &Value) -> ClientRequest {
        let mut ask = self.post(message);
        ask.set("MCP-Protocol-Version", "2026-07-28");
        ask.set("Mcp-Method", message["method"].as_str().unwrap());
        let name = message["params"].get("name").or_else(|| message["params"].get("uri"));
        if let Some(name) = name.and_then(Value::as_str) {
            ask.set("Mcp-Name", name);
        }
        ask
    }

    /// One request on a connection of its own.
    pub(crate) fn ask(&self, ask: &ClientRequest) -> Reply {
        let mut line = self.connect();
        line.send(&ask.bytes());
        line.reply()
    }

    /// Begins a session and gives its word.
    pub(crate) fn session(&self, version: &str, token: &str) -> String {
        let mut ask = self.post(&crate::support::initialize(1, version));
        ask.set("Authorization", &format!("Bearer {token}"));
        let reply = self.ask(&ask);
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.header("mcp-session-id").unwrap().to_owned()
    }

    /// A POST within a session.
    pub(crate) fn post_in(&self, session: &str, message: &Value) -> ClientRequest {
        let mut ask = self.post(message);
        ask.set("Mcp-Session-Id", session);
        ask
    }

    /// A GET or DELETE within a session.
    pub(crate) fn bare(&self, method: &str, session: &str) -> ClientRequest {
        let mut ask = ClientRequest::new(method, Vec::new());
        ask.set("Host", &self.host());
        ask.set("Authorization", &format!("Bearer {TOKEN}"));
        ask.set("Accept", "text/event-stream");
        ask.set("Mcp-Session-Id", session);
        ask
    }
}

/// A server whose limits are these.
pub(crate) fn house_within(limit: impl FnOnce(&mut HttpServerLimits)) -> House {
    house_with(|options| limit(&mut options.limits))
}

/// A request in the making.
#[derive(Clone)]
pub(crate) struct ClientRequest {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl ClientRequest {
    fn new(method: &str, body: Vec<u8>) -> Self {
        Self { line: format!("{method} /mcp HTTP/1.1"), headers: Vec::new(), body }
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.unset(name);
        self.add(name, value);
    }

    pub(crate) fn add(&mut self, name: &str, value: &str) {
        self.headers.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn unset(&mut self, name: &str) {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.set(name, value);
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.unset(name);
        self
    }

    pub(crate) fn head(&self) -> String {
        let headers: String =
            self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!("{}\r\n{headers}", self.line)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = format!("{}Content-Length: {}\r\n\r\n", self.head(), self.body.len()).into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// How much of a body is still to come.
enum Body {
    None,
    Exactly(usize),
    Chunks,
}

/// A connection.
pub(crate) struct Line {
    stream: TcpStream,
    held: Vec<u8>,
    body: Body,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn code(&self) -> i64 {
        self.json()["error"]["code"].as_i64().unwrap()
    }

    pub(crate) fn has_no_cors(&self) -> bool {
        !self.headers.iter().any(|(name, _)| name.starts_with("access-control"))
    }
}

impl Line {
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Sends what can be sent; whether all could.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// Says that nothing more will be said, and listens on.
    pub(crate) fn half_close(&self) {
        // The server may have hung up before.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// A whole response.
    pub(crate) fn reply(&mut self) -> Reply {
        let mut reply = self.head();
        while let Some(piece) = self.piece() {
            reply.body.extend(piece);
        }
        reply
    }

    /// The head of a response; its body is read in pieces or events.
    pub(crate) fn head(&mut self) -> Reply {
        let end = loop {
            if let Some(at) = self.held.windows(4).position(|four| four == b"\r\n\r\n") {
                break at;
            }
            assert!(self.more(), "no response came, only {:?}", String::from_utf8_lossy(&self.held));
        };
        let head = String::from_utf8(self.held.drain(..end + 4).collect()).unwrap();
        let mut lines = head.lines();
        let status: u16 = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let reply = Reply { status, headers, body: Vec::new() };
        self.body = match reply.header("content-length") {
            Some(length) => Body::Exactly(length.parse().unwrap()),
            None if reply.header("transfer-encoding") == Some("chunked") => Body::Chunks,
            None => Body::None,
        };
        reply
    }

    /// The next piece of a body; none at its end.
    fn piece(&mut self) -> Option<Vec<u8>> {
        match self.body {
            Body::None | Body::Exactly(0) => None,
            Body::Exactly(length) => {
                self.at_least(length);
                self.body = Body::None;
                Some(self.held.drain(..length).collect())
            }
            Body::Chunks => {
                let end = loop {
                    if let Some(at) = self.held.windows(2).position(|two| two == b"\r\n") {
                        break at;
                    }
                    assert!(self.more(), "a body broke off");
                };
                let length: Vec<u8> = self.held.drain(..end + 2).collect();
                let length = std::str::from_utf8(&length).unwrap().trim().to_owned();
                let length = usize::from_str_radix(&length, 16).unwrap();
                self.at_least(length + 2);
                let piece: Vec<u8> = self.held.drain(..length + 2).take(length).collect();
                if length == 0 {
                    self.body = Body::None;
                }
                (length > 0).then_some(piece)
            }
        }
    }

    /// The answer to a request, whichever way it comes.
    pub(crate) fn answer(&mut self) -> Value {
        let head = self.head();
        if head.header("content-type") == Some("text/event-stream") {
            return std::iter::from_fn(|| self.event()).last().unwrap().1;
        }
        let mut body = Vec::new();
        while let Some(piece) = self.piece() {
            body.extend(piece);
        }
        serde_json::from_slice(&body).unwrap()
    }

    /// The next piece of a stream as it is.
    pub(crate) fn comment(&mut self) -> String {
        String::from_utf8(self.piece().unwrap()).unwrap()
    }

    /// The next event: its id, and its message, which is null for one without; none at the end.
    pub(crate) fn event(&mut self) -> Option<(Option<String>, Value)> {
        loop {
            // The server writes one event as one piece.
            let piece = String::from_utf8(self.piece()?).unwrap();
            if piece.starts_with(':') {
                continue;
            }
            let field = |name: &str| piece.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
            let data = field("data:").unwrap();
            let message = if data.is_empty() { Value::Null } else { serde_json::from_str(data).unwrap() };
            return Some((field("id:").map(str::to_owned), message));
        }
    }

    /// Whether the server has hung up without a word.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.held.is_empty() && !self.more()
    }

    fn at_least(&mut self, length: usize) {
        while self.held.len() < length {
            assert!(self.more(), "a body broke off");
        }
    }

    /// Takes what comes; false if nothing will.
    fn more(&mut self) -> bool {
        let mut piece = [0; 16 << 10];
        match self.stream.read(&mut piece) {
            Ok(count) => {
                self.held.extend_from_slice(&piece[..count]);
                count > 0
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) => {
                assert!(error.kind() == ErrorKind::Interrupted, "{error}");
                true
            }
        }
    }
}
