//! Failures as clients are told about them.

use std::time::Duration;

use haft_model::{ModelError, ModelErrorKind};
use haft_net::server::WholeResponse;
use haft_tool::{ErrorKind, ToolError, Value, json};

/// A status and an explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProxyFailure {
    pub(super) status: u16,
    pub(super) message: String,
    /// How long the upstream server asks clients to wait.
    retry_after: Option<Duration>,
}

impl ProxyFailure {
    pub(super) fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), retry_after: None }
    }

    /// The request is not valid.
    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, message)
    }

    /// A model did not answer. The client is not told what the server's operator can do about it.
    pub(super) fn of_model(error: &ModelError) -> Self {
        let status = match (error.status, error.kind) {
            (Some(429), _) | (_, ModelErrorKind::RateLimit | ModelErrorKind::Cancelled) => 503,
            (Some(408 | 504), _) | (_, ModelErrorKind::Timeout) => 504,
            _ => 502,
        };
        Self { status, message: error.message.clone(), retry_after: error.retry_after }
    }

    /// A search engine did not answer. A status that means a wrong key or wrong settings is the server's own fault.
    pub(super) fn of_search(error: &ToolError) -> Self {
        let detail = |name: &str| error.details.as_ref().and_then(|details| details.get(name));
        let status = match detail("status").and_then(Value::as_u64) {
            Some(429) => 503,
            Some(408 | 504) => 504,
            Some(400..=499) => 500,
            None if error.kind == ErrorKind::Timeout => 504,
            _ => 502,
        };
        let wait = detail("retryAfterSeconds").and_then(Value::as_f64);
        let retry_after = wait.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Self { status, message: error.message.clone(), retry_after }
    }

    /// The response for this failure.
    pub(super) fn into_response(self) -> WholeResponse {
        let mut headers = Vec::new();
        if self.status == 405 {
            headers.push(("allow", "POST".to_owned()));
        }
        if let Some(wait) = self.retry_after.filter(|_| self.status == 503) {
            headers.push(("retry-after", wait.as_secs_f64().ceil().to_string()));
        }
        WholeResponse { status: self.status, headers, body: json!({"error": self.message}).to_string() }
    }
}
