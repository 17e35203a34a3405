//! Conversion of errors, and untrusted text in messages.

use haft_tool::{ErrorKind, ToolError, clip_chars};

use crate::client::{ClientError, McpError};

/// Characters of untrusted text that a message repeats.
const MAX_QUOTED_CHARS: usize = 200;

/// Untrusted text, shortened and escaped.
pub(super) fn quote(text: &str) -> String {
    clip_chars(text, MAX_QUOTED_CHARS, 0).escape_debug().to_string()
}

/// [`McpError::Unauthorized`].
pub(super) fn unauthorized(message: impl Into<String>) -> ClientError {
    ClientError::unauthorized(message)
}

/// Converts an error of the network or the store; `what` says what failed.
pub(super) fn convert(what: &str, error: &ToolError) -> ClientError {
    let kind = match error.kind {
        ErrorKind::Interrupted => McpError::Cancelled,
        ErrorKind::Timeout => McpError::TimedOut,
        ErrorKind::PermissionDenied => McpError::Unauthorized,
        _ => McpError::Unreachable,
    };
    ClientError::new(kind, format!("{what}: {}", error.message))
}
