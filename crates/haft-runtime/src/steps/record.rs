//! record: the arguments as a receipt keeps them.

use haft_files::hash;
use haft_tool::Value;

/// Longer strings are replaced by their size and hash.
const MAX_STRING_BYTES: usize = 4 * 1024;

/// The arguments with long strings replaced by their size and hash.
pub(crate) fn recorded_input(value: &Value) -> Value {
    match value {
        Value::String(text) if text.len() > MAX_STRING_BYTES => {
            Value::String(format!("<{} bytes, blake3 {}>", text.len(), hash(text.as_bytes())))
        }
        Value::Array(items) => Value::Array(items.iter().map(recorded_input).collect()),
        Value::Object(members) => {
            let recorded = |(name, value): (&String, &Value)| (name.clone(), recorded_input(value));
            Value::Object(members.iter().map(recorded).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;
