//! Reads JSON from clients. Errors say where the wrong value is.

use std::borrow::Cow;

use haft_tool::Value;
use serde_json::Map;

use super::failure::ProxyFailure;

/// An object of a request.
pub(super) struct Fields {
    /// Where it is, for messages; empty for the request itself.
    at: String,
    object: Map<String, Value>,
}

impl Fields {
    /// The body of a request.
    pub(super) fn parse(body: &[u8]) -> Result<Self, ProxyFailure> {
        let value = serde_json::from_slice(body)
            .map_err(|error| ProxyFailure::bad_request(format!("The body is not valid JSON: {error}")))?;
        match value {
            Value::Object(object) => Ok(Self { at: String::new(), object }),
            other => {
                let message = format!("The body is {}, not a JSON object", kind(&other));
                Err(ProxyFailure::bad_request(message))
            }
        }
    }

    /// An element of the list in a field of this object.
    pub(super) fn element(&self, list: &str, number: usize, value: Value) -> Result<Self, ProxyFailure> {
        let at = format!("{}[{number}]", self.path(list));
        match value {
            Value::Object(object) => Ok(Self { at, object }),
            other => Err(wrong(&at, "an object", &other)),
        }
    }

    /// Where a field is, for messages.
    pub(super) fn path(&self, name: &str) -> String {
        if self.at.is_empty() { name.to_owned() } else { format!("{}.{name}", self.at) }
    }

    /// The error that says what is wrong with a field.
    pub(super) fn error(&self, name: &str, what: &str) -> ProxyFailure {
        ProxyFailure::bad_request(format!("{}: {what}", self.path(name)))
    }

    /// Takes a field out; null counts as missing.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.object.get_mut(name).map(Value::take).filter(|value| !value.is_null())
    }

    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, ProxyFailure> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(&self.path(name), "a text", &other)),
        }
    }

    /// A text that is not blank.
    pub(super) fn required_text(&mut self, name: &str) -> Result<String, ProxyFailure> {
        let text = self.text(name)?.filter(|text| !text.trim().is_empty());
        text.ok_or_else(|| self.error(name, "expected a text that is not empty"))
    }

    pub(super) fn list(&mut self, name: &str) -> Result<Option<Vec<Value>>, ProxyFailure> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(other) => Err(wrong(&self.path(name), "a list", &other)),
        }
    }

    /// A whole number.
    pub(super) fn integer(&mut self, name: &str) -> Result<Option<i128>, ProxyFailure> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let number = value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from));
        number.map(Some).ok_or_else(|| wrong(&self.path(name), "a whole number", &value))
    }

    pub(super) fn number(&mut self, name: &str) -> Result<Option<f64>, ProxyFailure> {
        let Some(value) = self.take(name) else { return Ok(None) };
        value.as_f64().map(Some).ok_or_else(|| wrong(&self.path(name), "a number", &value))
    }
}

fn wrong(at: &str, expected: &str, got: &Value) -> ProxyFailure {
    ProxyFailure::bad_request(format!("{at}: expected {expected}, got {}", kind(got)))
}

fn kind(value: &Value) -> Cow<'static, str> {
    Cow::Borrowed(match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(number) => return Cow::Owned(format!("the number {number}")),
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    })
}
