//! A raw client over two pipes.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, PipeReader, PipeWriter, Write as _};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;

use haft_mcp::serve::serve_stdio;
use serde_json::{Value, json};

use crate::fixture::{TEST_TIMEOUT, TestService, initialize};

/// A client and its server.
pub(crate) struct StdioClient {
    pub(crate) service: TestService,
    input: Option<PipeWriter>,
    output: Receiver<Value>,
    server: JoinHandle<()>,
    /// Messages that came while another was waited for.
    early: HashMap<String, Value>,
}

/// A client before its first message.
pub(crate) fn connect() -> StdioClient {
    connect_over(|_, _| {})
}

/// The same, after `change` of the server's ends of the pipes.
pub(crate) fn connect_over(change: impl FnOnce(&OwnedFd, &OwnedFd)) -> StdioClient {
    let service = TestService::default();
    let (server_input, input) = std::io::pipe().unwrap();
    let (output, server_output) = std::io::pipe().unwrap();
    let (server_input, server_output) = (OwnedFd::from(server_input), OwnedFd::from(server_output));
    change(&server_input, &server_output);
    let serving = service.server();
    let (stop, never_stopped) = std::io::pipe().unwrap();
    let server = std::thread::spawn(move || {
        serve_stdio(&serving, server_input, server_output, stop.into()).unwrap();
        drop(never_stopped);
    });
    StdioClient { service, input: Some(input), output: read_messages(output), server, early: HashMap::new() }
}

/// A client after the handshake.
pub(crate) fn initialized(version: &str) -> StdioClient {
    let mut client = connect();
    client.send(&initialize("first", version));
    assert_eq!(client.response("first")["result"]["protocolVersion"], version);
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    client
}

fn read_messages(output: PipeReader) -> Receiver<Value> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines() {
            let Ok(line) = line else { return };
            if sender.send(serde_json::from_str(&line).unwrap()).is_err() {
                return;
            }
        }
    });
    receiver
}

impl StdioClient {
    pub(crate) fn send(&mut self, message: &Value) {
        self.raw(format!("{message}\n").as_bytes());
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// The next message.
    pub(crate) fn next(&mut self) -> Value {
        self.output.recv_timeout(TEST_TIMEOUT).unwrap()
    }

    /// The response to the request with that id; other messages are kept.
    pub(crate) fn response(&mut self, id: impl Into<Value>) -> Value {
        let id = id.into().to_string();
        loop {
            if let Some(answer) = self.early.remove(&id) {
                return answer;
            }
            let message = self.next();
            self.early.insert(message["id"].to_string(), message);
        }
    }

    /// The code of the next message, which must be an error without an id.
    pub(crate) fn error_code(&mut self) -> i64 {
        let message = self.next();
        assert_eq!(message.get("id"), None, "{message}");
        message["error"]["code"].as_i64().unwrap()
    }

    /// Closes the input; returns the messages that still come.
    pub(crate) fn close(mut self) -> Vec<Value> {
        self.input = None;
        self.server.join().unwrap();
        let mut last = Vec::new();
        loop {
            match self.output.recv_timeout(TEST_TIMEOUT) {
                Ok(message) => last.push(message),
                Err(error) => {
                    assert_eq!(error, RecvTimeoutError::Disconnected, "the server keeps its output open");
                    return last;
                }
            }
        }
    }

    /// Closes the input without waiting.
    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }
}
