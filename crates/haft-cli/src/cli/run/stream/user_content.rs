//! The content of the user's messages.

use haft_model::ContentPart;
use haft_tool::Value;

/// The parts of a message: text, and images in base64. Another block becomes text, as JSON.
pub(super) fn parts(content: &Value) -> Vec<ContentPart> {
    match content {
        Value::String(text) => text_part(text).into_iter().collect(),
        Value::Array(blocks) => blocks.iter().filter_map(part).collect(),
        _ => Vec::new(),
    }
}

fn part(block: &Value) -> Option<ContentPart> {
    match block["type"].as_str() {
        Some("text") => text_part(block["text"].as_str().unwrap_or_default()),
        Some("image") => {
            let source = &block["source"];
            let (media_type, data) = (source["media_type"].as_str(), source["data"].as_str());
            match media_type.zip(data) {
                Some((media_type, data)) => {
                    Some(ContentPart::Image { media_type: media_type.to_owned(), data: data.to_owned() })
                }
                None => text_part(&block.to_string()),
            }
        }
        _ => text_part(&block.to_string()),
    }
}

fn text_part(text: &str) -> Option<ContentPart> {
    (!text.trim().is_empty()).then(|| ContentPart::text(text))
}
