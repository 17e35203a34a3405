//! Why a server did not do what was asked.

use std::fmt;

use crate::wire::RpcError;

/// What went wrong between Haft and a server.
#[derive(Debug, Clone, PartialEq)]
pub enum McpError {
    /// It could not be started or reached.
    Unreachable,
    /// It ended, or broke the connection off.
    Disconnected,
    /// It took too long.
    TimedOut,
    /// Nobody wants the answer any more.
    Cancelled,
    /// It answered with an error.
    Rpc(Box<RpcError>),
    /// It answered with a status of HTTP's that is no success, and no words of the protocol.
    HttpStatus(u16),
    /// It does not know the session any more.
    SessionExpired,
    /// What it said makes no sense.
    InvalidMessage,
    /// It said more than is listened to.
    TooLarge,
    /// It speaks no revision that is spoken here.
    UnsupportedVersion,
    /// It answers only those who may ask.
    Unauthorized,
    /// It does not offer this.
    Unsupported,
    /// The connection was closed on this side.
    Closed,
}

/// Why a server did not do what was asked: a kind for programs, a sentence for the reader.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientError {
    /// Which kind of trouble this is.
    pub kind: McpError,
    /// What happened and what to do next.
    pub message: String,
}

impl ClientError {
    /// An error of `kind` that says `message`.
    pub fn new(kind: McpError, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// [`McpError::Unreachable`].
    pub fn unreachable(message: impl Into<String>) -> Self {
        Self::new(McpError::Unreachable, message)
    }

    /// [`McpError::TimedOut`].
    pub fn timed_out(message: impl Into<String>) -> Self {
        Self::new(McpError::TimedOut, message)
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
