//! Converts the result of a server's tool to an output. The content is untrusted.

use haft_tool::{Content, ErrorKind, Output, Text};
use serde_json::Value;

use haft_mcp::client::approximate_bytes;
use haft_mcp::client::portable::clean;

/// The largest number of parts of a result.
const MAX_PARTS: usize = 100;
/// The size of all parts of a result that are not text, and of its structured content. Long text is not cut here: the `bound`
/// step does that once, and the ledger keeps the whole.
const MAX_BLOCK_BYTES: usize = 4 << 20;
const MAX_STRUCTURED_BYTES: usize = 256 << 10;

/// Converts a `tools/call` result. Texts that are longer than `max_chars` together become one, which `bound` can cut.
pub(super) fn output(mut result: Value, max_chars: usize) -> Output {
    let parts = match result.get_mut("content").map(Value::take) {
        Some(Value::Array(parts)) => parts,
        _ => Vec::new(),
    };
    let mut structured =
        result.get_mut("structuredContent").map(Value::take).filter(|value| !value.is_null());
    let mut content = bounded_parts(parts, max_chars);
    let size = structured.as_ref().map_or(0, approximate_bytes);
    if content.is_empty() {
        // Clients that read only text get the structured value as text.
        let text = structured.as_ref().map(ToString::to_string).unwrap_or_default();
        content.push(Content::Text { text: Text::from(text) });
    } else if size > MAX_STRUCTURED_BYTES {
        content.push(note(&format!("{size} bytes of structured content were left out")));
    }
    structured = structured.filter(|_| size <= MAX_STRUCTURED_BYTES);
    let mut output = Output::pieces(content);
    output.structured = structured;
    let failed = result.get("isError").and_then(Value::as_bool) == Some(true);
    if failed { output.failed(ErrorKind::ExecutionFailed) } else { output }
}

/// Converts parts, and replaces those that are too many or too large by a note.
fn bounded_parts(mut parts: Vec<Value>, max_chars: usize) -> Vec<Content> {
    let surplus = parts.len().saturating_sub(MAX_PARTS);
    parts.truncate(MAX_PARTS);
    let mut content = Vec::with_capacity(parts.len());
    let (mut left_out, mut block_bytes, mut text_bytes) = (surplus, 0, 0);
    for part in parts {
        let size = approximate_bytes(&part);
        match content_block(part) {
            // A text that comes as a resource is cut like any other.
            Content::Block { instead, .. } if instead.len() > max_chars => {
                text_bytes += instead.len();
                content.push(Content::Text { text: instead.into() });
            }
            Content::Text { text } => {
                text_bytes += text.head.len();
                content.push(Content::Text { text });
            }
            _ if block_bytes + size > MAX_BLOCK_BYTES => left_out += 1,
            block => {
                block_bytes += size;
                content.push(block);
            }
        }
    }
    if text_bytes > max_chars {
        content = with_one_text(content);
    }
    match left_out {
        0 => {}
        1 => content.push(note("1 more part was left out")),
        _ => content.push(note(&format!("{left_out} more parts were left out"))),
    }
    content
}

/// Joins all texts to one, at the place of the first.
fn with_one_text(parts: Vec<Content>) -> Vec<Content> {
    let mut joined = Text::default();
    let mut content = Vec::new();
    let mut place = None;
    for part in parts {
        match part {
            Content::Text { text } => {
                place.get_or_insert(content.len());
                joined = joined.then(text);
            }
            block => content.push(block),
        }
    }
    content.insert(place.unwrap_or_default(), Content::Text { text: joined });
    content
}

fn note(words: &str) -> Content {
    Content::Text { text: format!("[{words}]").into() }
}

/// Converts one content block. Escape sequences and invisible characters are removed from text.
pub(super) fn content_block(block: Value) -> Content {
    let word = |field: &str| block.get(field).and_then(Value::as_str).map(str::to_owned);
    match block.get("type").and_then(Value::as_str) {
        Some("text") => Content::Text { text: clean(&word("text").unwrap_or_default(), usize::MAX).into() },
        Some("image") => match (word("mimeType"), word("data")) {
            (Some(media_type), Some(data)) => Content::Image { media_type, data },
            _ => unknown(&block),
        },
        Some("resource") => {
            let resource = block.get("resource").cloned().unwrap_or_default();
            let uri = resource.get("uri").and_then(Value::as_str).unwrap_or_default();
            let instead = match resource.get("text").and_then(Value::as_str) {
                Some(text) => clean(text, usize::MAX),
                None => format!("[the resource {}]", clean(uri, 500)),
            };
            Content::Block { instead, block }
        }
        Some("resource_link") => {
            let (name, uri) = (word("name").unwrap_or_default(), word("uri").unwrap_or_default());
            let instead = format!("[a resource: {} {}]", clean(&name, 200), clean(&uri, 500));
            Content::Block { instead, block }
        }
        Some("audio") => {
            let kind = clean(&word("mimeType").unwrap_or_default(), 100);
            let bytes = word("data").unwrap_or_default().len() / 4 * 3;
            Content::Block { instead: format!("[{kind}, about {bytes} bytes]"), block }
        }
        _ => unknown(&block),
    }
}

fn unknown(block: &Value) -> Content {
    Content::Text { text: clean(&block.to_string(), usize::MAX).into() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MAX_CHARS: usize = 1_000;

    fn text_of(content: &Content) -> String {
        match content {
            Content::Text { text } => text.head.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn parts_are_bounded_in_number_and_size() {
        let image = json!({"type": "image", "mimeType": "image/png", "data": "A".repeat(3 << 20)});
        let made = output(json!({"content": [image, image, {"type": "text", "text": "end"}]}), MAX_CHARS);
        assert_eq!(made.content.len(), 3);
        assert!(matches!(made.content[0], Content::Image { .. }));
        assert_eq!(text_of(&made.content[1]), "end");
        assert_eq!(text_of(&made.content[2]), "[1 more part was left out]");
        let many: Vec<Value> = (0..5_000).map(|_| json!({"type": "text", "text": "x"})).collect();
        let made = output(json!({"content": many}), MAX_CHARS);
        assert_eq!(made.content.len(), MAX_PARTS + 1);
        assert_eq!(text_of(&made.content[MAX_PARTS]), "[4900 more parts were left out]");
    }

    #[test]
    fn long_texts_become_one_that_can_be_cut() {
        let text = |letter: &str| json!({"type": "text", "text": letter.repeat(600)});
        let long = json!({"type": "resource", "resource": {"uri": "a:b", "text": "r".repeat(2_000)}});
        let made = output(json!({"content": [text("a"), long, text("b")]}), MAX_CHARS);
        assert_eq!(made.content.len(), 1);
        let joined = text_of(&made.content[0]);
        assert!(
            joined.starts_with("aaa") && joined.ends_with("bbb") && joined.len() >= 3_200,
            "{}",
            joined.len()
        );
    }

    #[test]
    fn large_structured_content_is_left_out() {
        let value = json!({"all": "x".repeat(1 << 20)});
        let made = output(json!({"content": [], "structuredContent": value}), MAX_CHARS);
        assert_eq!(made.structured, None);
        assert!(text_of(&made.content[0]).len() > 1 << 20, "the bound step cuts the text");
        let made = output(
            json!({"content": [{"type": "text", "text": "t"}], "structuredContent": value}),
            MAX_CHARS,
        );
        assert!(
            made.structured.is_none() && text_of(&made.content[1]).contains("bytes of structured content")
        );
        let small = json!({"n": 1});
        assert_eq!(output(json!({"structuredContent": small}), MAX_CHARS).structured, Some(small));
    }
}
