//! The arguments of a call as its receipt stores them.

use haft_tool::Value;

/// Longer strings are replaced by their size and hash.
const MAX_STRING_BYTES: usize = 4 * 1024;
/// `serde_json` reads at most 128 levels; a receipt or event needs a few of them.
pub(crate) const MAX_JSON_DEPTH: usize = 120;

/// The arguments with long strings replaced by their size and hash. Arguments nested too deep to be read again become
/// their JSON text.
pub fn recorded_input(arguments: &Value) -> Value {
    if is_deeper_than(arguments, MAX_JSON_DEPTH) {
        return shortened(&Value::String(arguments.to_string()));
    }
    shortened(arguments)
}

fn shortened(value: &Value) -> Value {
    match value {
        Value::String(text) if text.len() > MAX_STRING_BYTES => {
            let hash = blake3::hash(text.as_bytes()).to_hex();
            Value::String(format!("<{} bytes, blake3 {hash}>", text.len()))
        }
        Value::Array(items) => Value::Array(items.iter().map(shortened).collect()),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (name.clone(), shortened(value))).collect())
        }
        other => other.clone(),
    }
}

/// Whether a value is nested deeper than `levels`.
pub(crate) fn is_deeper_than(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| is_deeper_than(item, levels - 1)),
        Value::Object(members) => {
            levels == 0 || members.values().any(|member| is_deeper_than(member, levels - 1))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_tool::json;

    #[test]
    fn long_strings_become_size_and_hash() {
        let short = "x".repeat(MAX_STRING_BYTES);
        let long = "x".repeat(MAX_STRING_BYTES + 1);
        let recorded = recorded_input(&json!({"a": [short, long], "b": 1}));
        assert_eq!(recorded["a"][0], json!(short));
        assert!(recorded["a"][1].as_str().unwrap().starts_with("<4097 bytes, blake3 "));
        assert_eq!(recorded["b"], 1);
    }

    #[test]
    fn deeply_nested_arguments_become_text() {
        let deep = (0..127).fold(json!(1), |inner, _| json!([inner]));
        assert_eq!(recorded_input(&deep), Value::String(deep.to_string()));
        let readable = (0..MAX_JSON_DEPTH).fold(json!(1), |inner, _| json!([inner]));
        assert_eq!(recorded_input(&readable), readable);
    }
}
