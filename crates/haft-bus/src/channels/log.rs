//! `log`: hands messages to whoever made the channel.

use haft_tool::{Message, ToolError};

use crate::{Channel, Waiting};

type Sink = dyn Fn(&Message) -> Result<(), ToolError> + Send + Sync;

/// Hands each message to a function, for example one that prints it.
pub struct Log {
    sink: Box<Sink>,
}

impl Log {
    /// A channel that ends in `sink`.
    pub fn new(sink: impl Fn(&Message) -> Result<(), ToolError> + Send + Sync + 'static) -> Self {
        Self { sink: Box::new(sink) }
    }
}

impl Channel for Log {
    fn deliver(&self, message: &Message, _wait: &mut Waiting<'_>) -> Result<(), ToolError> {
        (self.sink)(message)
    }
}
