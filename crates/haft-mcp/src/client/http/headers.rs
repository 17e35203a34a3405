//! What of a request is said again in its headers, so that those on the way need not read the body.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// The integers that every reader takes for the same.
const SAFE: i64 = (1 << 53) - 1;

/// One argument of a tool that is also sent as a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::client) struct Mirrored {
    /// `Mcp-Param-` and the name that the tool gives it.
    header: String,
    /// Where it stands in the arguments.
    path: Vec<String>,
}

/// The arguments that a tool's schema marks for headers; why the tool cannot be used, if the marks are wrong.
pub(in crate::client) fn mirrored(schema: &Value) -> Result<Vec<Mirrored>, String> {
    let mut found = Vec::new();
    search(schema, &mut Vec::new(), true, &mut found)?;
    let mut seen = std::collections::HashSet::new();
    match found.iter().find(|one| !seen.insert(one.header.to_ascii_lowercase())) {
        Some(twice) => Err(format!("two of its arguments want the header {}", twice.header)),
        None => Ok(found),
    }
}

/// Looks for marks; `reachable` says whether the way here went through properties alone.
fn search(
    schema: &Value,
    path: &mut Vec<String>,
    reachable: bool,
    found: &mut Vec<Mirrored>,
) -> Result<(), String> {
    match schema {
        Value::Object(fields) => {
            if let Some(mark) = fields.get("x-mcp-header") {
                found.push(read_mark(mark, fields.get("type"), path, reachable)?);
            }
            for (key, value) in fields {
                match (key.as_str(), value) {
                    ("properties", Value::Object(members)) => {
                        for (name, member) in members {
                            path.push(name.clone());
                            search(member, path, reachable, found)?;
                            path.pop();
                        }
                    }
                    // Values, not schemas.
                    ("const" | "enum" | "default" | "examples" | "x-mcp-header", _) => {}
                    _ => search(value, path, false, found)?,
                }
            }
            Ok(())
        }
        Value::Array(all) => all.iter().try_for_each(|one| search(one, path, false, found)),
        _ => Ok(()),
    }
}

fn read_mark(
    mark: &Value,
    kind: Option<&Value>,
    path: &[String],
    reachable: bool,
) -> Result<Mirrored, String> {
    let wrong = |why: &str| format!("x-mcp-header at `{}` {why}", path.join("."));
    let name = mark.as_str().ok_or_else(|| wrong("is no text"))?;
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || name.len() > 128 || !name.bytes().all(token) {
        return Err(wrong("is no name of a header"));
    }
    if !reachable || path.is_empty() {
        return Err(wrong("stands where no single argument is meant"));
    }
    if !kind.and_then(Value::as_str).is_some_and(|kind| matches!(kind, "string" | "integer" | "boolean")) {
        return Err(wrong("stands at something else than a string, an integer or a boolean"));
    }
    Ok(Mirrored { header: format!("Mcp-Param-{name}"), path: path.to_vec() })
}

/// The headers for these arguments.
pub(in crate::client) fn mirror(all: &[Mirrored], arguments: &Value) -> Vec<(String, String)> {
    let value = |one: &Mirrored| {
        let value = one.path.iter().try_fold(arguments, |value, key| value.get(key))?;
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Bool(true) => "true".to_owned(),
            Value::Bool(false) => "false".to_owned(),
            Value::Number(number) => {
                let number = number.as_i64().filter(|number| (-SAFE..=SAFE).contains(number))?;
                number.to_string()
            }
            _ => return None,
        };
        Some((one.header.clone(), encode(&text)))
    };
    all.iter().filter_map(value).collect()
}

/// A value as a header may hold it.
pub(super) fn encode(text: &str) -> String {
    let looks_wrapped = text.starts_with("=?base64?") && text.ends_with("?=");
    let visible = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    if visible && !looks_wrapped && text.trim_matches(' ') == text {
        text.to_owned()
    } else {
        format!("=?base64?{}?=", STANDARD.encode(text))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn property(schema: &Value) -> Value {
        json!({"type": "object", "properties": {"a": schema}})
    }

    #[test]
    fn marked_arguments_become_headers_and_others_do_not() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"type": "object", "properties": {"flag": {"type": "boolean", "x-mcp-header": "Flag"}}},
            "count": {"type": "integer", "x-mcp-header": "Count"},
            "query": {"type": "string", "default": {"x-mcp-header": "not a mark"}},
        }});
        let marks = mirrored(&schema).unwrap();
        let headers =
            mirror(&marks, &json!({"region": "a b", "deep": {"flag": false}, "count": 42, "query": "q"}));
        let expected = [("Mcp-Param-Region", "a b"), ("Mcp-Param-Flag", "false"), ("Mcp-Param-Count", "42")];
        assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert!(mirror(&marks, &json!({"region": null, "deep": 7, "count": 1.5})).is_empty());
        assert!(mirror(&marks, &json!({"count": 1_u64 << 60})).is_empty());
    }

    #[test]
    fn a_tool_with_a_wrong_mark_is_refused() {
        for schema in [
            property(&json!({"type": "string", "x-mcp-header": ""})),
            property(&json!({"type": "string", "x-mcp-header": "My Region"})),
            property(&json!({"type": "string", "x-mcp-header": "Région"})),
            property(&json!({"type": "string", "x-mcp-header": "a\tb"})),
            property(&json!({"type": "string", "x-mcp-header": 7})),
            property(&json!({"type": "number", "x-mcp-header": "N"})),
            property(&json!({"type": "object", "x-mcp-header": "O"})),
            property(&json!({"x-mcp-header": "O"})),
            property(&json!({"type": "array", "items": {"type": "string", "x-mcp-header": "I"}})),
            json!({"type": "object", "anyOf": [property(&json!({"type": "string", "x-mcp-header": "R"}))]}),
            json!({"type": "string", "x-mcp-header": "Root"}),
            json!({"properties": {"a": {"type": "string", "x-mcp-header": "R"}, "b": {"type": "string", "x-mcp-header": "r"}}}),
        ] {
            assert!(mirrored(&schema).is_err(), "{schema}");
        }
    }

    #[test]
    fn what_a_header_cannot_hold_is_wrapped() {
        for (text, header) in [
            ("us-west1", "us-west1"),
            ("", ""),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(encode(text), header, "{text:?}");
        }
    }
}
