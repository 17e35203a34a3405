//! Events as text: readable JSON, also of arguments that are nested too deep to be read back.

use std::borrow::Cow;

use haft_tool::{ToolError, Value};

use crate::Event;

/// `serde_json` reads no deeper than 128 levels; the event itself needs a few of them.
const DEEPEST_INPUT: usize = 120;

pub(crate) fn encode(event: &Event<'_>) -> Result<String, ToolError> {
    let receipt = event.receipt();
    if !deeper_than(&receipt.input, DEEPEST_INPUT) {
        return Ok(serde_json::to_string(event)?);
    }
    let mut receipt = receipt.clone();
    receipt.input = Value::String(receipt.input.to_string());
    let receipt = Cow::Owned(receipt);
    Ok(serde_json::to_string(&match event {
        Event::CallStarted { .. } => Event::CallStarted { receipt },
        Event::CallFinished { .. } => Event::CallFinished { receipt },
    })?)
}

pub(crate) fn decode(text: &str) -> Result<Event<'static>, ToolError> {
    Ok(serde_json::from_str(text)?)
}

fn deeper_than(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| deeper_than(item, levels - 1)),
        Value::Object(fields) => levels == 0 || fields.values().any(|field| deeper_than(field, levels - 1)),
        _ => false,
    }
}
