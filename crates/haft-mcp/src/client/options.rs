//! How a server is held: how long it may take, how much it may say, and what it may ask.

use std::sync::Arc;
use std::time::Duration;

use haft_tool::Cancel;
use serde_json::Value;

use super::Handlers;
use crate::wire::Version;

/// How long things may take and how much may come of them. Nothing waits without one of these.
#[derive(Debug, Clone)]
pub struct Limits {
    /// From the first byte until it is known who is there.
    pub connect: Duration,
    /// How long a server may be silent about the new era before it is asked in the words of the old one.
    pub probe: Duration,
    /// One list, all of its pages; one resource; one prompt.
    pub list: Duration,
    /// One call that says nothing of its progress.
    pub call: Duration,
    /// One call, whatever it says of its progress.
    pub call_at_most: Duration,
    /// How long a server may take to end by itself when its input is closed, and again when it is asked to.
    pub close: Duration,
    /// The longest message.
    pub message_bytes: usize,
    /// All pages of one list together.
    pub list_bytes: usize,
    /// How many entries of a list are kept.
    pub list_items: usize,
    /// How many pages of a list are asked for.
    pub list_pages: usize,
    /// How often one request may come back with questions.
    pub rounds: usize,
    /// How many questions a server may ask during one call.
    pub questions: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(30),
            probe: Duration::from_secs(2),
            list: Duration::from_secs(30),
            call: Duration::from_mins(1),
            call_at_most: Duration::from_mins(10),
            close: Duration::from_secs(2),
            message_bytes: 16 << 20,
            list_bytes: 32 << 20,
            list_items: 1000,
            list_pages: 100,
            rounds: 10,
            questions: 25,
        }
    }
}

/// How a connection is made.
#[derive(Clone, Default)]
pub struct Options {
    /// How long things may take and how much may come of them.
    pub limits: Limits,
    /// The revision to speak, if that is known already; otherwise it is found out.
    pub version: Option<Version>,
    /// Who answers the server's questions. Without anybody, nothing is offered to it.
    pub handlers: Option<Arc<dyn Handlers>>,
}

/// How one call is made.
#[derive(Clone, Copy)]
pub struct CallOptions<'a> {
    /// How long it may take without saying anything of its progress; [`Limits::call`] if not said here.
    pub timeout: Option<Duration>,
    /// How long it may take at all; [`Limits::call_at_most`] if not said here.
    pub at_most: Option<Duration>,
    /// Takes the call back.
    pub cancel: &'a Cancel,
    /// Hears of its progress, on the thread that waits.
    pub progress: &'a dyn Fn(&Progress),
}

impl<'a> CallOptions<'a> {
    /// A call that nobody watches.
    pub fn new(cancel: &'a Cancel) -> Self {
        Self { timeout: None, at_most: None, cancel, progress: &|_| {} }
    }
}

/// How far a call is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// How far; grows from one note to the next.
    pub progress: f64,
    /// How far it will be in the end, if the server knows.
    pub total: Option<f64>,
    /// What it is at, in the server's words.
    pub message: Option<String>,
}

impl Progress {
    pub(super) fn read(params: &Value) -> Option<Self> {
        Some(Self {
            progress: params.get("progress")?.as_f64()?,
            total: params.get("total").and_then(Value::as_f64),
            message: params
                .get("message")
                .and_then(Value::as_str)
                .map(|words| super::portable::clean(words, 1000)),
        })
    }
}
