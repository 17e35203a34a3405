//! One message: a request, a notification, or the answer to a request.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::error::{INVALID_REQUEST, PARSE, RpcError};
use super::writing::{write_text, write_value};

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
        let parse = |error| RpcError::new(PARSE, format!("Parse error: {error}"));
        if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'[') {
            return match serde_json::from_slice(bytes) {
                Ok(envelope) => Message::open(envelope).map(Self::One),
                Err(error) if error.is_data() => Err(invalid(&unfit(&error))),
                Err(error) => Err(parse(error)),
            };
        }
        let all: Vec<Value> = serde_json::from_slice(bytes).map_err(parse)?;
        if all.is_empty() {
            return Err(invalid("an empty batch"));
        }
        Ok(Self::Batch(all.into_iter().map(Message::from_value).collect()))
    }
}

/// The fields that messages have, before anybody has looked whether they make one.
#[derive(Deserialize)]
struct Envelope {
    jsonrpc: Option<Value>,
    #[serde(default, deserialize_with = "even_null")]
    id: Option<Value>,
    method: Option<Value>,
    #[serde(default, deserialize_with = "even_null")]
    params: Option<Value>,
    #[serde(default, deserialize_with = "even_null")]
    result: Option<Value>,
    #[serde(default, deserialize_with = "even_null")]
    error: Option<Value>,
}

fn even_null<'de, D: Deserializer<'de>>(field: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(field).map(Some)
}

fn invalid(why: &str) -> RpcError {
    RpcError::new(INVALID_REQUEST, format!("Invalid request: {why}"))
}

/// Why JSON is no envelope.
fn unfit(error: &serde_json::Error) -> String {
    let why = error.to_string();
    // The only other reason is a field that stands there twice.
    if why.starts_with("invalid type") { "expected an object".to_owned() } else { why }
}

impl Message {
    /// Reads one message out of a JSON value.
    pub fn from_value(value: Value) -> Result<Self, RpcError> {
        // A list would be taken for the fields in their order.
        if !value.is_object() {
            return Err(invalid("expected an object"));
        }
        serde_json::from_value(value).map_err(|error| invalid(&unfit(&error))).and_then(Self::open)
    }

    fn open(envelope: Envelope) -> Result<Self, RpcError> {
        let Envelope { jsonrpc, id, method, params, result, error } = envelope;
        if jsonrpc.as_ref().and_then(Value::as_str) != Some("2.0") {
            return Err(invalid("jsonrpc must be \"2.0\""));
        }
        let id = match &id {
            None => None,
            Some(Value::Null) if error.is_some() => None,
            Some(value) => Some(Id::read(value).ok_or_else(|| invalid("id must be a string or an integer"))?),
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
        let mut line = Vec::with_capacity(512);
        self.write_line(&mut line);
        line
    }

    /// Writes the same line behind others.
    pub fn write_line(&self, line: &mut Vec<u8>) {
        line.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
        match self {
            Self::Request { id, method, params } => {
                write_id(line, id);
                write_method(line, method, params);
            }
            Self::Notification { method, params } => write_method(line, method, params),
            Self::Response { id, outcome } => {
                if let Some(id) = id {
                    write_id(line, id);
                }
                match outcome {
                    Ok(result) => {
                        line.extend_from_slice(b",\"result\":");
                        write_value(line, result);
                    }
                    Err(error) => {
                        line.extend_from_slice(b",\"error\":");
                        // Writing to memory cannot fail, and every part is JSON already.
                        drop(serde_json::to_writer(&mut *line, error));
                    }
                }
            }
        }
        line.extend_from_slice(b"}\n");
    }
}

fn write_id(out: &mut Vec<u8>, id: &Id) {
    out.extend_from_slice(b",\"id\":");
    match id {
        Id::Number(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Id::Text(text) => write_text(out, text),
    }
}

fn write_method(out: &mut Vec<u8>, method: &str, params: &Value) {
    out.extend_from_slice(b",\"method\":");
    write_text(out, method);
    if !params.is_null() {
        out.extend_from_slice(b",\"params\":");
        write_value(out, params);
    }
}

/// An error as far as it can be understood; somebody answered with one, whatever its shape.
fn read_error(error: &Value) -> RpcError {
    let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
    let message = error.get("message").and_then(Value::as_str).unwrap_or("an error without words").to_owned();
    RpcError { code, message, data: error.get("data").cloned() }
}
