//! The lines of a transcript, and what is common to their formats.

use haft_tool::Value;

use super::{MAX_LINE_BYTES, TranscriptImage};

/// The objects of the lines, with the numbers of the lines; `None` for a line that is no object or too long. Empty lines are left out.
pub(super) fn objects(bytes: &[u8]) -> impl Iterator<Item = (u64, Option<Value>)> {
    let lines = (1..).zip(bytes.split(|byte| *byte == b'\n'));
    let lines = lines.map(|(number, line)| (number, line.trim_ascii())).filter(|(_, line)| !line.is_empty());
    lines.map(|(number, line)| {
        let is_short = line.len() <= MAX_LINE_BYTES;
        let object = is_short.then(|| serde_json::from_slice(line).ok()).flatten();
        (number, object.filter(Value::is_object))
    })
}

/// A field that is text; empty if it is not there.
pub(super) fn text_of<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// A field that is text and not empty.
pub(super) fn owned(object: &Value, field: &str) -> Option<String> {
    Some(text_of(object, field)).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// An image in base64 whose type can be shown.
pub(super) fn image(media_type: &str, data: &str) -> Option<TranscriptImage> {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let is_known = matches!(media_type, "image/png" | "image/jpeg" | "image/gif" | "image/webp");
    (is_known && !data.is_empty() && data.bytes().all(is_base64))
        .then(|| TranscriptImage { media_type: media_type.to_owned(), data: data.to_owned() })
}

/// An image in a `data:` URL.
pub(super) fn image_of_url(url: &str) -> Option<TranscriptImage> {
    let (media_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    image(media_type, data)
}

/// Adds a text on a line of its own.
pub(super) fn add_line(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push('\n');
    }
    text.push_str(more);
}
