//! `log`: passes messages to a function.

use haft_tool::{Message, ToolError};

use crate::{Channel, WaitToRetry};

type MessageFn = dyn Fn(&Message) -> Result<(), ToolError> + Send + Sync;

/// Passes each message to a function, for example one that prints it.
pub struct LogChannel {
    receive: Box<MessageFn>,
}

impl LogChannel {
    /// Creates a channel that calls `receive` for each message.
    pub fn new(receive: impl Fn(&Message) -> Result<(), ToolError> + Send + Sync + 'static) -> Self {
        Self { receive: Box::new(receive) }
    }
}

impl Channel for LogChannel {
    fn deliver(&self, message: &Message, _wait: &mut WaitToRetry<'_>) -> Result<(), ToolError> {
        (self.receive)(message)
    }
}
