//! Errors as the wire has them.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Version;

/// What came is no JSON.
pub const PARSE: i64 = -32700;
/// What came is JSON and no message.
pub const INVALID_REQUEST: i64 = -32600;
/// Nobody here knows the method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The method is known, its parameters make no sense.
pub const INVALID_PARAMS: i64 = -32602;
/// It is our fault.
pub const INTERNAL: i64 = -32603;
/// There is no such resource; revisions before 2026-07-28 have a code of its own for that.
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// A header and the body do not say the same.
pub const HEADER_MISMATCH: i64 = -32020;
/// The client would have to be able to do something that it cannot.
pub const MISSING_CAPABILITY: i64 = -32021;
/// The revision is one that is not spoken here.
pub const UNSUPPORTED_VERSION: i64 = -32022;

/// An error in answer to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RpcError {
    /// Which kind.
    pub code: i64,
    /// What went wrong, for people.
    pub message: String,
    /// More of it, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl RpcError {
    /// An error of that kind.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The same, with more for programs.
    #[must_use]
    pub fn with(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// The parameters make no sense.
    pub fn params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    /// It is our fault.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(INTERNAL, message)
    }

    /// Nobody here knows the method.
    pub fn method(method: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, format!("Method not found: {method:?}"))
    }

    /// There is no such resource.
    pub fn no_resource(uri: &str, version: Version) -> Self {
        let code = if version.is_modern() { INVALID_PARAMS } else { RESOURCE_NOT_FOUND };
        Self::new(code, format!("There is no resource {uri:?}")).with(json!({"uri": uri}))
    }

    /// The revision is not spoken here.
    pub fn version(requested: &str) -> Self {
        Self::new(UNSUPPORTED_VERSION, format!("The protocol version {requested:?} is not spoken here"))
            .with(json!({"supported": Version::words(), "requested": requested}))
    }

    /// The client would have to have declared this capability.
    pub fn capability(name: &str, shape: &Value) -> Self {
        Self::new(MISSING_CAPABILITY, format!("The client would have to support {name}"))
            .with(json!({"requiredCapabilities": shape}))
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for RpcError {}
