//! Tool arguments that a schema requires in headers as well (`x-mcp-header`).

use hyper::header::HeaderMap;
use serde_json::Value;

use super::headers::{decode, mismatch, single};
use crate::wire::RpcError;

/// How deep a schema is searched.
const MAX_SCHEMA_DEPTH: usize = 32;

/// Checks that the headers repeat the arguments that `schema` marks.
pub(super) fn check(headers: &HeaderMap, schema: &Value, arguments: &Value) -> Result<(), RpcError> {
    check_properties(headers, schema, Some(arguments), MAX_SCHEMA_DEPTH)
}

fn check_properties(
    headers: &HeaderMap,
    schema: &Value,
    value: Option<&Value>,
    depth: usize,
) -> Result<(), RpcError> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object).filter(|_| depth > 0) else {
        return Ok(());
    };
    for (name, schema) in properties {
        let value = value.and_then(|value| value.get(name)).filter(|value| !value.is_null());
        if let Some(header) = schema.get("x-mcp-header").and_then(Value::as_str) {
            compare(headers, &format!("mcp-param-{}", header.to_ascii_lowercase()), value)?;
        }
        check_properties(headers, schema, value, depth - 1)?;
    }
    Ok(())
}

fn compare(headers: &HeaderMap, header: &str, value: Option<&Value>) -> Result<(), RpcError> {
    let given = single(headers, header)?.map(|given| decode(header, given)).transpose()?;
    let (given, value) = match (given, value) {
        (None, None) => return Ok(()),
        (Some(_), None) => {
            return Err(mismatch(format!("{header} is present, but the body has no such argument")));
        }
        (None, Some(_)) => {
            return Err(mismatch(format!("{header} is missing, but the body has the argument")));
        }
        (Some(given), Some(value)) => (given, value),
    };
    let is_same = match value {
        Value::String(text) => given == *text,
        Value::Bool(value) => given == value.to_string(),
        // 42 and 42.0 are the same number.
        Value::Number(number) => given == number.to_string() || given.parse().ok() == number.as_f64(),
        _ => false,
    };
    if is_same { Ok(()) } else { Err(mismatch(format!("{header} is {given:?}, but the body says {value}"))) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn marked_arguments_must_be_repeated_in_headers() {
        let schema = json!({"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"properties": {"count": {"type": "integer", "x-mcp-header": "Count"}}},
            "free": {"type": "string"},
        }});
        let arguments = json!({"region": "Zürich", "deep": {"count": 42}, "free": "x", "other": 1});
        let good = [("mcp-param-region", "=?base64?WsO8cmljaA==?="), ("mcp-param-count", "42.0")];
        assert_eq!(check(&headers(&good), &schema, &arguments), Ok(()));
        assert_eq!(check(&headers(&[]), &schema, &json!({"free": "x", "region": null})), Ok(()));
        for bad in [
            &[("mcp-param-region", "=?base64?WsO8cmljaA==?=")][..],
            &[("mcp-param-region", "Zurich"), ("mcp-param-count", "42")],
            &[("mcp-param-region", "=?base64?WsO8cmljaA?="), ("mcp-param-count", "42")],
            &[("mcp-param-region", "=?base64?/w==?="), ("mcp-param-count", "42")],
            &[good[0], ("mcp-param-count", "43")],
            &[good[0], good[0], good[1]],
        ] {
            // `collect` keeps only one of two headers with the same name.
            let mut all = headers(bad);
            if bad.len() == 3 {
                all.append("mcp-param-region", "x".parse().unwrap());
            }
            assert!(check(&all, &schema, &arguments).is_err(), "{bad:?}");
        }
        assert!(check(&headers(&good), &schema, &json!({})).is_err(), "headers without arguments");
    }
}
