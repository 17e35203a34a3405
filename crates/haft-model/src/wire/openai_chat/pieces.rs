//! Fields of a message that arrive in pieces.

use haft_tool::Value;
use serde_json::Map;

/// Lists whose entries are themselves streamed: OpenRouter's and LiteLLM's reasoning.
const PIECEWISE: &[&str] = &["reasoning_details", "thinking_blocks"];
/// Fields of such entries that are continued; others are sent once.
const CONTINUED: &[&str] = &["text", "thinking", "summary", "data"];

/// Adds a further piece of a field.
pub(super) fn add_field(fields: &mut Map<String, Value>, name: &str, value: Value) {
    match (fields.get_mut(name), value) {
        (_, Value::Null) => {}
        (Some(Value::String(known)), Value::String(more)) => known.push_str(&more),
        (Some(Value::Array(known)), Value::Array(more)) if PIECEWISE.contains(&name) => {
            for piece in more {
                add_piece(known, piece);
            }
        }
        (Some(Value::Array(known)), Value::Array(more)) => known.extend(more),
        (Some(Value::Object(known)), Value::Object(more)) => {
            known.extend(more.into_iter().filter(|(_, value)| !value.is_null()));
        }
        (_, Value::Array(pieces)) if PIECEWISE.contains(&name) => {
            let mut list = Vec::new();
            for piece in pieces {
                add_piece(&mut list, piece);
            }
            fields.insert(name.to_owned(), Value::Array(list));
        }
        (_, value) => drop(fields.insert(name.to_owned(), value)),
    }
}

/// Adds a piece to the entry that it continues: the one with its index and type, or without an index the last one, until that
/// has its signature.
fn add_piece(list: &mut Vec<Value>, piece: Value) {
    let index = piece.get("index").filter(|index| !index.is_null());
    let at = match index {
        Some(index) => list
            .iter()
            .position(|known| known.get("index") == Some(index) && known.get("type") == piece.get("type")),
        None => list.len().checked_sub(1).filter(|last| {
            let known = &list[*last];
            known.get("type") == piece.get("type") && known.get("signature").is_none_or(Value::is_null)
        }),
    };
    match (at.and_then(|at| list.get_mut(at)).and_then(Value::as_object_mut), piece) {
        (Some(known), Value::Object(piece)) => {
            for (name, value) in piece {
                match (known.get_mut(&name), value) {
                    (_, Value::Null) => {}
                    (Some(Value::String(known)), Value::String(more))
                        if CONTINUED.contains(&name.as_str()) =>
                    {
                        known.push_str(&more);
                    }
                    (_, value) => drop(known.insert(name, value)),
                }
            }
        }
        (_, piece) => list.push(piece),
    }
}
