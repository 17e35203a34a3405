//! Responses that arrive as a whole.

use haft_tool::Value;

use super::super::failure::WireError;
use super::super::message::text_of;
use super::stream::ResponsesAccumulator;
use crate::ModelEvent;

impl ResponsesAccumulator {
    pub(super) fn take_whole(&mut self, body: Value, out: &mut Vec<ModelEvent>) -> Result<(), WireError> {
        if !body.get("output").is_some_and(Value::is_array) {
            if body.get("error").is_some_and(|error| !error.is_null()) {
                return Err(WireError::read(None, &body));
            }
            return Err(WireError::protocol("The response has no output"));
        }
        if matches!(text_of(&body, "status"), "cancelled" | "queued" | "in_progress") {
            return Err(WireError::protocol(format!("The response is {}", text_of(&body, "status"))));
        }
        self.builder.start(Some(text_of(&body, "model")), Some(text_of(&body, "id")), out);
        self.end(body, out)
    }
}
