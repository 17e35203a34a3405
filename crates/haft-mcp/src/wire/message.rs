//! One message: a request, a notification, or the answer to a request.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::error::{INVALID_REQUEST, PARSE, RpcError};

/// What an answer is matched with its request by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub enum Id {
    /// A number.
    Number(i64),
    /// A word.
    Text(String),
}

impl Id {
    /// The id that a JSON value is, if it is one.
    pub fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => number.as_i64().map(Self::Number),
            Value::String(text) => Some(Self::Text(text.clone())),
            _ => None,
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "\"{}\"", text.escape_debug()),
        }
    }
}

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// Somebody asks.
    Request {
        /// What the answer will be matched by.
        id: Id,
        /// What is asked for.
        method: String,
        /// What it needs; null if nothing was given.
        params: Value,
    },
    /// Somebody tells.
    Notification {
        /// What is told.
        method: String,
        /// The facts; null if nothing was given.
        params: Value,
    },
    /// Somebody answers.
    Response {
        /// The request's id; none if its sender could not make it out.
        id: Option<Id>,
        /// What came of it.
        outcome: Result<Value, RpcError>,
    },
}

/// What one line or body holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    /// One message.
    One(Message),
    /// Several, each for itself; only revision 2025-03-26 has them.
    Batch(Vec<Result<Message, RpcError>>),
}

impl Incoming {
    /// Reads a line or a body. The error is the answer to give, without an id.
    pub fn read(bytes: &[u8]) -> Result<Self, RpcError> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let value: Value = serde_json::from_slice(bytes)
            .map_err(|error| RpcError::new(PARSE, format!("Parse error: {error}")))?;
        match value {
            Value::Array(all) if all.is_empty() => {
                Err(RpcError::new(INVALID_REQUEST, "Invalid request: an empty batch"))
            }
            Value::Array(all) => Ok(Self::Batch(all.into_iter().map(Message::from_value).collect())),
            value => Message::from_value(value).map(Self::One),
        }
    }
}

impl Message {
    /// Reads one message out of a JSON value.
    pub fn from_value(value: Value) -> Result<Self, RpcError> {
        let invalid = |why: &str| RpcError::new(INVALID_REQUEST, format!("Invalid request: {why}"));
        let Value::Object(mut fields) = value else { return Err(invalid("expected an object")) };
        if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(invalid("jsonrpc must be \"2.0\""));
        }
        let id = match fields.get("id") {
            None => None,
            Some(Value::Null) if fields.contains_key("error") => None,
            Some(value) => Some(Id::read(value).ok_or_else(|| invalid("id must be a string or an integer"))?),
        };
        if let Some(method) = fields.remove("method") {
            let Value::String(method) = method else { return Err(invalid("method must be a string")) };
            let params = fields.remove("params").unwrap_or_default();
            if !matches!(params, Value::Null | Value::Object(_)) {
                return Err(invalid("params must be an object"));
            }
            return Ok(match id {
                Some(id) => Self::Request { id, method, params },
                None => Self::Notification { method, params },
            });
        }
        if let Some(error) = fields.remove("error") {
            return Ok(Self::Response { id, outcome: Err(read_error(&error)) });
        }
        match (fields.remove("result"), id) {
            (Some(result), Some(id)) => Ok(Self::Response { id: Some(id), outcome: Ok(result) }),
            (Some(_), None) => Err(invalid("a result without an id")),
            (None, _) => Err(invalid("there is neither a method nor a result nor an error")),
        }
    }

    /// A request.
    pub fn request(id: Id, method: impl Into<String>, params: Value) -> Self {
        Self::Request { id, method: method.into(), params }
    }

    /// A notification.
    pub fn notification(method: impl Into<String>, params: Value) -> Self {
        Self::Notification { method: method.into(), params }
    }

    /// An answer.
    pub fn response(id: Id, outcome: Result<Value, RpcError>) -> Self {
        Self::Response { id: Some(id), outcome }
    }

    /// The message as bytes on one line, its end included.
    pub fn to_line(&self) -> Vec<u8> {
        let mut line = Vec::with_capacity(256);
        // Writing to memory cannot fail, and every part is JSON already.
        let _ = serde_json::to_writer(&mut line, self);
        line.push(b'\n');
        line
    }
}

impl Serialize for Message {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap as _;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("jsonrpc", "2.0")?;
        match self {
            Self::Request { id, method, params } => {
                map.serialize_entry("id", id)?;
                map.serialize_entry("method", method)?;
                if !params.is_null() {
                    map.serialize_entry("params", params)?;
                }
            }
            Self::Notification { method, params } => {
                map.serialize_entry("method", method)?;
                if !params.is_null() {
                    map.serialize_entry("params", params)?;
                }
            }
            Self::Response { id, outcome } => {
                if let Some(id) = id {
                    map.serialize_entry("id", id)?;
                }
                match outcome {
                    Ok(result) => map.serialize_entry("result", result)?,
                    Err(error) => map.serialize_entry("error", error)?,
                }
            }
        }
        map.end()
    }
}

/// An error as far as it can be understood; somebody answered with one, whatever its shape.
fn read_error(error: &Value) -> RpcError {
    let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
    let message = error.get("message").and_then(Value::as_str).unwrap_or("an error without words").to_owned();
    RpcError { code, message, data: error.get("data").cloned() }
}
