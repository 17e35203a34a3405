//! A raw HTTP client, which can send anything.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};

use haft_mcp::serve::{BearerToken, HttpServerHandle, HttpServerLimits, HttpServerOptions, serve_http};
use serde_json::Value;

use crate::fixture::{TEST_TIMEOUT, TestService};

/// The token of the usual principal.
pub(crate) const TOKEN: &str = "correct horse battery staple";
/// The token of another principal.
pub(crate) const OTHER_TOKEN: &str = "another secret";

/// A running server and its service.
pub(crate) struct HttpFixture {
    pub(crate) service: TestService,
    pub(crate) handle: HttpServerHandle,
}

/// A server with default options.
pub(crate) fn server() -> HttpFixture {
    server_with(|_| {})
}

/// A server with changed options.
pub(crate) fn server_with(change: impl FnOnce(&mut HttpServerOptions)) -> HttpFixture {
    let service = TestService::default();
    let token = |principal: &str, secret: &str| BearerToken {
        principal: principal.to_owned(),
        secret: secret.to_owned(),
    };
    let tokens = vec![token("one", TOKEN), token("other", OTHER_TOKEN)];
    let mut options = HttpServerOptions::new("127.0.0.1:0".parse().unwrap(), tokens);
    change(&mut options);
    let handle = serve_http(service.server(), options).unwrap();
    HttpFixture { service, handle }
}

impl HttpFixture {
    pub(crate) fn address(&self) -> SocketAddr {
        self.handle.address()
    }

    pub(crate) fn host(&self) -> String {
        self.address().to_string()
    }

    pub(crate) fn connect(&self) -> RawConnection {
        let stream = TcpStream::connect(self.address()).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(TEST_TIMEOUT)).unwrap();
        RawConnection { stream, received: Vec::new(), body: BodyRest::None }
    }

    /// A valid POST request.
    pub(crate) fn post(&self, message: &Value) -> RawRequest {
        let mut post = RawRequest::new("POST", message.to_string().into_bytes());
        post.set("Host", &self.host());
        post.set("Authorization", &format!("Bearer {TOKEN}"));
        post.set("Content-Type", "application/json");
        post.set("Accept", "application/json, text/event-stream");
        post
    }

    /// A POST of a stateless request.
    pub(crate) fn post_stateless(&self, message: &Value) -> RawRequest {
        let mut post = self.post(message);
        post.set("MCP-Protocol-Version", "2026-07-28");
        post.set("Mcp-Method", message["method"].as_str().unwrap());
        let name = message["params"].get("name").or_else(|| message["params"].get("uri"));
        if let Some(name) = name.and_then(Value::as_str) {
            post.set("Mcp-Name", name);
        }
        post
    }

    /// Sends one request on its own connection.
    pub(crate) fn send(&self, request: &RawRequest) -> RawResponse {
        let mut connection = self.connect();
        connection.send(&request.bytes());
        connection.response()
    }

    /// Begins a session; returns its id.
    pub(crate) fn session(&self, version: &str, token: &str) -> String {
        let mut post = self.post(&crate::fixture::initialize(1, version));
        post.set("Authorization", &format!("Bearer {token}"));
        let response = self.send(&post);
        assert_eq!(response.status, 200, "{response:?}");
        response.header("mcp-session-id").unwrap().to_owned()
    }

    /// A POST within a session.
    pub(crate) fn post_in(&self, session: &str, message: &Value) -> RawRequest {
        let mut post = self.post(message);
        post.set("Mcp-Session-Id", session);
        post
    }

    /// A GET or DELETE within a session.
    pub(crate) fn bare(&self, method: &str, session: &str) -> RawRequest {
        let mut post = RawRequest::new(method, Vec::new());
        post.set("Host", &self.host());
        post.set("Authorization", &format!("Bearer {TOKEN}"));
        post.set("Accept", "text/event-stream");
        post.set("Mcp-Session-Id", session);
        post
    }
}

/// A server with changed limits.
pub(crate) fn server_with_limits(limit: impl FnOnce(&mut HttpServerLimits)) -> HttpFixture {
    server_with(|options| limit(&mut options.limits))
}

/// A request.
#[derive(Clone)]
pub(crate) struct RawRequest {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl RawRequest {
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

/// The rest of a body.
enum BodyRest {
    None,
    Exactly(usize),
    Chunks,
}

/// A connection.
pub(crate) struct RawConnection {
    stream: TcpStream,
    received: Vec<u8>,
    body: BodyRest,
}

/// A response.
#[derive(Debug)]
pub(crate) struct RawResponse {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl RawResponse {
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

impl RawConnection {
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Sends; returns whether all was accepted.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// Closes the sending side.
    pub(crate) fn half_close(&self) {
        // The server may have closed the connection.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// A complete response.
    pub(crate) fn response(&mut self) -> RawResponse {
        let mut response = self.head();
        while let Some(chunk) = self.chunk() {
            response.body.extend(chunk);
        }
        response
    }

    /// The head of a response; the body is read as chunks or events.
    pub(crate) fn head(&mut self) -> RawResponse {
        let end = loop {
            if let Some(at) = self.received.windows(4).position(|four| four == b"\r\n\r\n") {
                break at;
            }
            assert!(self.read_more(), "no response came, only {:?}", String::from_utf8_lossy(&self.received));
        };
        let head = String::from_utf8(self.received.drain(..end + 4).collect()).unwrap();
        let mut lines = head.lines();
        let status: u16 = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let response = RawResponse { status, headers, body: Vec::new() };
        self.body = match response.header("content-length") {
            Some(length) => BodyRest::Exactly(length.parse().unwrap()),
            None if response.header("transfer-encoding") == Some("chunked") => BodyRest::Chunks,
            None => BodyRest::None,
        };
        response
    }

    /// The next chunk of a body; `None` at its end.
    fn chunk(&mut self) -> Option<Vec<u8>> {
        match self.body {
            BodyRest::None | BodyRest::Exactly(0) => None,
            BodyRest::Exactly(length) => {
                self.read_at_least(length);
                self.body = BodyRest::None;
                Some(self.received.drain(..length).collect())
            }
            BodyRest::Chunks => {
                let end = loop {
                    if let Some(at) = self.received.windows(2).position(|two| two == b"\r\n") {
                        break at;
                    }
                    assert!(self.read_more(), "the body is incomplete");
                };
                let length: Vec<u8> = self.received.drain(..end + 2).collect();
                let length = std::str::from_utf8(&length).unwrap().trim().to_owned();
                let length = usize::from_str_radix(&length, 16).unwrap();
                self.read_at_least(length + 2);
                let chunk: Vec<u8> = self.received.drain(..length + 2).take(length).collect();
                if length == 0 {
                    self.body = BodyRest::None;
                }
                (length > 0).then_some(chunk)
            }
        }
    }

    /// The response message, from JSON or events.
    pub(crate) fn response_message(&mut self) -> Value {
        let head = self.head();
        if head.header("content-type") == Some("text/event-stream") {
            return std::iter::from_fn(|| self.event()).last().unwrap().1;
        }
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk() {
            body.extend(chunk);
        }
        serde_json::from_slice(&body).unwrap()
    }

    /// The next chunk of a stream as text.
    pub(crate) fn comment(&mut self) -> String {
        String::from_utf8(self.chunk().unwrap()).unwrap()
    }

    /// The next event: its id and its message (null if empty); `None` at the end.
    pub(crate) fn event(&mut self) -> Option<(Option<String>, Value)> {
        loop {
            // The server writes each event as one chunk.
            let chunk = String::from_utf8(self.chunk()?).unwrap();
            if chunk.starts_with(':') {
                continue;
            }
            let field = |name: &str| chunk.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
            let data = field("data:").unwrap();
            let message = if data.is_empty() { Value::Null } else { serde_json::from_str(data).unwrap() };
            return Some((field("id:").map(str::to_owned), message));
        }
    }

    /// Whether the server has closed the connection without a response.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.received.is_empty() && !self.read_more()
    }

    fn read_at_least(&mut self, length: usize) {
        while self.received.len() < length {
            assert!(self.read_more(), "the body is incomplete");
        }
    }

    /// Reads more; returns false at EOF.
    fn read_more(&mut self) -> bool {
        let mut chunk = [0; 16 << 10];
        match self.stream.read(&mut chunk) {
            Ok(count) => {
                self.received.extend_from_slice(&chunk[..count]);
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
