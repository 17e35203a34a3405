//! The interface of a connection to one server, whatever its transport.

use std::time::Duration;

use serde_json::Value;

use super::ClientError;
use super::deadline::Deadline;
use crate::wire::{ProtocolVersion, RequestId, RpcMessage};

/// A request that is ready to be sent.
#[derive(Clone)]
pub(super) struct PreparedRequest {
    pub(super) id: RequestId,
    pub(super) method: &'static str,
    pub(super) params: Value,
    /// The version of a stateless request.
    pub(super) version: Option<ProtocolVersion>,
    /// Arguments that are repeated in HTTP headers.
    pub(super) headers: Vec<(String, String)>,
}

impl PreparedRequest {
    pub(super) fn message(&self) -> RpcMessage {
        RpcMessage::request(self.id.clone(), self.method, self.params.clone())
    }
}

/// A connection to one server.
pub(super) trait ServerConnection: Send + Sync {
    /// Sends a request and waits for its result.
    fn request(&self, request: &PreparedRequest, deadline: &Deadline<'_>) -> Result<Value, ClientError>;

    /// Sends a message that has no response.
    fn send(&self, message: &RpcMessage, timeout: Duration) -> Result<(), ClientError>;

    /// Whether the server has to be notified that a request is cancelled, because the transport does not show it.
    fn sends_cancellation(&self, request: &PreparedRequest) -> bool {
        let _ = request;
        true
    }

    /// A handshake has agreed on this version.
    fn negotiated(&self, version: ProtocolVersion) {
        let _ = version;
    }

    /// Starts to receive messages that belong to no request, where that needs a stream of its own.
    fn listen(&self) {}

    /// Whether it is known that no more responses come.
    fn is_closed(&self) -> bool {
        false
    }

    /// Closes the connection, and ends the server if it is a child process.
    fn close(&self);
}
