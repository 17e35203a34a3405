//! A client at the other end of two pipes.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, PipeReader, PipeWriter, Write as _};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;

use haft_mcp::serve::serve_stdio;
use serde_json::{Value, json};

use crate::support::{LATER, Toys, initialize};

/// A client, and the server it talks to.
pub(crate) struct Client {
    pub(crate) toys: Toys,
    input: Option<PipeWriter>,
    output: Receiver<Value>,
    server: JoinHandle<()>,
    /// What came while something else was waited for.
    early: HashMap<String, Value>,
}

/// A client that has said nothing yet.
pub(crate) fn client() -> Client {
    client_over(|_, _| {})
}

/// The same, with something done to the server's ends of the pipes.
pub(crate) fn client_over(change: impl FnOnce(&OwnedFd, &OwnedFd)) -> Client {
    let toys = Toys::default();
    let (their_input, input) = std::io::pipe().unwrap();
    let (output, their_output) = std::io::pipe().unwrap();
    let (their_input, their_output) = (OwnedFd::from(their_input), OwnedFd::from(their_output));
    change(&their_input, &their_output);
    let serving = toys.server();
    let server = std::thread::spawn(move || serve_stdio(&serving, their_input, their_output));
    Client { toys, input: Some(input), output: listen(output), server, early: HashMap::new() }
}

/// A client that has introduced itself.
pub(crate) fn introduced(version: &str) -> Client {
    let mut client = client();
    client.send(&initialize("first", version));
    assert_eq!(client.answer("first")["result"]["protocolVersion"], version);
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    client
}

fn listen(output: PipeReader) -> Receiver<Value> {
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines() {
            let Ok(line) = line else { return };
            if tell.send(serde_json::from_str(&line).unwrap()).is_err() {
                return;
            }
        }
    });
    told
}

impl Client {
    pub(crate) fn send(&mut self, message: &Value) {
        self.raw(format!("{message}\n").as_bytes());
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// The next message.
    pub(crate) fn next(&mut self) -> Value {
        self.output.recv_timeout(LATER).unwrap()
    }

    /// The answer to the request of that number, whatever else comes before it.
    pub(crate) fn answer(&mut self, id: impl Into<Value>) -> Value {
        let id = id.into().to_string();
        loop {
            if let Some(answer) = self.early.remove(&id) {
                return answer;
            }
            let message = self.next();
            self.early.insert(message["id"].to_string(), message);
        }
    }

    /// The next message, which must be an error that belongs to no request; gives its code.
    pub(crate) fn complaint(&mut self) -> i64 {
        let message = self.next();
        assert_eq!(message.get("id"), None, "{message}");
        message["error"]["code"].as_i64().unwrap()
    }

    /// Says the last, and gives what still comes.
    pub(crate) fn leave(mut self) -> Vec<Value> {
        self.input = None;
        self.server.join().unwrap();
        let mut last = Vec::new();
        loop {
            match self.output.recv_timeout(LATER) {
                Ok(message) => last.push(message),
                Err(why) => {
                    assert_eq!(why, RecvTimeoutError::Disconnected, "the server holds on to its output");
                    return last;
                }
            }
        }
    }

    /// Says the last without waiting for anything.
    pub(crate) fn hang_up(&mut self) {
        self.input = None;
    }
}
