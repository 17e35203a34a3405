//! One POST of JSON to a chat's API: again when it may help, and never with the secret in a message.

use std::sync::Arc;
use std::time::Duration;

use haft_tool::{
    ErrorKind, Http, HttpRequest, HttpResponse, Redirects, Retry, Secret, ToolError, Value, clip_chars, json,
};

use crate::Waiting;

const RETRY: Retry = Retry {
    attempts: 5,
    statuses: &[408, 429, 500, 502, 503, 504],
    base: Duration::from_secs(1),
    cap: Duration::from_secs(30),
    longest: Duration::from_mins(2),
};

/// Where and how to post.
pub(crate) struct Post {
    /// What people call it.
    pub(crate) name: &'static str,
    pub(crate) http: Arc<dyn Http>,
    /// Covered wherever it would show.
    pub(crate) secret: Option<Secret>,
    /// How long an answer asks to be left alone.
    pub(crate) asked: fn(&HttpResponse) -> Option<Duration>,
}

impl Post {
    /// Posts; any answer that is not asked for again comes back.
    pub(crate) fn send(
        &self,
        url: String,
        headers: &[(&str, String)],
        body: &Value,
        wait: &mut Waiting<'_>,
    ) -> Result<HttpResponse, ToolError> {
        let mut request = HttpRequest {
            method: "POST".to_owned(),
            body: Some(body.to_string().into_bytes()),
            redirects: Redirects::Never,
            keep_bytes: 64 << 10,
            ..HttpRequest::get(url)
        };
        request.headers.push(("Content-Type".to_owned(), "application/json; charset=utf-8".to_owned()));
        request.headers.extend(headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        RETRY.send(self.http.as_ref(), &request, &self.asked, wait).map_err(|error| ToolError {
            message: self.covered(&format!("{}: {}", self.name, error.message)),
            ..error
        })
    }

    /// An answer that is no success.
    pub(crate) fn refused(&self, answer: &HttpResponse, words: Option<&str>) -> ToolError {
        let status = answer.status;
        let kind = match status {
            401 | 403 => ErrorKind::PermissionDenied,
            400 | 404 | 405 | 410 | 413 | 422 => ErrorKind::InvalidArguments,
            408 | 504 => ErrorKind::Timeout,
            _ => ErrorKind::ExecutionFailed,
        };
        let mut message =
            format!("{} answered HTTP {status} {}", self.name, answer.status_text).trim_end().to_owned();
        if let Some(words) = words.filter(|words| !words.is_empty()) {
            message.push_str(": ");
            message.push_str(&clip_chars(words, 300, 0));
        }
        let wait = (self.asked)(answer).map(|wait| wait.as_secs_f64());
        if let Some(wait) = wait.filter(|_| status == 429) {
            message.push_str(&format!("; it wants to be left alone for {} s", wait.ceil()));
        }
        ToolError::new(kind, self.covered(&message))
            .with_details(json!({"status": status, "retryAfterSeconds": wait}))
    }

    /// The text without the secret.
    pub(crate) fn covered(&self, text: &str) -> String {
        self.secret.as_ref().map_or_else(|| text.to_owned(), |secret| secret.cover(text))
    }
}

/// An answer's JSON, or null.
pub(crate) fn json_of(answer: &HttpResponse) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or(Value::Null)
}

/// The error of a message in several pieces says how far it came.
pub(crate) fn partly(error: ToolError, sent: usize, pieces: usize) -> ToolError {
    if sent == 0 {
        return error;
    }
    ToolError {
        message: format!("{} (the first {sent} of {pieces} parts were sent)", error.message),
        ..error
    }
}

/// A chat's API refuses messages without words, and people cannot read them.
pub(crate) fn has_words(content: &str) -> Result<(), ToolError> {
    if content.trim().is_empty() {
        return Err(ToolError::invalid_arguments("content: expected words, got an empty text"));
    }
    Ok(())
}
