//! Responses that arrive as a whole.

use haft_tool::Value;

use super::super::failure::WireError;
use super::stream::GeminiAccumulator;
use crate::ModelEvent;

impl GeminiAccumulator {
    /// Takes one response, or the list of chunks that a server sends when it does not stream events.
    pub(super) fn take_whole(&mut self, body: Value, out: &mut Vec<ModelEvent>) -> Result<(), WireError> {
        match body {
            Value::Array(chunks) => chunks.into_iter().try_for_each(|chunk| self.chunk(chunk, out)),
            body => self.chunk(body, out),
        }
    }
}
