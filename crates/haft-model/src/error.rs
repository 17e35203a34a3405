//! Why a model did not answer.

use std::fmt;
use std::time::Duration;

use haft_tool::{RETRY_STATUSES, Secret};
use serde::{Deserialize, Serialize};

use crate::ModelResponse;

/// Which kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The key is missing or not accepted, or has no credit.
    Auth,
    /// Too many requests or tokens in a time.
    RateLimit,
    /// The provider cannot serve the request now.
    Overloaded,
    /// The conversation does not fit into the model's context.
    ContextTooLong,
    /// The provider refuses the content.
    Refused,
    /// The provider does not accept the request.
    BadRequest,
    /// The provider does not know the model.
    UnknownModel,
    /// The provider could not be reached, or the connection broke.
    Network,
    /// The provider was silent for too long.
    Timeout,
    /// The answer does not follow the wire format, or ended too early.
    Protocol,
    /// The caller cancelled.
    Cancelled,
    /// The script of an offline model does not fit the conversation.
    Script,
    /// A setting is missing or wrong.
    Settings,
}

/// Why a model did not answer.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ModelError {
    /// Which kind of failure.
    pub kind: ModelErrorKind,
    /// What happened.
    pub message: String,
    /// What the user can do; may be empty.
    pub advice: String,
    /// The provider.
    pub provider: String,
    /// The status of the HTTP response, if there was one.
    pub status: Option<u16>,
    /// How long the provider wants to be left alone.
    pub retry_after: Option<Duration>,
    /// The provider's name for the request.
    pub request_id: Option<Box<str>>,
    /// What had arrived: complete parts and the text so far, without unfinished calls.
    pub partial: Option<Box<ModelResponse>>,
}

impl ModelError {
    /// A failure that says `message`.
    pub fn new(kind: ModelErrorKind, provider: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            advice: String::new(),
            provider: provider.into(),
            status: None,
            retry_after: None,
            request_id: None,
            partial: None,
        }
    }

    /// The same failure with what the user can do.
    #[must_use]
    pub fn with_advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = advice.into();
        self
    }

    /// Whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        use ModelErrorKind::{Network, Overloaded, Protocol, RateLimit};
        let is_retried = |status: &u16| *status < 400 || RETRY_STATUSES.contains(status);
        matches!(self.kind, RateLimit | Overloaded | Network | Protocol)
            && self.status.as_ref().is_none_or(is_retried)
    }

    /// The same failure with the key covered wherever a provider repeated it.
    #[must_use]
    pub(crate) fn covering(mut self, secret: Option<&Secret>) -> Self {
        if let Some(secret) = secret {
            self.message = secret.cover(&self.message);
            self.advice = secret.cover(&self.advice);
        }
        self
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = self.message.trim_end();
        let stop = if message.ends_with(['.', '!', '?']) { "" } else { "." };
        match self.advice.as_str() {
            "" => write!(f, "{message}{stop}"),
            advice => write!(f, "{message}{stop} {advice}"),
        }
    }
}

impl std::error::Error for ModelError {}
