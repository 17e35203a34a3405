//! JSON-RPC errors.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ProtocolVersion;

/// The input is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The input is JSON but not a valid message.
pub const INVALID_REQUEST: i64 = -32600;
/// The method is unknown.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters are invalid.
pub const INVALID_PARAMS: i64 = -32602;
/// A fault of the receiver.
pub const INTERNAL_ERROR: i64 = -32603;
/// The resource is unknown; only legacy versions have this code.
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// A header contradicts the body.
pub const HEADER_MISMATCH: i64 = -32020;
/// The request needs a capability that the client does not declare.
pub const MISSING_CAPABILITY: i64 = -32021;
/// The protocol version is not supported.
pub const UNSUPPORTED_VERSION: i64 = -32022;

/// The error of a response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RpcError {
    /// One of the constants of this module, or the sender's own.
    pub code: i64,
    /// What went wrong, for people.
    pub message: String,
    /// Details, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl RpcError {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Adds data.
    #[must_use]
    pub fn with(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// [`INVALID_PARAMS`].
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    /// [`INTERNAL_ERROR`].
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(INTERNAL_ERROR, message)
    }

    /// [`METHOD_NOT_FOUND`].
    pub fn method_not_found(method: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, format!("Method not found: {method:?}"))
    }

    /// The resource is unknown.
    pub fn resource_not_found(uri: &str, version: ProtocolVersion) -> Self {
        let code = if version.is_stateless() { INVALID_PARAMS } else { RESOURCE_NOT_FOUND };
        Self::new(code, format!("Resource not found: {uri:?}")).with(json!({"uri": uri}))
    }

    /// [`UNSUPPORTED_VERSION`].
    pub fn unsupported_version(requested: &str) -> Self {
        Self::new(UNSUPPORTED_VERSION, format!("Unsupported protocol version: {requested:?}"))
            .with(json!({"supported": ProtocolVersion::names(), "requested": requested}))
    }

    /// [`MISSING_CAPABILITY`]; `required` is the capability as the client would have to declare it.
    pub fn missing_capability(name: &str, required: &Value) -> Self {
        Self::new(MISSING_CAPABILITY, format!("The request needs the client capability {name:?}"))
            .with(json!({"requiredCapabilities": required}))
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for RpcError {}
