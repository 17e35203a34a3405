//! Responses that arrive as a whole.

use haft_tool::Value;

use super::super::failure::WireError;
use super::super::message::{take_field, text_of};
use super::stream::ChatAccumulator;
use crate::ModelEvent;

impl ChatAccumulator {
    pub(super) fn take_whole(&mut self, mut body: Value, out: &mut Vec<ModelEvent>) -> Result<(), WireError> {
        if body.get("error").is_some_and(|error| !error.is_null()) {
            return Err(WireError::read(None, &body));
        }
        self.builder.start(Some(text_of(&body, "model")), Some(text_of(&body, "id")), out);
        self.usage(&body, out);
        let Some(choice) = body.pointer_mut("/choices/0") else {
            return Err(WireError::protocol("The response has no choices"));
        };
        if choice.get("error").is_some_and(|error| !error.is_null()) {
            return Err(WireError::read(None, choice));
        }
        let reason = text_of(choice, "finish_reason").to_owned();
        let message = take_field(choice, "message");
        if !message.is_object() {
            return Err(WireError::protocol("The response has no message"));
        }
        self.delta(message, true, out);
        self.finish(if reason.is_empty() { "stop" } else { &reason }, out);
        Ok(())
    }
}
