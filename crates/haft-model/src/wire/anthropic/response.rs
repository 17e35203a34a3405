//! Responses that arrive as a whole.

use haft_tool::Value;

use super::super::failure::WireError;
use super::super::message::{take_field, text_of};
use super::stream::AnthropicAccumulator;
use crate::ModelEvent;

impl AnthropicAccumulator {
    pub(super) fn take_whole(&mut self, mut body: Value, out: &mut Vec<ModelEvent>) -> Result<(), WireError> {
        if text_of(&body, "type") == "error" || body.get("error").is_some_and(|error| !error.is_null()) {
            return Err(WireError::read(None, &body));
        }
        let Value::Array(content) = take_field(&mut body, "content") else {
            return Err(WireError::protocol("The response has no content"));
        };
        self.builder.start(Some(text_of(&body, "model")), Some(text_of(&body, "id")), out);
        let usage = take_field(&mut body, "usage");
        self.facts(&body, &usage, out);
        for (index, block) in content.into_iter().enumerate() {
            self.begin(index as u64, block, out);
            self.end(index as u64, out);
        }
        self.finish(out);
        Ok(())
    }
}
