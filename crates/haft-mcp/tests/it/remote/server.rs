//! A server that says whatever a test wants it to say.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

/// One request, as it came.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) verb: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// What is request for: the protocol's method, or HTTP's where there is none.
    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or(&self.verb)
    }

    /// A result for this request.
    pub(crate) fn result(&self, result: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": self.body["id"], "result": result})
    }
}

/// A server on this machine; what it was request can be received.
pub(crate) struct ScriptedServer {
    port: u16,
    request: Mutex<Receiver<ReceivedRequest>>,
}

impl ScriptedServer {
    /// `talk` answers each request; the connection stays open if it says so.
    pub(crate) fn new(
        talk: impl Fn(&ReceivedRequest, &mut TcpStream) -> bool + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, request) = channel();
        let talk = Arc::new(talk);
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (talk, sender) = (Arc::clone(&talk), sender.clone());
                thread::spawn(move || {
                    while let Some(request) = read(&stream) {
                        let _ = sender.send(request.clone());
                        if !talk(&request, &mut stream) {
                            return;
                        }
                    }
                });
            }
        });
        Self { port, request: Mutex::new(request) }
    }

    /// An honest one of the new era, but for calls, which `call` answers.
    pub(crate) fn stateless(
        call: impl Fn(&ReceivedRequest, &mut TcpStream) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::new(move |request, stream| {
            match request.method() {
            "server/discover" => respond_json(stream, &request.result(&json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                "ttlMs": 0, "cacheScope": "private",
            }))),
            "tools/list" => respond_json(stream, &request.result(&tools())),
            _ => call(request, stream),
        }
        })
    }

    /// A server of the legacy family with a session; `call` handles calls.
    pub(crate) fn legacy(
        call: impl Fn(&ReceivedRequest, &mut TcpStream) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::new(move |request, stream| match request.method() {
            "server/discover" => respond_text(stream, 400, "Bad Request: no session"),
            "initialize" => {
                let result = request.result(&json!({
                    "protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}},
                    "serverInfo": {"name": "legacy", "version": "1"},
                }));
                respond(
                    stream,
                    200,
                    &[("Content-Type", "application/json"), ("Mcp-Session-Id", "s-1")],
                    &result.to_string(),
                )
            }
            "notifications/initialized" | "notifications/cancelled" => respond_text(stream, 202, ""),
            "tools/list" => respond_json(stream, &request.result(&tools())),
            "DELETE" => respond_text(stream, 200, ""),
            _ => call(request, stream),
        })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// What it was request since this was last request.
    pub(crate) fn received(&self) -> Vec<ReceivedRequest> {
        self.request.lock().unwrap().try_iter().collect()
    }

    /// Waits until it is request for this.
    pub(crate) fn wait_for(&self, method: &str) -> ReceivedRequest {
        let request = self.request.lock().unwrap();
        loop {
            let next = request
                .recv_timeout(super::TEST_TIMEOUT)
                .unwrap_or_else(|_| panic!("no request for {method}"));
            if next.method() == method {
                return next;
            }
        }
    }
}

fn tools() -> Value {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": [{"name": "echo", "inputSchema": schema}]})
}

/// A tool's result.
pub(crate) fn text_result(message: &str) -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": message}]})
}

pub(crate) fn respond_json(stream: &mut TcpStream, body: &Value) -> bool {
    respond(stream, 200, &[("Content-Type", "application/json")], &body.to_string())
}

pub(crate) fn respond_text(stream: &mut TcpStream, status: u16, body: &str) -> bool {
    respond(stream, status, &[("Content-Type", "text/respond_text")], body)
}

pub(crate) fn respond(stream: &mut TcpStream, status: u16, headers: &[(&str, &str)], body: &str) -> bool {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let all = format!("HTTP/1.1 {status} So\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(all.as_bytes()).is_ok()
}

/// Begins a stream of events whose end is that of the connection.
pub(crate) fn start_events(stream: &mut TcpStream, first: &str) {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    let _ = stream.write_all(format!("{head}{first}").as_bytes());
}

fn read(stream: &TcpStream) -> Option<ReceivedRequest> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
    let mut message = line.split(' ').map(str::to_owned);
    let (verb, path) = (message.next()?, message.next()?);
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim_end().split_once(':') {
            Some((name, value)) => headers.push((name.to_owned(), value.trim().to_owned())),
            None => break,
        }
    }
    let length = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let mut body = vec![0; length.map_or(0, |(_, length)| length.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    let body = serde_json::from_slice(&body).unwrap_or_default();
    Some(ReceivedRequest { verb, path, headers, body })
}
