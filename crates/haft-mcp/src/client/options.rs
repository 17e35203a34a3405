//! How a server is held: how long it may take, how much it may say, and what it may ask.

use std::sync::Arc;
use std::time::Duration;

use haft_tool::Cancel;
use serde_json::Value;

use super::ServerRequestHandler;
use crate::wire::ProtocolVersion;

/// How long things may take and how much may come of them. Nothing waits without one of these.
#[derive(Debug, Clone)]
pub struct ClientLimits {
    /// From the first byte until it is known who is there.
    pub connect_timeout: Duration,
    /// How long a server may be silent about the new era before it is asked in the words of the old one.
    pub probe_timeout: Duration,
    /// One list, all of its pages; one resource; one prompt.
    pub list_timeout: Duration,
    /// One call that says nothing of its progress.
    pub call_timeout: Duration,
    /// One call, whatever it says of its progress.
    pub max_call_time: Duration,
    /// How long a server may take to end by itself when its input is closed, and again when it is asked to.
    pub close_timeout: Duration,
    /// The longest message.
    pub max_message_bytes: usize,
    /// All pages of one list together.
    pub max_list_bytes: usize,
    /// How many entries of a list are kept.
    pub max_list_items: usize,
    /// How many pages of a list are asked for.
    pub max_list_pages: usize,
    /// How often one request may come back with questions.
    pub max_input_rounds: usize,
    /// How many questions a server may ask during one call.
    pub max_questions: usize,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(30),
            probe_timeout: Duration::from_secs(2),
            list_timeout: Duration::from_secs(30),
            call_timeout: Duration::from_mins(1),
            max_call_time: Duration::from_mins(10),
            close_timeout: Duration::from_secs(2),
            max_message_bytes: 16 << 20,
            max_list_bytes: 32 << 20,
            max_list_items: 1000,
            max_list_pages: 100,
            max_input_rounds: 10,
            max_questions: 25,
        }
    }
}

/// How a connection is made.
#[derive(Clone, Default)]
pub struct ClientOptions {
    /// How long things may take and how much may come of them.
    pub limits: ClientLimits,
    /// The revision to speak, if that is known already; otherwise it is found out.
    pub version: Option<ProtocolVersion>,
    /// Who answers the server's questions. Without anybody, nothing is offered to it.
    pub handler: Option<Arc<dyn ServerRequestHandler>>,
}

/// How one call is made.
#[derive(Clone, Copy)]
pub struct ToolCallOptions<'a> {
    /// How long it may take without saying anything of its progress; [`ClientLimits::call`] if not said here.
    pub timeout: Option<Duration>,
    /// How long it may take at all; [`ClientLimits::max_call_time`] if not said here.
    pub max_time: Option<Duration>,
    /// Takes the call back.
    pub cancel: &'a Cancel,
    /// Hears of its progress, on the thread that waits.
    pub progress: &'a dyn Fn(&ProgressUpdate),
}

impl<'a> ToolCallOptions<'a> {
    /// A call that nobody watches.
    pub fn new(cancel: &'a Cancel) -> Self {
        Self { timeout: None, max_time: None, cancel, progress: &|_| {} }
    }
}

/// How far a call is.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgressUpdate {
    /// How far; grows from one note to the next.
    pub progress: f64,
    /// How far it will be in the end, if the server knows.
    pub total: Option<f64>,
    /// What it is at, in the server's words.
    pub message: Option<String>,
}

impl ProgressUpdate {
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
