//! A server inside the program that drives this one: no process and no socket, each message is handed over and answered.

use std::sync::Arc;
use std::time::Duration;

use haft_tool::Cancel;
use serde_json::Value;

use super::connection::{PreparedRequest, ServerConnection};
use super::deadline::Deadline;
use super::{ClientError, list};
use crate::wire::{RpcError, RpcMessage};

/// Hands messages to a server inside another program.
pub trait MessageLink: Send + Sync {
    /// Hands over one JSON-RPC message and returns what the other side gave back: the response to a request, anything for a
    /// notification. Returns soon after `cancel` fires, and at the latest after `limit`.
    fn exchange(&self, message: Value, limit: Duration, cancel: &Cancel) -> Result<Value, ClientError>;
}

/// The connection to such a server.
pub(super) struct LinkedConnection(pub(super) Arc<dyn MessageLink>);

impl ServerConnection for LinkedConnection {
    fn request(&self, request: &PreparedRequest, deadline: &Deadline<'_>) -> Result<Value, ClientError> {
        let limit = deadline.remaining(request.method)?;
        let message = as_value(&request.message())?;
        let mut response = self.0.exchange(message, limit, deadline.cancel)?;
        if let Some(error) = response.get_mut("error").map(Value::take).filter(|error| !error.is_null()) {
            let shown = list::excerpt(&error);
            let invalid = |_| ClientError::invalid_message(format!("the server's error is invalid: {shown}"));
            return Err(serde_json::from_value::<RpcError>(error).map_err(invalid)?.into());
        }
        let result = response.get_mut("result").map(Value::take);
        result.ok_or_else(|| {
            let shown = list::excerpt(&response);
            ClientError::invalid_message(format!("the server's answer has no result: {shown}"))
        })
    }

    fn send(&self, message: &RpcMessage, timeout: Duration) -> Result<(), ClientError> {
        self.0.exchange(as_value(message)?, timeout, &Cancel::new()).map(drop)
    }

    fn close(&self) {}
}

fn as_value(message: &RpcMessage) -> Result<Value, ClientError> {
    serde_json::to_value(message).map_err(|error| ClientError::invalid_message(error.to_string()))
}
