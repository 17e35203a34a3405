//! What the threads of one process's connection share.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::super::ear::Ear;
use super::super::waiters::Waiters;
use super::super::{ClientError, Limits, Trouble, lock, portable};
use super::Ended;
use super::tail::Tail;
use crate::wire::{Id, Incoming, Line};

/// How long the end of a process, and of what it says, is waited for when its output has ended.
const LAST_MOMENT: Duration = Duration::from_millis(500);

pub(super) struct Shared {
    pub(super) waiters: Waiters,
    pub(super) process: Box<dyn Ended>,
    pub(super) limits: Limits,
    pub(super) tail: Tail,
    ear: Arc<Ear>,
    noise: Mutex<Noise>,
}

/// Lines that are no messages.
#[derive(Default)]
struct Noise {
    lines: u64,
    first: String,
}

impl Shared {
    pub(super) fn new(process: Box<dyn Ended>, limits: Limits, ear: Arc<Ear>) -> Self {
        Self {
            waiters: Waiters::default(),
            process,
            limits,
            tail: Tail::default(),
            ear,
            noise: Mutex::default(),
        }
    }

    /// Takes a line of the process's output.
    pub(super) fn line(&self, line: &Line) {
        let bytes = match line {
            Line::Whole(bytes) => bytes,
            Line::TooLong => {
                return self.waiters.fail_all(&ClientError::too_much(format!(
                    "the server wrote a line of more than {} bytes, the most that is read; it may have been the answer",
                    self.limits.message_bytes
                )));
            }
        };
        match read(bytes) {
            Ok(Incoming::One(message)) => self.waiters.take(message, &self.ear),
            Ok(Incoming::Batch(all)) => {
                for message in all {
                    match message {
                        Ok(message) => self.waiters.take(message, &self.ear),
                        Err(_) => self.noise(bytes),
                    }
                }
            }
            Err(why) => self.not_a_message(bytes, &why),
        }
    }

    /// Takes what came behind the last line: a message, or half of one, which is nobody's.
    pub(super) fn last_line(&self, line: &Line) {
        if let Line::Whole(bytes) = line
            && read(bytes).is_ok()
        {
            self.line(line);
        }
    }

    /// What is no message may still be somebody's answer.
    fn not_a_message(&self, bytes: &[u8], why: &str) {
        let value = serde_json::from_slice::<serde_json::Value>(bytes).ok();
        let answer = value.as_ref().filter(|value| value.get("method").is_none());
        if let Some(id) = answer.and_then(|value| value.get("id")).and_then(Id::read) {
            let error = ClientError::garbled(format!("the server's answer makes no sense: {why}"));
            if self.waiters.answer(&id, Err(error)) {
                return;
            }
        }
        let head = bytes.get(..bytes.len().min(256)).unwrap_or_default();
        if value.is_none() && head.starts_with(b"{") && memchr::memmem::find(head, b"\"jsonrpc\"").is_some() {
            self.waiters.fail_all(&ClientError::garbled(format!(
                "the server wrote a message that cannot be read ({why}); it may have been the answer"
            )));
        }
        self.noise(bytes);
    }

    fn noise(&self, bytes: &[u8]) {
        let mut noise = lock(&self.noise);
        if noise.lines == 0 {
            let head = bytes.get(..bytes.len().min(400)).unwrap_or_default();
            noise.first = portable::clean_line(&String::from_utf8_lossy(head), 100);
        }
        noise.lines += 1;
    }

    /// The process has ended, or will say nothing any more.
    pub(super) fn ended(&self) {
        let how = match self.process.wait(LAST_MOMENT) {
            Some(how) => format!("the server has ended ({how})"),
            None => "the server has closed its output".to_owned(),
        };
        self.over(Trouble::Ended, &how);
    }

    /// The process says more than anybody wants to hear.
    pub(super) fn given_up(&self) {
        self.over(Trouble::TooMuch, "the server writes a line without end; it is not read any more");
    }

    fn over(&self, kind: Trouble, how: &str) {
        let words = self.tail.words(LAST_MOMENT);
        let how = match words.as_str() {
            "" => format!("{how} and said nothing on standard error"),
            words => format!("{how}; its last words: {words}"),
        };
        self.waiters.end(self.with_noise(ClientError::new(kind, how)));
    }

    /// The same error, with what else is known of a server that does not answer.
    pub(super) fn with_remarks(&self, mut error: ClientError) -> ClientError {
        if error.kind == Trouble::Late {
            let words = self.tail.words(Duration::ZERO);
            if !words.is_empty() {
                error.message.push_str("; its last words on standard error: ");
                error.message.push_str(&words);
            }
            return self.with_noise(error);
        }
        error
    }

    fn with_noise(&self, mut error: ClientError) -> ClientError {
        let noise = lock(&self.noise);
        if noise.lines > 0 {
            error.message.push_str(&format!(
                " (its standard output, which is for messages alone, has {} lines that are none, the first: {:?})",
                noise.lines, noise.first
            ));
        }
        error
    }
}

/// Reads a line; bad UTF-8 in it is mended.
fn read(bytes: &[u8]) -> Result<Incoming, String> {
    match Incoming::read(bytes) {
        Ok(incoming) => Ok(incoming),
        Err(error) if std::str::from_utf8(bytes).is_ok() => Err(error.message),
        Err(_) => Incoming::read(String::from_utf8_lossy(bytes).as_bytes()).map_err(|error| error.message),
    }
}
