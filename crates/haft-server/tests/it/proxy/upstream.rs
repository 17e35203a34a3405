//! A server on this machine in place of a provider.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use haft_tool::Value;

/// What the server does with a request.
pub(crate) enum Reply {
    /// Sends these bytes and closes the connection.
    Bytes(Vec<u8>),
    /// Sends these bytes and waits until the client closes the connection.
    Hold(Vec<u8>),
    /// Waits until the test says so, and sends these bytes.
    Gate(Receiver<()>, Vec<u8>),
}

impl Reply {
    pub(crate) fn json(status: u16, body: impl AsRef<str>) -> Self {
        Self::with(status, "Content-Type: application/json\r\n", body)
    }

    pub(crate) fn with(status: u16, headers: &str, body: impl AsRef<str>) -> Self {
        let body = body.as_ref();
        let length = body.len();
        Self::Bytes(
            format!("HTTP/1.1 {status} Said\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}").into_bytes(),
        )
    }

    /// A response with these events, which `reply` turns into a reply.
    pub(crate) fn events(events: &[Value], reply: fn(Vec<u8>) -> Self) -> Self {
        let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        reply(
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n{body}")
                .into_bytes(),
        )
    }
}

/// A request that the server received.
#[derive(Debug, Clone)]
pub(crate) struct UpstreamRequest {
    /// Method and target.
    pub(crate) line: String,
    pub(crate) headers: Vec<String>,
    pub(crate) body: Vec<u8>,
}

impl UpstreamRequest {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn has_header(&self, line: &str) -> bool {
        self.headers.iter().any(|header| header.eq_ignore_ascii_case(line))
    }
}

/// A server that gives these replies in order, and closes the connection when there are no more.
pub(crate) struct Upstream {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<UpstreamRequest>>>,
    /// Gets a message for each request that has come.
    pub(crate) came: Receiver<()>,
    /// Gets a message when a client closes a connection that the server holds.
    pub(crate) closed: Receiver<()>,
}

impl Upstream {
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let replies: Arc<Mutex<VecDeque<Reply>>> = Arc::new(Mutex::new(replies.into_iter().collect()));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let ((come, came), (close, closed)) = (channel(), channel());
        let seen = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (replies, seen) = (Arc::clone(&replies), Arc::clone(&seen));
                let (come, close) = (come.clone(), close.clone());
                thread::spawn(move || serve(&stream, &replies, &seen, &come, &close));
            }
        });
        Self { url: format!("http://127.0.0.1:{port}"), requests, came, closed }
    }

    pub(crate) fn requests(&self) -> Vec<UpstreamRequest> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(
    mut stream: &TcpStream,
    replies: &Mutex<VecDeque<Reply>>,
    seen: &Mutex<Vec<UpstreamRequest>>,
    come: &Sender<()>,
    close: &Sender<()>,
) {
    let Some(request) = read(stream) else { return };
    seen.lock().unwrap().push(request);
    let reply = replies.lock().unwrap().pop_front();
    // The test may have ended.
    let _ = come.send(());
    match reply {
        Some(Reply::Bytes(bytes)) => drop(stream.write_all(&bytes)),
        Some(Reply::Hold(bytes)) => {
            let _ = stream.write_all(&bytes);
            let _ = stream.read_to_end(&mut Vec::new());
            let _ = close.send(());
        }
        Some(Reply::Gate(opened, bytes)) => {
            let _ = opened.recv();
            let _ = stream.write_all(&bytes);
        }
        None => {}
    }
}

fn read(stream: &TcpStream) -> Option<UpstreamRequest> {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let length = lines
        .iter()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let line = lines.first()?.trim_end_matches(" HTTP/1.1").to_owned();
    Some(UpstreamRequest { line, headers: lines.split_off(1), body })
}
