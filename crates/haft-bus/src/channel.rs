//! The interface of channels.

use haft_tool::{Message, Pause, ToolError};

/// Waits before another attempt. An error ends the delivery.
pub type WaitToRetry<'a> = dyn FnMut(&Pause) -> Result<(), ToolError> + 'a;

/// Delivers messages to people.
pub trait Channel: Send + Sync {
    /// Rejects a message that cannot be delivered whatever happens, such as one with a malformed chat id. The sender waits
    /// for the result, so it must not do I/O.
    fn check(&self, message: &Message) -> Result<(), ToolError> {
        let _ = message;
        Ok(())
    }

    /// Delivers a message, with as many attempts as the channel chooses. If a response is lost, a message may arrive
    /// twice. Errors must not contain the channel's secrets.
    fn deliver(&self, message: &Message, wait: &mut WaitToRetry<'_>) -> Result<(), ToolError>;
}
