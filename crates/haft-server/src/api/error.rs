//! Errors of the API.

use haft_net::server::{AccessDenied, BodyError};
use haft_tool::{ErrorKind, ToolError, Value, json};
use hyper::StatusCode;
use hyper::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use serde::Serialize;

use super::types::{ErrorBody, ErrorInfo};
use crate::reply::HttpReply;

/// Why a request failed.
#[derive(Debug)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    kind: &'static str,
    message: String,
    details: Option<Box<Value>>,
    /// What is wrong with the request's token (RFC 6750).
    token_error: Option<&'static str>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        Self { status, kind, message: message.into(), details: None, token_error: None }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ErrorKind::InvalidArguments.name(), message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, ErrorKind::NotFound.name(), message)
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, ErrorKind::Conflict.name(), message)
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Adds data for programs.
    pub(crate) fn with_details(mut self, details: &impl Serialize) -> Self {
        self.details = serde_json::to_value(details).ok().map(Box::new);
        self
    }

    pub(crate) fn into_reply(mut self) -> HttpReply {
        let (message, details) = (std::mem::take(&mut self.message), self.details.take());
        let error =
            ErrorInfo { kind: self.kind.to_owned(), message, details: details.map(|details| *details) };
        self.reply(&ErrorBody { error })
    }

    /// The reply of a proxy, in the form of a Loom server.
    pub(crate) fn into_proxy_reply(self) -> HttpReply {
        self.reply(&json!({"error": self.message}))
    }

    fn reply(&self, body: &impl Serialize) -> HttpReply {
        let Self { status, token_error, .. } = self;
        let reply = HttpReply::json(*status, body);
        match *status {
            StatusCode::UNAUTHORIZED => {
                let error = token_error.map(|error| format!(", error=\"{error}\"")).unwrap_or_default();
                reply.with(WWW_AUTHENTICATE, &format!("Bearer realm=\"haft\"{error}"))
            }
            StatusCode::TOO_MANY_REQUESTS => reply.with(RETRY_AFTER, "60"),
            StatusCode::SERVICE_UNAVAILABLE => reply.with(RETRY_AFTER, "1"),
            _ => reply,
        }
    }
}

impl From<ToolError> for ApiError {
    fn from(error: ToolError) -> Self {
        let status = match error.kind {
            ErrorKind::NotFound | ErrorKind::FileNotFound | ErrorKind::TargetNotFound => {
                StatusCode::NOT_FOUND
            }
            ErrorKind::InvalidArguments | ErrorKind::InvalidPath => StatusCode::BAD_REQUEST,
            ErrorKind::PermissionDenied => StatusCode::FORBIDDEN,
            ErrorKind::Conflict => StatusCode::CONFLICT,
            ErrorKind::ExecutionFailed => StatusCode::UNPROCESSABLE_ENTITY,
            ErrorKind::Timeout => StatusCode::GATEWAY_TIMEOUT,
            // Also serialization errors: invalid request bodies are refused earlier, so these come from the ledger.
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self { details: error.details.map(Box::new), ..Self::new(status, error.kind.name(), error.message) }
    }
}

impl From<AccessDenied> for ApiError {
    fn from(denied: AccessDenied) -> Self {
        let status = StatusCode::from_u16(denied.status).unwrap_or(StatusCode::FORBIDDEN);
        let kind = if status == StatusCode::UNAUTHORIZED { "unauthorized" } else { "access_denied" };
        Self { token_error: denied.token_error, ..Self::new(status, kind, denied.message) }
    }
}

impl From<BodyError> for ApiError {
    fn from(error: BodyError) -> Self {
        let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::BAD_REQUEST);
        Self::new(status, "body", error.message)
    }
}
