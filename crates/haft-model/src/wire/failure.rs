//! Errors as providers send them, with a status or inside a successful response.

use std::fmt;
use std::time::Duration;

use haft_tool::{Value, clip_chars, seconds};

use crate::ModelErrorKind;

/// Characters of a provider's explanation.
const MAX_EXPLANATION_CHARS: usize = 600;

/// A response that is an error, or that does not follow the wire format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireError {
    /// Which kind of failure.
    pub kind: ModelErrorKind,
    /// What the provider said, or what is wrong with the response.
    pub message: String,
    /// How long the body says to wait.
    pub retry_after: Option<Duration>,
}

/// Words of error types and codes, and what they mean. The first that is found counts.
const CODES: &[(&str, ModelErrorKind)] = &[
    ("insufficient_quota", ModelErrorKind::Auth),
    ("billing", ModelErrorKind::Auth),
    ("authentication", ModelErrorKind::Auth),
    ("unauthenticated", ModelErrorKind::Auth),
    ("permission", ModelErrorKind::Auth),
    ("invalid_api_key", ModelErrorKind::Auth),
    ("api_key_invalid", ModelErrorKind::Auth),
    ("context_length_exceeded", ModelErrorKind::ContextTooLong),
    ("contextwindowexceeded", ModelErrorKind::ContextTooLong),
    ("exceed_context_size", ModelErrorKind::ContextTooLong),
    ("request_too_large", ModelErrorKind::ContextTooLong),
    ("rate_limit", ModelErrorKind::RateLimit),
    ("resource_exhausted", ModelErrorKind::RateLimit),
    ("overloaded", ModelErrorKind::Overloaded),
    ("unavailable", ModelErrorKind::Overloaded),
    ("server_error", ModelErrorKind::Overloaded),
    ("api_error", ModelErrorKind::Overloaded),
    ("timeout", ModelErrorKind::Overloaded),
    ("content_policy", ModelErrorKind::Refused),
    ("content_filter", ModelErrorKind::Refused),
    ("model_not_found", ModelErrorKind::UnknownModel),
    ("not_found_error", ModelErrorKind::UnknownModel),
];

/// Sentences that say that the conversation is too long, where the type of the error does not.
const TOO_LONG: &[&str] = &[
    "prompt is too long",
    "maximum context length",
    "context window",
    "context length",
    "context limit",
    "exceeds the maximum number of tokens",
    "exceeds the available context size",
];

impl WireError {
    /// A response that does not follow the wire format.
    pub(crate) fn protocol(message: impl Into<String>) -> Self {
        Self { kind: ModelErrorKind::Protocol, message: message.into(), retry_after: None }
    }

    /// An error that a provider sent: the body of a response with this status, or an object inside of a response.
    pub fn read(status: Option<u16>, body: &Value) -> Self {
        let error = body.get("error").unwrap_or(body);
        let text = |pointer: &str| error.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let message = [error.as_str().unwrap_or_default(), text("/message"), text("/detail")]
            .into_iter()
            .find(|text| !text.is_empty())
            .or_else(|| body.get("detail").and_then(Value::as_str))
            .unwrap_or_default();
        // OpenRouter wraps the error of the provider behind it.
        let inner = text("/metadata/raw");
        let message = match (message, inner) {
            ("", inner) => inner.to_owned(),
            (message, "") => message.to_owned(),
            (message, inner) => format!("{message}: {inner}"),
        };
        let code = error.get("code");
        let number = code.and_then(Value::as_u64).or_else(|| code?.as_str()?.parse().ok());
        let status = status.or_else(|| u16::try_from(number?).ok());
        let mut words = String::new();
        for word in [text("/type"), text("/code"), text("/status"), reason(error)] {
            words.push_str(&word.to_ascii_lowercase());
            words.push(' ');
        }
        Self {
            kind: classify(status, &words, &message.to_ascii_lowercase()),
            message: clip_chars(&message, MAX_EXPLANATION_CHARS, 0).into_owned(),
            retry_after: retry_delay(error),
        }
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for WireError {}

/// The reason in Google's details of an error.
fn reason(error: &Value) -> &str {
    let details = error.get("details").and_then(Value::as_array);
    details
        .into_iter()
        .flatten()
        .find_map(|detail| detail.get("reason").and_then(Value::as_str))
        .unwrap_or_default()
}

/// Google's `RetryInfo`, whose delay is a number and an `s`.
fn retry_delay(error: &Value) -> Option<Duration> {
    let details = error.get("details").and_then(Value::as_array)?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay").and_then(Value::as_str))?;
    seconds(delay.strip_suffix('s').unwrap_or(delay))
}

fn classify(status: Option<u16>, words: &str, message: &str) -> ModelErrorKind {
    if TOO_LONG.iter().any(|sentence| message.contains(sentence)) && status.is_none_or(|status| status < 429)
    {
        return ModelErrorKind::ContextTooLong;
    }
    let by_word = CODES.iter().find(|(word, _)| words.contains(word)).map(|(_, kind)| *kind);
    match status {
        Some(401..=403) => ModelErrorKind::Auth,
        // A quota that is used up does not come back by waiting.
        Some(429) => {
            by_word.filter(|kind| *kind == ModelErrorKind::Auth).unwrap_or(ModelErrorKind::RateLimit)
        }
        Some(408 | 409 | 500..=599) => ModelErrorKind::Overloaded,
        Some(413) => ModelErrorKind::ContextTooLong,
        Some(404) if message.contains("model") => ModelErrorKind::UnknownModel,
        Some(_) => by_word.unwrap_or(ModelErrorKind::BadRequest),
        None => by_word.unwrap_or_else(|| {
            let is_request = ["invalid", "bad_request"].iter().any(|word| words.contains(word));
            if is_request { ModelErrorKind::BadRequest } else { ModelErrorKind::Overloaded }
        }),
    }
}
