//! Requests to the API of a chat service: JSON by POST, with retries, and with the secret redacted from errors.

use std::sync::Arc;
use std::time::Duration;

use haft_tool::{
    ErrorKind, Http, HttpRequest, HttpResponse, Redirects, RetryPolicy, Secret, ToolError, Value, clip_chars,
    json,
};

use crate::WaitToRetry;

const RETRY: RetryPolicy = RetryPolicy {
    attempts: 5,
    statuses: &[408, 429, 500, 502, 503, 504],
    base: Duration::from_secs(1),
    cap: Duration::from_secs(30),
    longest: Duration::from_mins(2),
};
const MAX_RESPONSE_BYTES: usize = 64 << 10;
/// Characters of a service's explanation in an error.
const MAX_EXPLANATION_CHARS: usize = 300;

pub(crate) struct ChatApi {
    /// The service's name in errors.
    pub(crate) name: &'static str,
    pub(crate) http: Arc<dyn Http>,
    /// Redacted from errors.
    pub(crate) secret: Option<Secret>,
    /// Reads from a response how long to wait before the next request.
    pub(crate) retry_delay: fn(&HttpResponse) -> Option<Duration>,
}

impl ChatApi {
    /// Posts `body` and returns the last response, whatever its status.
    pub(crate) fn post(
        &self,
        url: String,
        headers: &[(&str, String)],
        body: &Value,
        wait: &mut WaitToRetry<'_>,
    ) -> Result<HttpResponse, ToolError> {
        let mut request = HttpRequest {
            method: "POST".to_owned(),
            body: Some(body.to_string().into_bytes()),
            redirects: Redirects::Never,
            keep_bytes: MAX_RESPONSE_BYTES,
            ..HttpRequest::get(url)
        };
        request.headers.push(("Content-Type".to_owned(), "application/json; charset=utf-8".to_owned()));
        request.headers.extend(headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        RETRY.send(self.http.as_ref(), &request, &self.retry_delay, wait).map_err(|error| {
            let message = self.redact(&format!("{}: {}", self.name, error.message));
            error.with_message(message)
        })
    }

    /// Returns the error for a response that is not a success.
    pub(crate) fn error(&self, response: &HttpResponse, explanation: Option<&str>) -> ToolError {
        let status = response.status;
        let kind = match status {
            401 | 403 => ErrorKind::PermissionDenied,
            400 | 404 | 405 | 410 | 413 | 422 => ErrorKind::InvalidArguments,
            408 | 504 => ErrorKind::Timeout,
            _ => ErrorKind::ExecutionFailed,
        };
        let mut message =
            format!("{} returned HTTP {status} {}", self.name, response.status_text).trim_end().to_owned();
        if let Some(explanation) = explanation.filter(|explanation| !explanation.is_empty()) {
            message.push_str(": ");
            message.push_str(&clip_chars(explanation, MAX_EXPLANATION_CHARS, 0));
        }
        let delay = (self.retry_delay)(response).map(|delay| delay.as_secs_f64());
        if let Some(delay) = delay.filter(|_| status == 429) {
            message.push_str(&format!("; try again in {} s", delay.ceil()));
        }
        ToolError::new(kind, self.redact(&message))
            .with_details(json!({"status": status, "retryAfterSeconds": delay}))
    }

    pub(crate) fn redact(&self, text: &str) -> String {
        self.secret.as_ref().map_or_else(|| text.to_owned(), |secret| secret.cover(text))
    }
}

/// Returns the JSON of a response, or null.
pub(crate) fn json_body(response: &HttpResponse) -> Value {
    serde_json::from_slice(&response.body).unwrap_or(Value::Null)
}

pub(crate) fn is_success(response: &HttpResponse) -> bool {
    (200..300).contains(&response.status)
}

/// Rejects messages without text, as chat services do.
pub(crate) fn require_text(content: &str) -> Result<(), ToolError> {
    if content.trim().is_empty() {
        return Err(ToolError::invalid_arguments("content: expected text, got only white space"));
    }
    Ok(())
}
