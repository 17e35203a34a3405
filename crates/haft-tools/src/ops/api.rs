//! Calls of JSON APIs: retries that watchers see, and errors in the server's own words without its caller's key.

use std::time::Duration;

use haft_tool::{
    ErrorKind, HttpResponse, Progress, Retry, Secret, ToolError, Value, World, clip_chars, json, retry_after,
};
use haft_tool::{HttpRequest, net::Authority};
use url::Url;

/// No answer that is meant for a model is longer.
pub(crate) const MOST_BYTES: usize = 2 << 20;
const MOST_WORDS: usize = 300;

/// How one API is called.
pub(crate) struct Api<'a> {
    pub(crate) name: &'a str,
    pub(crate) retry: Retry,
    /// Is covered wherever an answer or an error repeats it.
    pub(crate) secret: Option<&'a Secret>,
    /// How long an answer asks to be left alone.
    pub(crate) wait: &'a dyn Fn(&HttpResponse) -> Option<Duration>,
    /// What to do about a status.
    pub(crate) advice: &'a dyn Fn(u16) -> Option<&'static str>,
}

impl Api<'_> {
    /// Sends it; what comes back is a success and whole.
    pub(crate) fn send(&self, world: &dyn World, request: &HttpRequest) -> Result<HttpResponse, ToolError> {
        let answer = self.retry.send(world.http(), request, self.wait, &mut |pause| {
            world.progress(Progress::message(format!("{}: {}", self.name, self.covered(&pause.line()))));
            if world.cancelled().wait(pause.wait) {
                return Err(ToolError::new(
                    ErrorKind::Interrupted,
                    "cancelled while waiting for another attempt",
                ));
            }
            Ok(())
        });
        let answer = answer.map_err(|error| ToolError {
            message: self.covered(&format!("{}: {}", self.name, error.message)),
            ..error
        })?;
        if !(200..300).contains(&answer.status) {
            return Err(self.refused(&answer));
        }
        if answer.more || answer.total_bytes > answer.body.len() as u64 {
            return Err(ToolError::failed(format!(
                "{} answered with more than {} bytes; ask for less",
                self.name,
                answer.body.len()
            )));
        }
        Ok(answer)
    }

    fn refused(&self, answer: &HttpResponse) -> ToolError {
        let HttpResponse { status, status_text, .. } = answer;
        let mut message = format!("{} answered HTTP {status} {status_text}", self.name).trim_end().to_owned();
        if let Some(words) = said(&answer.body) {
            message.push_str(": ");
            message.push_str(&self.covered(&words));
        }
        let wait = (self.wait)(answer).filter(|_| self.retry.statuses.contains(status));
        if let Some(wait) = wait.filter(|wait| !wait.is_zero()) {
            message.push_str(&format!("; it wants to be left alone for {} s", wait.as_secs_f64().ceil()));
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

    fn covered(&self, text: &str) -> String {
        self.secret.map_or_else(|| text.to_owned(), |secret| secret.cover(text))
    }

    /// For answers that are read as they come.
    pub(crate) fn plain(name: &str) -> Api<'_> {
        Api { name, retry: Retry::default(), secret: None, wait: &retry_after, advice: &|_| None }
    }
}

/// The answer's JSON.
pub(crate) fn json_of(name: &str, answer: &HttpResponse) -> Result<Value, ToolError> {
    serde_json::from_slice(&answer.body).map_err(|error| {
        let beginning = String::from_utf8_lossy(&answer.body[..answer.body.len().min(80)]).into_owned();
        let kind = answer.header("content-type").unwrap_or("no type");
        ToolError::new(
            ErrorKind::Serialization,
            format!("{name} answered with something that is not JSON ({kind}: {beginning:?}): {error}"),
        )
    })
}

/// An answer that is JSON but not what was expected.
pub(crate) fn unexpected(name: &str, what: &str) -> ToolError {
    ToolError::new(ErrorKind::Serialization, format!("{name} answered with JSON that has no {what}"))
}

/// What a server says about an error, in any of the usual places.
fn said(body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    let found = serde_json::from_str::<Value>(&text).ok().and_then(|value| {
        ["/error/message", "/error/detail", "/detail/error", "/error", "/detail", "/message", "/description"]
            .iter()
            .find_map(|place| value.pointer(place).and_then(Value::as_str).map(str::to_owned))
    });
    let words = found.unwrap_or_else(|| text.split_whitespace().collect::<Vec<_>>().join(" "));
    (!words.is_empty()).then(|| clip_chars(&words, MOST_WORDS, 0).into_owned())
}

/// An address from the settings, read.
pub(crate) fn address(setting: &str, text: &str) -> Result<Url, ToolError> {
    let wrong =
        |why: String| ToolError::failed(format!("{setting} in the settings is no address to ask: {why}"));
    let url = Url::parse(text).map_err(|error| wrong(error.to_string()))?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        other => Err(wrong(format!("it starts with {other}:, not with http: or https:"))),
    }
}

/// The host of an address, as effects and settings name it.
pub(crate) fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let named = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    Authority::parse(&named).map_or(named, |place| place.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_found_where_servers_put_them() {
        for (body, words) in [
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
            assert_eq!(said(body.as_bytes()).as_deref(), words, "{body}");
        }
    }

    #[test]
    fn hosts_are_named_as_effects_name_them() {
        for (url, host) in [
            ("https://api.tavily.com/search", "api.tavily.com"),
            ("http://127.0.0.1:8080", "127.0.0.1:8080"),
            ("http://user:key@[::1]:9/x", "[::1]:9"),
            ("https://Example.COM:443", "example.com"),
        ] {
            assert_eq!(host_of(&address("x", url).unwrap()), host);
        }
        assert!(address("tools.x", "file:///etc/passwd").unwrap_err().message.contains("tools.x"));
    }
}
