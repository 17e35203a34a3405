//! What a server process writes to standard output, and what is known about the process when it fails.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::super::inbound::Inbound;
use super::super::pending::PendingRequests;
use super::super::{ClientError, ClientLimits, McpError, lock, portable};
use super::ProcessHandle;
use super::stderr::StderrTail;
use crate::wire::{InputLine, RequestId, RpcInput};

/// How long the exit status and the rest of standard error are waited for after EOF.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);
/// Bytes of an unreadable line that are searched for signs of a JSON-RPC message.
const MAX_SEARCHED_BYTES: usize = 256;
/// Bytes and characters of the first line of noise that are kept for error messages.
const MAX_NOISE_BYTES: usize = 400;
const MAX_NOISE_CHARS: usize = 100;

/// Receives the lines of one server and routes them.
pub(super) struct ServerOutput {
    pub(super) pending: PendingRequests,
    pub(super) process: Box<dyn ProcessHandle>,
    pub(super) limits: ClientLimits,
    pub(super) stderr: StderrTail,
    inbound: Arc<Inbound>,
    noise: Mutex<Noise>,
}

/// `LineSplitter` on standard output that are not messages.
#[derive(Default)]
struct Noise {
    count: u64,
    first: String,
}

impl ServerOutput {
    pub(super) fn new(process: Box<dyn ProcessHandle>, limits: ClientLimits, inbound: Arc<Inbound>) -> Self {
        let (pending, stderr, noise) = (PendingRequests::default(), StderrTail::default(), Mutex::default());
        Self { pending, process, limits, stderr, inbound, noise }
    }

    /// Routes one line.
    pub(super) fn receive(&self, line: &InputLine) {
        let bytes = match line {
            InputLine::Whole(bytes) => bytes,
            InputLine::TooLong => {
                return self.pending.fail_all(&ClientError::too_large(format!(
                    "the server wrote a line longer than {} bytes, the limit; it may have been the answer",
                    self.limits.max_message_bytes
                )));
            }
        };
        match read(bytes) {
            Ok(RpcInput::Single(message)) => self.pending.route(message, &self.inbound),
            Ok(RpcInput::Batch(messages)) => {
                for message in messages {
                    match message {
                        Ok(message) => self.pending.route(message, &self.inbound),
                        Err(_) => self.count_noise(bytes),
                    }
                }
            }
            Err(why) => self.receive_invalid(bytes, &why),
        }
    }

    /// Routes an unterminated last line, unless it is a truncated message.
    pub(super) fn receive_last(&self, line: &InputLine) {
        if let InputLine::Whole(bytes) = line
            && read(bytes).is_ok()
        {
            self.receive(line);
        }
    }

    /// Fails the request that an invalid line seems to answer; all requests if it looks like a message without a
    /// readable id.
    fn receive_invalid(&self, bytes: &[u8], why: &str) {
        let value = serde_json::from_slice::<serde_json::Value>(bytes).ok();
        let response = value.as_ref().filter(|value| value.get("method").is_none());
        if let Some(id) = response.and_then(|value| value.get("id")).and_then(RequestId::read) {
            let error = ClientError::invalid_message(format!("the server's answer is invalid: {why}"));
            if self.pending.deliver(&id, Err(error)) {
                return;
            }
        }
        let head = bytes.get(..bytes.len().min(MAX_SEARCHED_BYTES)).unwrap_or_default();
        if value.is_none() && head.starts_with(b"{") && memchr::memmem::find(head, b"\"jsonrpc\"").is_some() {
            self.pending.fail_all(&ClientError::invalid_message(format!(
                "the server wrote an invalid message ({why}); it may have been the answer"
            )));
        }
        self.count_noise(bytes);
    }

    fn count_noise(&self, bytes: &[u8]) {
        let mut noise = lock(&self.noise);
        if noise.count == 0 {
            let head = bytes.get(..bytes.len().min(MAX_NOISE_BYTES)).unwrap_or_default();
            noise.first = portable::clean_line(&String::from_utf8_lossy(head), MAX_NOISE_CHARS);
        }
        noise.count += 1;
    }

    /// Fails all requests because the process has exited or closed its output.
    pub(super) fn close_ended(&self) {
        let why = match self.process.wait(EXIT_TIMEOUT) {
            Some(status) => format!("the server has exited ({status})"),
            None => "the server has closed its output".to_owned(),
        };
        self.close(McpError::Disconnected, &why);
    }

    /// Fails all requests because a line does not end.
    pub(super) fn close_overlong(&self) {
        self.close(McpError::TooLarge, "the server writes an endless line; its output is no longer read");
    }

    fn close(&self, kind: McpError, why: &str) {
        let why = match self.stderr.text(EXIT_TIMEOUT).as_str() {
            "" => format!("{why} and wrote nothing to standard error"),
            text => format!("{why}; end of its standard error: {text}"),
        };
        self.pending.close(self.with_noise(ClientError::new(kind, why)));
    }

    /// Adds to a timeout error what the server wrote to standard error, and the noise on its standard output.
    pub(super) fn explain(&self, mut error: ClientError) -> ClientError {
        if error.kind != McpError::TimedOut {
            return error;
        }
        let text = self.stderr.text(Duration::ZERO);
        if !text.is_empty() {
            error.message.push_str("; end of its standard error: ");
            error.message.push_str(&text);
        }
        self.with_noise(error)
    }

    fn with_noise(&self, mut error: ClientError) -> ClientError {
        let noise = lock(&self.noise);
        let lines = match noise.count {
            0 => return error,
            1 => "1 line that is not a message",
            count => &format!("{count} lines that are not messages"),
        };
        error.message.push_str(&format!(
            " (its standard output, which must contain only messages, has {lines}; the first: {:?})",
            noise.first
        ));
        error
    }
}

/// Parses a line; invalid UTF-8 is replaced.
fn read(bytes: &[u8]) -> Result<RpcInput, String> {
    match RpcInput::read(bytes) {
        Ok(incoming) => Ok(incoming),
        Err(invalid) if std::str::from_utf8(bytes).is_ok() => Err(invalid.error.message),
        Err(_) => {
            RpcInput::read(String::from_utf8_lossy(bytes).as_bytes()).map_err(|invalid| invalid.error.message)
        }
    }
}
