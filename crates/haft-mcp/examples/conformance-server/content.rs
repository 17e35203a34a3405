//! Pieces that results are made of.

use serde_json::{Value, json};

/// One red pixel.
pub(crate) const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A sound of no length.
const SILENCE: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

pub(crate) fn text(text: impl Into<String>) -> Value {
    json!({"type": "text", "text": text.into()})
}

pub(crate) fn image() -> Value {
    json!({"type": "image", "data": PIXEL, "mimeType": "image/png"})
}

pub(crate) fn audio() -> Value {
    json!({"type": "audio", "data": SILENCE, "mimeType": "audio/wav"})
}

pub(crate) fn resource(uri: &str, kind: &str, text: &str) -> Value {
    json!({"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": text}})
}

/// What a call gives.
pub(crate) fn result(content: &[Value]) -> Value {
    json!({"content": content})
}

/// What a call gives that has nothing to say but words.
pub(crate) fn said(words: impl Into<String>) -> Value {
    result(&[text(words)])
}
