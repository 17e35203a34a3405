//! What a message says about itself, under `_meta`.

use serde_json::Value;

/// The revision that a request is written in.
pub const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Who asks.
pub const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
/// What whoever asks can do.
pub const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// From which level on the request's client wants to hear of it.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Which subscription a notification belongs to.
pub const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
/// Who answers.
pub const SERVER: &str = "io.modelcontextprotocol/serverInfo";

/// A field of `_meta`.
pub fn get<'a>(params: &'a Value, field: &str) -> Option<&'a Value> {
    params.get("_meta")?.get(field)
}

/// The revision that a request names.
pub fn version(params: &Value) -> Option<&str> {
    get(params, VERSION)?.as_str()
}
