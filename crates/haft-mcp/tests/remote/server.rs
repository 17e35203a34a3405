//! A server that says whatever a test wants it to say.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

/// One request, as it came.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) verb: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// What is asked for: the protocol's method, or HTTP's where there is none.
    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or(&self.verb)
    }

    /// A result for this request.
    pub(crate) fn result(&self, result: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": self.body["id"], "result": result})
    }
}

/// A server on this machine; what it was asked can be heard.
pub(crate) struct Server {
    port: u16,
    asked: Mutex<Receiver<Asked>>,
}

impl Server {
    /// `talk` answers each request; the connection stays open if it says so.
    pub(crate) fn new(talk: impl Fn(&Asked, &mut TcpStream) -> bool + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, asked) = channel();
        let talk = Arc::new(talk);
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (talk, tell) = (Arc::clone(&talk), tell.clone());
                thread::spawn(move || {
                    while let Some(asked) = read(&stream) {
                        let _ = tell.send(asked.clone());
                        if !talk(&asked, &mut stream) {
                            return;
                        }
                    }
                });
            }
        });
        Self { port, asked: Mutex::new(asked) }
    }

    /// An honest one of the new era, but for calls, which `call` answers.
    pub(crate) fn modern(call: impl Fn(&Asked, &mut TcpStream) -> bool + Send + Sync + 'static) -> Self {
        Self::new(move |asked, stream| {
            match asked.method() {
            "server/discover" => json_answer(stream, &asked.result(&json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                "ttlMs": 0, "cacheScope": "private",
            }))),
            "tools/list" => json_answer(stream, &asked.result(&tools())),
            _ => call(asked, stream),
        }
        })
    }

    /// An honest one of the old era with a session, but for calls, which `call` answers.
    pub(crate) fn legacy(call: impl Fn(&Asked, &mut TcpStream) -> bool + Send + Sync + 'static) -> Self {
        Self::new(move |asked, stream| match asked.method() {
            "server/discover" => plain(stream, 400, "Bad Request: no session"),
            "initialize" => {
                let result = asked.result(&json!({
                    "protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}},
                    "serverInfo": {"name": "legacy", "version": "1"},
                }));
                answer(
                    stream,
                    200,
                    &[("Content-Type", "application/json"), ("Mcp-Session-Id", "s-1")],
                    &result.to_string(),
                )
            }
            "notifications/initialized" | "notifications/cancelled" => plain(stream, 202, ""),
            "tools/list" => json_answer(stream, &asked.result(&tools())),
            "DELETE" => plain(stream, 200, ""),
            _ => call(asked, stream),
        })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// What it was asked since this was last asked.
    pub(crate) fn heard(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().try_iter().collect()
    }

    /// Waits until it is asked for this.
    pub(crate) fn until(&self, method: &str) -> Asked {
        let asked = self.asked.lock().unwrap();
        loop {
            let next =
                asked.recv_timeout(super::LONG).unwrap_or_else(|_| panic!("nobody asked for {method}"));
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
pub(crate) fn said(words: &str) -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": words}]})
}

pub(crate) fn json_answer(stream: &mut TcpStream, body: &Value) -> bool {
    answer(stream, 200, &[("Content-Type", "application/json")], &body.to_string())
}

pub(crate) fn plain(stream: &mut TcpStream, status: u16, body: &str) -> bool {
    answer(stream, status, &[("Content-Type", "text/plain")], body)
}

pub(crate) fn answer(stream: &mut TcpStream, status: u16, headers: &[(&str, &str)], body: &str) -> bool {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let all = format!("HTTP/1.1 {status} So\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(all.as_bytes()).is_ok()
}

/// Begins a stream of events whose end is that of the connection.
pub(crate) fn events(stream: &mut TcpStream, first: &str) {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    let _ = stream.write_all(format!("{head}{first}").as_bytes());
}

fn read(stream: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
    let mut words = line.split(' ').map(str::to_owned);
    let (verb, path) = (words.next()?, words.next()?);
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
    Some(Asked { verb, path, headers, body })
}
