//! What a channel is: something that carries a message to people.

use haft_tool::{Message, Pause, ToolError};

/// Waits before another attempt; an error means that there will be none.
pub type Waiting<'a> = dyn FnMut(&Pause) -> Result<(), ToolError> + 'a;

/// Something that carries messages to people.
pub trait Channel: Send + Sync {
    /// Whether the message could be delivered, by its form alone. The sender sees the answer, so it touches nothing and
    /// takes no time.
    fn check(&self, message: &Message) -> Result<(), ToolError> {
        let _ = message;
        Ok(())
    }

    /// Delivers it, with as many attempts as the channel finds right. When an answer is lost on the way a message may
    /// arrive twice, but it is never told as delivered when it is not. Errors do not show the channel's secrets.
    fn deliver(&self, message: &Message, wait: &mut Waiting<'_>) -> Result<(), ToolError>;
}
