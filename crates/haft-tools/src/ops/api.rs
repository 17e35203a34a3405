//! HTTP calls of JSON APIs: retries reported as progress, errors with the server's message and without the API key.

use std::time::Duration;

use haft_tool::{
    Cancel, ErrorKind, Http, HttpResponse, Progress, RetryPolicy, Secret, ToolError, Value, World,
    clip_chars, json, retry_after,
};
use haft_tool::{HttpRequest, net::Authority};
use url::Url;

/// The longest response body that is read.
pub(crate) const MAX_RESPONSE_BYTES: usize = 2 << 20;
/// How much of a server's error message is shown.
const MAX_ERROR_CHARS: usize = 300;
/// How much of a response that is not JSON is shown.
const MAX_EXCERPT_BYTES: usize = 80;

/// How one API is called.
pub(crate) struct JsonApi<'a> {
    pub(crate) name: &'a str,
    pub(crate) retry: RetryPolicy,
    /// Removed from every message that repeats it.
    pub(crate) secret: Option<&'a Secret>,
    /// How long a response says to wait before the next attempt.
    pub(crate) retry_delay: &'a dyn Fn(&HttpResponse) -> Option<Duration>,
    /// What the user can do about a status.
    pub(crate) advice: &'a dyn Fn(u16) -> Option<&'static str>,
}

/// What a request goes through: the World of a call, or the client of a program that makes none.
#[derive(Clone, Copy)]
pub(crate) struct ApiClient<'a> {
    pub(crate) http: &'a dyn Http,
    pub(crate) cancel: &'a Cancel,
    pub(crate) on_progress: &'a dyn Fn(Progress),
}

/// Runs `send` with the client of a call.
pub(crate) fn with_client<T>(world: &dyn World, send: impl FnOnce(ApiClient<'_>) -> T) -> T {
    let on_progress = |progress| world.progress(progress);
    send(ApiClient { http: world.http(), cancel: world.cancelled(), on_progress: &on_progress })
}

impl JsonApi<'_> {
    /// Sends the request. A response that is not a success, or that was cut, is an error.
    pub(crate) fn send(
        &self,
        client: ApiClient<'_>,
        request: &HttpRequest,
    ) -> Result<HttpResponse, ToolError> {
        let response = self.retry.send(client.http, request, self.retry_delay, &mut |pause| {
            let line = format!("{}: {}", self.name, self.redact(&pause.line()));
            (client.on_progress)(Progress::message(line));
            if client.cancel.wait(pause.wait) {
                return Err(ToolError::new(
                    ErrorKind::Interrupted,
                    "cancelled while waiting for another attempt",
                ));
            }
            Ok(())
        });
        let response = response.map_err(|error| {
            let message = self.redact(&format!("{}: {}", self.name, error.message));
            error.with_message(message)
        })?;
        if !(200..300).contains(&response.status) {
            return Err(self.status_error(&response));
        }
        if response.more || response.total_bytes > response.body.len() as u64 {
            return Err(ToolError::failed(format!(
                "{} answered with more than {} bytes; ask for less",
                self.name,
                response.body.len()
            )));
        }
        Ok(response)
    }

    fn status_error(&self, response: &HttpResponse) -> ToolError {
        let HttpResponse { status, status_text, .. } = response;
        let mut message = format!("{} answered HTTP {status} {status_text}", self.name).trim_end().to_owned();
        if let Some(text) = error_text(&response.body) {
            message.push_str(": ");
            message.push_str(&self.redact(&text));
        }
        let wait = (self.retry_delay)(response).filter(|_| self.retry.statuses.contains(status));
        if let Some(wait) = wait.filter(|wait| !wait.is_zero()) {
            message.push_str(&format!("; retry after {} s", wait.as_secs_f64().ceil()));
        }
        if let Some(advice) = (self.advice)(*status) {
            message.push_str("; ");
            message.push_str(advice);
        }
        let kind = match status {
            408 | 504 => ErrorKind::Timeout,
            _ => ErrorKind::ExecutionFailed,
        };
        let seconds = wait.map(|wait| wait.as_secs_f64());
        ToolError::new(kind, message).with_details(json!({"status": status, "retryAfterSeconds": seconds}))
    }

    fn redact(&self, text: &str) -> String {
        self.secret.map_or_else(|| text.to_owned(), |secret| secret.cover(text))
    }

    /// An API without a key, with default retries.
    pub(crate) fn plain(name: &str) -> JsonApi<'_> {
        JsonApi {
            name,
            retry: RetryPolicy::default(),
            secret: None,
            retry_delay: &retry_after,
            advice: &|_| None,
        }
    }
}

/// Parses the response body as JSON.
pub(crate) fn parse_json(name: &str, response: &HttpResponse) -> Result<Value, ToolError> {
    serde_json::from_slice(&response.body).map_err(|error| {
        let excerpt = &response.body[..response.body.len().min(MAX_EXCERPT_BYTES)];
        let excerpt = String::from_utf8_lossy(excerpt);
        let kind = response.header("content-type").unwrap_or("no content type");
        ToolError::new(
            ErrorKind::Serialization,
            format!("{name} did not answer with JSON ({kind}: {excerpt:?}): {error}"),
        )
    })
}

/// The error for JSON that lacks an expected field.
pub(crate) fn missing_field(name: &str, what: &str) -> ToolError {
    ToolError::new(ErrorKind::Serialization, format!("{name} answered with JSON that has no {what}"))
}

/// The server's error message, from the fields that servers commonly use, else the body's text.
fn error_text(body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    let found = serde_json::from_str::<Value>(&text).ok().and_then(|value| {
        ["/error/message", "/error/detail", "/detail/error", "/error", "/detail", "/message", "/description"]
            .iter()
            .find_map(|pointer| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned))
    });
    let text = found.unwrap_or_else(|| text.split_whitespace().collect::<Vec<_>>().join(" "));
    (!text.is_empty()).then(|| clip_chars(&text, MAX_ERROR_CHARS, 0).into_owned())
}

/// Parses a URL from the settings.
pub(crate) fn setting_url(setting: &str, text: &str) -> Result<Url, ToolError> {
    let invalid =
        |why: String| ToolError::failed(format!("the setting {setting} is not a usable URL: {why}"));
    let url = Url::parse(text).map_err(|error| invalid(error.to_string()))?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        other => Err(invalid(format!("its scheme is {other}, not http or https"))),
    }
}

/// The host of a URL, as effects and settings name it.
pub(crate) fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let named = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    Authority::parse(&named).map_or(named, |authority| authority.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_text_is_found_in_the_usual_fields() {
        for (body, expected) in [
            (
                r#"{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED"}}"#,
                Some("Quota exceeded"),
            ),
            (
                r#"{"type":"ErrorResponse","error":{"code":"RATE_LIMITED","detail":"Too fast"}}"#,
                Some("Too fast"),
            ),
            (r#"{"detail":{"error":"Unauthorized"}}"#, Some("Unauthorized")),
            (r#"{"error":"query is empty"}"#, Some("query is empty")),
            ("<html>\n  Bad\n gateway", Some("<html> Bad gateway")),
            ("", None),
        ] {
            assert_eq!(error_text(body.as_bytes()).as_deref(), expected, "{body}");
        }
    }

    #[test]
    fn host_has_a_port_only_where_it_is_not_the_default() {
        for (url, host) in [
            ("https://api.tavily.com/search", "api.tavily.com"),
            ("http://127.0.0.1:8080", "127.0.0.1:8080"),
            ("http://user:key@[::1]:9/x", "[::1]:9"),
            ("https://Example.COM:443", "example.com"),
        ] {
            assert_eq!(host_of(&setting_url("x", url).unwrap()), host);
        }
        assert!(setting_url("tools.x", "file:///etc/passwd").unwrap_err().message.contains("tools.x"));
    }
}
