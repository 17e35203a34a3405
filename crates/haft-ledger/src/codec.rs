//! Events as text: readable JSON that also carries what JSON cannot.
//!
//! A Unix path is bytes, and JSON is not. A byte that is no UTF-8 is written as a NUL and two hexadecimal digits,
//! which no real path can contain.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use haft_tool::{Change, Effect, Node, Receipt, ToolError, Value};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Event;

/// `serde_json` reads no deeper than 128 levels; the event itself needs a few of them.
const DEEPEST_INPUT: usize = 120;

pub(crate) fn encode(event: &Event<'_>) -> Result<String, ToolError> {
    let receipt = event.receipt();
    if !deeper_than(&receipt.input, DEEPEST_INPUT)
        && let Ok(text) = serde_json::to_string(event)
    {
        return Ok(text);
    }
    let mut receipt = receipt.clone();
    if deeper_than(&receipt.input, DEEPEST_INPUT) {
        receipt.input = Value::String(receipt.input.to_string());
    }
    each_path(&mut receipt, &mut escape_in_place);
    let receipt = Cow::Owned(receipt);
    to_text(&match event {
        Event::CallStarted { .. } => Event::CallStarted { receipt },
        Event::CallFinished { .. } => Event::CallFinished { receipt },
    })
}

pub(crate) fn decode(text: &str) -> Result<Event<'static>, ToolError> {
    let mut event: Event<'static> = from_text(text)?;
    // The raw NUL of an escaped path is itself escaped in JSON, so most events are done here.
    if text.contains("\\u0000") {
        let (Event::CallStarted { receipt } | Event::CallFinished { receipt }) = &mut event;
        each_path(receipt.to_mut(), &mut unescape_in_place);
    }
    Ok(event)
}

pub(crate) fn encode_change(change: &Change) -> Result<String, ToolError> {
    if let Ok(text) = serde_json::to_string(change) {
        return Ok(text);
    }
    let mut change = change.clone();
    each_path_of_change(&mut change, &mut escape_in_place);
    to_text(&change)
}

pub(crate) fn decode_change(text: &str) -> Result<Change, ToolError> {
    let mut change = from_text(text)?;
    each_path_of_change(&mut change, &mut unescape_in_place);
    Ok(change)
}

fn to_text(value: &impl Serialize) -> Result<String, ToolError> {
    Ok(serde_json::to_string(value)?)
}

fn from_text<T: DeserializeOwned>(text: &str) -> Result<T, ToolError> {
    Ok(serde_json::from_str(text)?)
}

fn deeper_than(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| deeper_than(item, levels - 1)),
        Value::Object(fields) => levels == 0 || fields.values().any(|field| deeper_than(field, levels - 1)),
        _ => false,
    }
}

fn each_path(receipt: &mut Receipt, visit: &mut dyn FnMut(&mut PathBuf)) {
    visit(&mut receipt.workspace);
    for effect in &mut receipt.effects {
        if let Effect::Read { path } | Effect::Write { path } = effect {
            visit(path);
        }
    }
    for change in &mut receipt.changes {
        each_path_of_change(change, visit);
    }
}

fn each_path_of_change(change: &mut Change, visit: &mut dyn FnMut(&mut PathBuf)) {
    visit(&mut change.path);
    for node in [&mut change.before, &mut change.after] {
        if let Node::Link { target } = node {
            visit(target);
        }
    }
}

fn escape_in_place(path: &mut PathBuf) {
    if let Cow::Owned(text) = escape(path) {
        *path = text.into();
    }
}

fn unescape_in_place(path: &mut PathBuf) {
    if path.as_os_str().as_bytes().contains(&0) {
        *path = unescape(&path.to_string_lossy());
    }
}

/// The path as text from which [`unescape`] makes the same bytes again.
pub(crate) fn escape(path: &Path) -> Cow<'_, str> {
    if let Some(text) = path.to_str() {
        return Cow::Borrowed(text);
    }
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|byte| format!("\0{byte:02x}")));
    }
    Cow::Owned(text)
}

/// The path that [`escape`] made `text` of.
pub(crate) fn unescape(text: &str) -> PathBuf {
    let mut parts = text.split('\0');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let byte = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(0));
        bytes.extend_from_slice(&part.as_bytes()[if byte.is_some() { 2 } else { 0 }..]);
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_path_comes_back_byte_for_byte(bytes in prop::collection::vec(1..=u8::MAX, 0..40)) {
            let path = PathBuf::from(OsString::from_vec(bytes));
            prop_assert_eq!(unescape(&escape(&path)), path);
        }
    }
}
