//! JSON-RPC messages.

use std::fmt;

use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::broken_request::request_id;
use super::error::{INVALID_REQUEST, PARSE_ERROR, RpcError};

/// The capacity that most messages need.
const TYPICAL_LINE_BYTES: usize = 512;

/// Matches a response with its request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub enum RequestId {
    /// A number.
    Number(i64),
    /// A string.
    Text(String),
}

impl RequestId {
    /// Reads an id; `None` if the value cannot be one.
    pub fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => number.as_i64().map(Self::Number),
            Value::String(text) => Some(Self::Text(text.clone())),
            _ => None,
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "\"{}\"", text.escape_debug()),
        }
    }
}

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub enum RpcMessage {
    /// A request.
    Request {
        /// The id that the response will have.
        id: RequestId,
        /// The method.
        method: String,
        /// The parameters, an object; null if there are none.
        params: Value,
    },
    /// A notification, which has no response.
    Notification {
        /// The method.
        method: String,
        /// The parameters, an object; null if there are none.
        params: Value,
    },
    /// A response.
    Response {
        /// The request's id; `None` if the sender could not read it.
        id: Option<RequestId>,
        /// The result or the error.
        outcome: Result<Value, RpcError>,
    },
}

/// The content of one line or one body.
#[derive(Debug, Clone, PartialEq)]
pub enum RpcInput {
    /// One message.
    Single(RpcMessage),
    /// Several messages, each valid or not; only version 2025-03-26 has them.
    Batch(Vec<Result<RpcMessage, InvalidMessage>>),
}

/// A message that cannot be read.
#[derive(Debug, Clone, PartialEq)]
pub struct InvalidMessage {
    /// The id, if it is a request and its id can be read.
    pub id: Option<RequestId>,
    /// What is wrong with it.
    pub error: Box<RpcError>,
}

impl InvalidMessage {
    /// The response to send.
    pub fn into_response(self) -> RpcMessage {
        RpcMessage::Response { id: self.id, outcome: Err(*self.error) }
    }
}

impl RpcInput {
    /// Parses a line or a body.
    pub fn read(bytes: &[u8]) -> Result<Self, InvalidMessage> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        Self::parse(bytes).map_err(|error| InvalidMessage { id: request_id(bytes), error: error.into() })
    }

    fn parse(bytes: &[u8]) -> Result<Self, RpcError> {
        let parse_error = |error| RpcError::new(PARSE_ERROR, format!("Parse error: {error}"));
        if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'[') {
            return match serde_json::from_slice(bytes) {
                Ok(envelope) => RpcMessage::from_envelope(envelope).map(Self::Single),
                Err(error) if error.is_data() => Err(invalid_envelope(&error)),
                Err(error) => Err(parse_error(error)),
            };
        }
        let all: Vec<Value> = serde_json::from_slice(bytes).map_err(parse_error)?;
        if all.is_empty() {
            return Err(invalid("the batch is empty"));
        }
        let read = |value: Value| {
            let id = value.get("id").filter(|_| value.get("method").is_some()).and_then(RequestId::read);
            RpcMessage::from_value(value).map_err(|error| InvalidMessage { id, error: error.into() })
        };
        Ok(Self::Batch(all.into_iter().map(read).collect()))
    }

    /// The valid messages.
    pub fn into_messages(self) -> impl Iterator<Item = RpcMessage> {
        let all = match self {
            Self::Single(message) => vec![Ok(message)],
            Self::Batch(all) => all,
        };
        all.into_iter().flatten()
    }
}

/// The fields of all kinds of messages, before they are checked.
#[derive(Deserialize)]
struct Envelope {
    jsonrpc: Option<Value>,
    #[serde(default, deserialize_with = "keep_null")]
    id: Option<Value>,
    method: Option<Value>,
    #[serde(default, deserialize_with = "keep_null")]
    params: Option<Value>,
    #[serde(default, deserialize_with = "keep_null")]
    result: Option<Value>,
    #[serde(default, deserialize_with = "keep_null")]
    error: Option<Value>,
}

fn keep_null<'de, D: Deserializer<'de>>(field: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(field).map(Some)
}

fn invalid(why: &str) -> RpcError {
    RpcError::new(INVALID_REQUEST, format!("Invalid request: {why}"))
}

/// Why JSON is not an envelope: it is not an object, or it has a field twice.
fn invalid_envelope(error: &serde_json::Error) -> RpcError {
    let why = error.to_string();
    invalid(if why.starts_with("invalid type") { "expected an object" } else { &why })
}

impl RpcMessage {
    /// Reads one message from a JSON value.
    pub fn from_value(value: Value) -> Result<Self, RpcError> {
        // serde would accept an array as the fields in their order.
        if !value.is_object() {
            return Err(invalid("expected an object"));
        }
        serde_json::from_value(value).map_err(|error| invalid_envelope(&error)).and_then(Self::from_envelope)
    }

    fn from_envelope(envelope: Envelope) -> Result<Self, RpcError> {
        let Envelope { jsonrpc, id, method, params, result, error } = envelope;
        if jsonrpc.as_ref().and_then(Value::as_str) != Some("2.0") {
            return Err(invalid("jsonrpc must be \"2.0\""));
        }
        let id = match &id {
            None => None,
            Some(Value::Null) if error.is_some() => None,
            Some(value) => {
                Some(RequestId::read(value).ok_or_else(|| invalid("id must be a string or an integer"))?)
            }
        };
        if let Some(method) = method {
            let Value::String(method) = method else { return Err(invalid("method must be a string")) };
            let params = params.unwrap_or_default();
            if !matches!(params, Value::Null | Value::Object(_)) {
                return Err(invalid("params must be an object"));
            }
            return Ok(match id {
                Some(id) => Self::Request { id, method, params },
                None => Self::Notification { method, params },
            });
        }
        if let Some(error) = error {
            return Ok(Self::Response { id, outcome: Err(read_error(&error)) });
        }
        match (result, id) {
            (Some(result), Some(id)) => Ok(Self::Response { id: Some(id), outcome: Ok(result) }),
            (Some(_), None) => Err(invalid("the result has no id")),
            (None, _) => Err(invalid("there is no method, no result and no error")),
        }
    }

    /// A request.
    pub fn request(id: RequestId, method: impl Into<String>, params: Value) -> Self {
        Self::Request { id, method: method.into(), params }
    }

    /// A notification.
    pub fn notification(method: impl Into<String>, params: Value) -> Self {
        Self::Notification { method: method.into(), params }
    }

    /// A response.
    pub fn response(id: RequestId, outcome: Result<Value, RpcError>) -> Self {
        Self::Response { id: Some(id), outcome }
    }

    /// The message as JSON on one line, with a line feed.
    pub fn to_line(&self) -> Vec<u8> {
        let mut line = Vec::with_capacity(TYPICAL_LINE_BYTES);
        // Writing to memory does not fail, and all keys are strings.
        let _ = serde_json::to_writer(&mut line, self);
        line.push(b'\n');
        line
    }
}

impl Serialize for RpcMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("jsonrpc", "2.0")?;
        match self {
            Self::Request { id, .. } | Self::Response { id: Some(id), .. } => {
                map.serialize_entry("id", id)?;
            }
            Self::Notification { .. } | Self::Response { id: None, .. } => {}
        }
        match self {
            Self::Request { method, params, .. } | Self::Notification { method, params } => {
                map.serialize_entry("method", method)?;
                if !params.is_null() {
                    map.serialize_entry("params", params)?;
                }
            }
            Self::Response { outcome: Ok(result), .. } => map.serialize_entry("result", result)?,
            Self::Response { outcome: Err(error), .. } => map.serialize_entry("error", error)?,
        }
        map.end()
    }
}

/// Reads an error as far as it is valid.
fn read_error(error: &Value) -> RpcError {
    let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
    let message = error.get("message").and_then(Value::as_str).unwrap_or("an error without a message");
    RpcError { code, message: message.to_owned(), data: error.get("data").cloned() }
}
