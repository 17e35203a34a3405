//! A request to use a tool.

use serde_json::{Map, Value};

/// The arguments as they came in.
#[derive(Debug, Clone, PartialEq)]
pub enum Arguments {
    /// JSON text that is not parsed yet. Invalid JSON is an error, never `{}`.
    Raw(String),
    /// A parsed value.
    Json(Value),
}

impl From<Value> for Arguments {
    fn from(value: Value) -> Self {
        Self::Json(value)
    }
}

impl From<Map<String, Value>> for Arguments {
    fn from(map: Map<String, Value>) -> Self {
        Self::Json(Value::Object(map))
    }
}

impl From<String> for Arguments {
    fn from(text: String) -> Self {
        Self::Raw(text)
    }
}

impl From<&str> for Arguments {
    fn from(text: &str) -> Self {
        Self::Raw(text.to_owned())
    }
}

/// A request to use a tool: its id, the tool's name and the raw arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The caller's name for this call; each id gets exactly one result.
    pub id: String,
    /// The tool's name as the caller wrote it.
    pub tool: String,
    /// The arguments as they came in.
    pub arguments: Arguments,
}

impl Call {
    /// A call of `tool` under the id `id`.
    pub fn new(id: impl Into<String>, tool: impl Into<String>, arguments: impl Into<Arguments>) -> Self {
        Self { id: id.into(), tool: tool.into(), arguments: arguments.into() }
    }
}
