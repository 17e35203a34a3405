//! Limits and options of the client.

use std::sync::Arc;
use std::time::Duration;

use haft_tool::{Cancel, TraceContext};
use serde_json::Value;

use super::ServerRequestHandler;
use super::portable::clean;
use crate::wire::ProtocolVersion;

/// Characters of a progress message.
const MAX_PROGRESS_CHARS: usize = 1000;

/// Limits of time and size. Nothing waits without one of these.
#[derive(Debug, Clone)]
pub struct ClientLimits {
    /// From the start until the end of the handshake.
    pub connect_timeout: Duration,
    /// How long a server may take to answer `server/discover` before the legacy handshake is tried.
    pub probe_timeout: Duration,
    /// For all pages of one list; also for one resource and for one prompt.
    pub list_timeout: Duration,
    /// For one call, from one progress notification to the next.
    pub call_timeout: Duration,
    /// For one call, whatever progress it reports.
    pub max_call_time: Duration,
    /// How long a process may take to exit after its input is closed, and again after SIGTERM.
    pub close_timeout: Duration,
    /// The size of one message.
    pub max_message_bytes: usize,
    /// The size of all pages of one list.
    pub max_list_bytes: usize,
    /// Items of one list; the rest is left out.
    pub max_list_items: usize,
    /// Pages of one list; the rest is left out.
    pub max_list_pages: usize,
    /// How often one request may require input.
    pub max_input_rounds: usize,
    /// Questions of a server during one call.
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

/// Options of a connection.
#[derive(Clone, Default)]
pub struct ClientOptions {
    /// Limits.
    pub limits: ClientLimits,
    /// The protocol version to use; `None` negotiates it.
    pub version: Option<ProtocolVersion>,
    /// Answers the server's requests. Without it, the client declares no capabilities.
    pub handler: Option<Arc<dyn ServerRequestHandler>>,
}

/// Options of one call.
#[derive(Clone, Copy)]
pub struct ToolCallOptions<'a> {
    /// Replaces [`ClientLimits::call_timeout`].
    pub timeout: Option<Duration>,
    /// Replaces [`ClientLimits::max_call_time`].
    pub max_time: Option<Duration>,
    /// Cancels the call.
    pub cancel: &'a Cancel,
    /// Receives progress, on the calling thread.
    pub progress: &'a dyn Fn(&ProgressUpdate),
    /// The span that the call belongs to, for the server.
    pub trace: Option<&'a TraceContext>,
}

impl<'a> ToolCallOptions<'a> {
    /// A call with the default timeouts that ignores progress.
    pub fn new(cancel: &'a Cancel) -> Self {
        Self { timeout: None, max_time: None, cancel, progress: &|_| {}, trace: None }
    }
}

/// A progress notification.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgressUpdate {
    /// The progress so far; grows from one update to the next.
    pub progress: f64,
    /// The progress at the end, if known.
    pub total: Option<f64>,
    /// The server's message, cleaned.
    pub message: Option<String>,
}

impl ProgressUpdate {
    pub(super) fn read(params: &Value) -> Option<Self> {
        let message = params.get("message").and_then(Value::as_str);
        Some(Self {
            progress: params.get("progress")?.as_f64()?,
            total: params.get("total").and_then(Value::as_f64),
            message: message.map(|text| clean(text, MAX_PROGRESS_CHARS)),
        })
    }
}
