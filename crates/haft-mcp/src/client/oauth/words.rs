//! Words of others, and errors of others, in a form that can be passed on.

use haft_tool::{ErrorKind, ToolError, clip_chars};

use crate::client::{ClientError, McpError};

/// How much of what a stranger says is repeated.
const MOST_CHARS: usize = 200;

/// What a stranger said, short and harmless to show.
pub(super) fn said(text: &str) -> String {
    clip_chars(text, MOST_CHARS, 0).escape_debug().to_string()
}

/// That somebody may not ask, or may not be asked.
pub(super) fn refused(message: impl Into<String>) -> ClientError {
    ClientError::unauthorized(message)
}

/// The door's or the vault's error, with what was being done.
pub(super) fn passed_on(doing: &str, error: &ToolError) -> ClientError {
    let kind = match error.kind {
        ErrorKind::Interrupted => McpError::Cancelled,
        ErrorKind::Timeout => McpError::TimedOut,
        ErrorKind::PermissionDenied => McpError::Unauthorized,
        _ => McpError::Unreachable,
    };
    ClientError::new(kind, format!("{doing}: {}", error.message))
}
