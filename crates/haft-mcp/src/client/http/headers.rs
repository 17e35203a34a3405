//! Tool arguments that are repeated in HTTP headers (`x-mcp-header`), so that proxies need not read the body.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// The largest integer that all JSON implementations represent exactly.
const MAX_SAFE_INTEGER: i64 = (1 << 53) - 1;
const MAX_HEADER_NAME_BYTES: usize = 128;

/// An argument of a tool that is repeated in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::client) struct HeaderParam {
    /// `Mcp-Param-` and the name in the schema.
    header: String,
    /// The path in the arguments.
    path: Vec<String>,
}

impl HeaderParam {
    /// The arguments that a tool's schema marks. An error says why the tool cannot be used.
    pub(in crate::client) fn find_all(schema: &Value) -> Result<Vec<Self>, String> {
        let mut found = Vec::new();
        search(schema, &mut Vec::new(), true, &mut found)?;
        let mut seen = HashSet::new();
        match found.iter().find(|one| !seen.insert(one.header.to_ascii_lowercase())) {
            Some(duplicate) => Err(format!("two of its arguments use the header {}", duplicate.header)),
            None => Ok(found),
        }
    }

    fn read(mark: &Value, kind: Option<&Value>, path: &[String], is_reachable: bool) -> Result<Self, String> {
        let invalid = |why: &str| format!("x-mcp-header at `{}` {why}", path.join("."));
        let name = mark.as_str().ok_or_else(|| invalid("is not a string"))?;
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || name.len() > MAX_HEADER_NAME_BYTES || !name.bytes().all(is_token) {
            return Err(invalid("is not a header name"));
        }
        if !is_reachable || path.is_empty() {
            return Err(invalid("does not mark a single argument"));
        }
        if !matches!(kind.and_then(Value::as_str), Some("string" | "integer" | "boolean")) {
            return Err(invalid("marks something other than a string, an integer or a boolean"));
        }
        Ok(Self { header: format!("Mcp-Param-{name}"), path: path.to_vec() })
    }
}

/// Searches a schema for marks; `is_reachable` says whether the path consists of properties only.
fn search(
    schema: &Value,
    path: &mut Vec<String>,
    is_reachable: bool,
    found: &mut Vec<HeaderParam>,
) -> Result<(), String> {
    match schema {
        Value::Object(fields) => {
            if let Some(mark) = fields.get("x-mcp-header") {
                found.push(HeaderParam::read(mark, fields.get("type"), path, is_reachable)?);
            }
            for (key, value) in fields {
                match (key.as_str(), value) {
                    ("properties", Value::Object(members)) => {
                        for (name, member) in members {
                            path.push(name.clone());
                            search(member, path, is_reachable, found)?;
                            path.pop();
                        }
                    }
                    // These contain values, not schemas.
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

/// The headers for these arguments.
pub(in crate::client) fn param_headers(params: &[HeaderParam], arguments: &Value) -> Vec<(String, String)> {
    let header = |param: &HeaderParam| {
        let value = param.path.iter().try_fold(arguments, |value, key| value.get(key))?;
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Bool(value) => value.to_string(),
            Value::Number(number) => {
                let is_safe = |number: &i64| (-MAX_SAFE_INTEGER..=MAX_SAFE_INTEGER).contains(number);
                number.as_i64().filter(is_safe)?.to_string()
            }
            _ => return None,
        };
        Some((param.header.clone(), encode(&text)))
    };
    params.iter().filter_map(header).collect()
}

/// Encodes a value for a header; in base64 if it has to.
pub(super) fn encode(text: &str) -> String {
    let looks_encoded = text.starts_with("=?base64?") && text.ends_with("?=");
    let is_visible = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    if is_visible && !looks_encoded && text.trim_matches(' ') == text {
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
    fn marked_arguments_become_headers() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"type": "object", "properties": {"flag": {"type": "boolean", "x-mcp-header": "Flag"}}},
            "count": {"type": "integer", "x-mcp-header": "Count"},
            "query": {"type": "string", "default": {"x-mcp-header": "not a mark"}},
        }});
        let params = HeaderParam::find_all(&schema).unwrap();
        let headers = param_headers(
            &params,
            &json!({"region": "a b", "deep": {"flag": false}, "count": 42, "query": "q"}),
        );
        let expected = [("Mcp-Param-Region", "a b"), ("Mcp-Param-Flag", "false"), ("Mcp-Param-Count", "42")];
        assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert!(param_headers(&params, &json!({"region": null, "deep": 7, "count": 1.5})).is_empty());
        assert!(param_headers(&params, &json!({"count": 1_u64 << 60})).is_empty());
    }

    #[test]
    fn tool_with_an_invalid_mark_is_refused() {
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
            assert!(HeaderParam::find_all(&schema).is_err(), "{schema}");
        }
    }

    #[test]
    fn value_that_a_header_cannot_contain_is_encoded() {
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
