//! The fields of `_meta`.

use serde_json::Value;

/// The protocol version of a request.
pub const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The client's name and version.
pub const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
/// The client's capabilities.
pub const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The lowest level of log messages that the client wants for this request.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The subscription that a notification belongs to.
pub const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
/// The server's name and version.
pub const SERVER: &str = "io.modelcontextprotocol/serverInfo";

/// A field of `_meta`.
pub fn get<'a>(params: &'a Value, field: &str) -> Option<&'a Value> {
    params.get("_meta")?.get(field)
}

/// The protocol version of a request.
pub fn version(params: &Value) -> Option<&str> {
    get(params, VERSION)?.as_str()
}
