//! The resources.

use serde_json::{Value, json};

use crate::content::PIXEL;

/// The one whose changes can be told.
pub(crate) const WATCHED: &str = "test://watched-resource";
const TEXT: &str = "test://static-text";
const BINARY: &str = "test://static-binary";

pub(crate) fn all() -> Vec<Value> {
    let listed = |uri: &str, name: &str, what: &str, kind: &str| json!({"uri": uri, "name": name, "description": what, "mimeType": kind});
    vec![
        listed(TEXT, "static-text", "Text that stays the same", "text/plain"),
        listed(BINARY, "static-binary", "A picture that stays the same", "image/png"),
        listed(WATCHED, "watched-resource", "Text that might change", "text/plain"),
    ]
}

pub(crate) fn templates() -> Vec<Value> {
    vec![json!({
        "uriTemplate": "test://template/{id}/data", "name": "template",
        "description": "Something about every id", "mimeType": "application/json",
    })]
}

pub(crate) fn read(uri: &str) -> Option<Value> {
    let words = |text: &str| json!({"uri": uri, "mimeType": "text/plain", "text": text});
    match uri {
        TEXT => Some(words("This stays the same.")),
        BINARY => Some(json!({"uri": uri, "mimeType": "image/png", "blob": PIXEL})),
        WATCHED => Some(words("This might change.")),
        _ => {
            let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
            let told = json!({"id": id, "templateTest": true, "data": format!("About {id}")});
            Some(json!({"uri": uri, "mimeType": "application/json", "text": told.to_string()}))
        }
    }
}
