//! A way to one server.

use std::time::Duration;

use serde_json::Value;

use super::ClientError;
use super::patience::Patience;
use crate::wire::{ProtocolVersion, RequestId, RpcMessage};

/// One request on its way.
#[derive(Clone)]
pub(super) struct Asked {
    pub(super) id: RequestId,
    pub(super) method: &'static str,
    pub(super) params: Value,
    /// The revision that it is written in, where each request says so itself.
    pub(super) version: Option<ProtocolVersion>,
    /// What of the arguments goes along as headers, where there are any.
    pub(super) headers: Vec<(String, String)>,
}

impl Asked {
    pub(super) fn message(&self) -> RpcMessage {
        RpcMessage::request(self.id.clone(), self.method, self.params.clone())
    }
}

/// A way to one server.
pub(super) trait Link: Send + Sync {
    /// Sends a request and waits for its answer.
    fn ask(&self, asked: &Asked, patience: &Patience<'_>) -> Result<Value, ClientError>;

    /// Sends what has no answer.
    fn tell(&self, message: &RpcMessage, limit: Duration) -> Result<(), ClientError>;

    /// Nobody waits for that answer any more: what to tell the server, if it does not see it by itself.
    fn taken_back(&self, asked: &Asked) -> Option<RpcMessage> {
        let params = serde_json::json!({"requestId": asked.id, "reason": "nobody waits for it any more"});
        Some(RpcMessage::notification("notifications/cancelled", params))
    }

    /// A handshake has agreed on this revision.
    fn agreed(&self, version: ProtocolVersion) {
        let _ = version;
    }

    /// Begins to hear what the server says unasked, where that does not come by itself.
    fn listen(&self) {}

    /// Whether it is known that no more answers come this way.
    fn is_over(&self) -> bool {
        false
    }

    /// Ends the connection, and whatever is at its other end if it was started for it.
    fn close(&self);
}
