//! Why a server did not do what was asked.

use std::fmt;

use crate::wire::RpcError;

/// What went wrong between Haft and a server.
#[derive(Debug, Clone, PartialEq)]
pub enum Trouble {
    /// It could not be started or reached.
    Unreachable,
    /// It ended, or broke the connection off.
    Ended,
    /// It took too long.
    Late,
    /// Nobody wants the answer any more.
    Cancelled,
    /// It answered with an error.
    Answered(Box<RpcError>),
    /// It answered with a status of HTTP's that is no success, and no words of the protocol.
    Status(u16),
    /// It does not know the session any more.
    Forgotten,
    /// What it said makes no sense.
    Garbled,
    /// It said more than is listened to.
    TooMuch,
    /// It speaks no revision that is spoken here.
    Version,
    /// It answers only those who may ask.
    Unauthorized,
    /// It does not offer this.
    Unable,
    /// The connection was closed on this side.
    Closed,
}

/// Why a server did not do what was asked: a kind for programs, a sentence for the reader.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientError {
    /// Which kind of trouble this is.
    pub kind: Trouble,
    /// What happened and what to do next.
    pub message: String,
}

impl ClientError {
    /// An error of `kind` that says `message`.
    pub fn new(kind: Trouble, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// [`Trouble::Unreachable`].
    pub fn unreachable(message: impl Into<String>) -> Self {
        Self::new(Trouble::Unreachable, message)
    }

    /// [`Trouble::Late`].
    pub fn late(message: impl Into<String>) -> Self {
        Self::new(Trouble::Late, message)
    }

    /// [`Trouble::Garbled`].
    pub fn garbled(message: impl Into<String>) -> Self {
        Self::new(Trouble::Garbled, message)
    }

    /// [`Trouble::TooMuch`].
    pub fn too_much(message: impl Into<String>) -> Self {
        Self::new(Trouble::TooMuch, message)
    }

    /// [`Trouble::Unauthorized`].
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(Trouble::Unauthorized, message)
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
        Self { message: error.to_string(), kind: Trouble::Answered(Box::new(error)) }
    }
}
