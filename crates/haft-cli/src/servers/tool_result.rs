//! Converts the result of a server's tool to an output. The content is untrusted.

use haft_tool::{Content, ErrorKind, Output, Text};
use serde_json::Value;

use haft_mcp::client::portable::clean;

/// Converts a `tools/call` result.
pub(super) fn output(mut result: Value) -> Output {
    let content: Vec<Content> = match result.get_mut("content").map(Value::take) {
        Some(Value::Array(pieces)) => pieces.into_iter().map(content_block).collect(),
        _ => Vec::new(),
    };
    let structured = result.get_mut("structuredContent").map(Value::take).filter(|value| !value.is_null());
    let mut output = Output::pieces(content);
    output.structured = structured;
    if output.content.is_empty() {
        // Clients that read only text get the structured value as text.
        let text = output.structured.as_ref().map(ToString::to_string).unwrap_or_default();
        output.content.push(Content::Text { text: Text::from(text) });
    }
    let failed = result.get("isError").and_then(Value::as_bool) == Some(true);
    if failed { output.failed(ErrorKind::ExecutionFailed) } else { output }
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
