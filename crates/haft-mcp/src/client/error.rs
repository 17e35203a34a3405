//! Errors of the client.

use std::fmt;

use crate::wire::RpcError;

/// What went wrong with a server.
#[derive(Debug, Clone, PartialEq)]
pub enum McpError {
    /// It could not be started or reached.
    Unreachable,
    /// It exited, or closed the connection.
    Disconnected,
    /// It took too long.
    TimedOut,
    /// The caller has cancelled the request.
    Cancelled,
    /// It answered with an error.
    Rpc(Box<RpcError>),
    /// It answered with an HTTP error that contains no response.
    HttpStatus(u16),
    /// It no longer knows the session.
    SessionExpired,
    /// It sent something invalid.
    InvalidMessage,
    /// It sent more than the limit.
    TooLarge,
    /// It supports no protocol version that this client supports.
    UnsupportedVersion,
    /// It requires authorization that was not granted.
    Unauthorized,
    /// It requires something that this client does not offer.
    Unsupported,
    /// The connection was closed on this side.
    Closed,
}

/// An error of the client: a kind for programs, a message for people.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientError {
    /// The kind.
    pub kind: McpError,
    /// What happened and what to do.
    pub message: String,
}

impl ClientError {
    /// An error of `kind`.
    pub fn new(kind: McpError, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// [`McpError::Unreachable`].
    pub fn unreachable(message: impl Into<String>) -> Self {
        Self::new(McpError::Unreachable, message)
    }

    /// [`McpError::Disconnected`].
    pub fn disconnected(message: impl Into<String>) -> Self {
        Self::new(McpError::Disconnected, message)
    }

    /// [`McpError::TimedOut`].
    pub fn timed_out(message: impl Into<String>) -> Self {
        Self::new(McpError::TimedOut, message)
    }

    /// [`McpError::Cancelled`], for a request of `method`.
    pub fn cancelled(method: &str) -> Self {
        Self::new(McpError::Cancelled, format!("`{method}` was cancelled"))
    }

    /// [`McpError::InvalidMessage`].
    pub fn invalid_message(message: impl Into<String>) -> Self {
        Self::new(McpError::InvalidMessage, message)
    }

    /// [`McpError::TooLarge`].
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(McpError::TooLarge, message)
    }

    /// [`McpError::Unauthorized`].
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(McpError::Unauthorized, message)
    }

    /// [`McpError::Closed`].
    pub fn closed() -> Self {
        Self::new(McpError::Closed, "the connection to the server was closed")
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ClientError {}

impl From<RpcError> for ClientError {
    fn from(error: RpcError) -> Self {
        Self { message: error.to_string(), kind: McpError::Rpc(Box::new(error)) }
    }
}
