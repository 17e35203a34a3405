//! The fields of `_meta`.

use haft_tool::TraceContext;
use serde_json::{Value, json};

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

/// The span that a request belongs to, as W3C Trace Context writes it.
pub const TRACEPARENT: &str = "traceparent";
/// What vendors add to it.
pub const TRACESTATE: &str = "tracestate";

/// The fields that name a span.
pub fn of_trace(trace: &TraceContext) -> Value {
    let mut meta = json!({ TRACEPARENT: trace.to_string() });
    if !trace.state.is_empty() {
        meta[TRACESTATE] = json!(trace.state);
    }
    meta
}

/// The span that a request belongs to, if it names a valid one.
pub fn trace(params: &Value) -> Option<TraceContext> {
    let text = |field| get(params, field).and_then(Value::as_str);
    TraceContext::parse(text(TRACEPARENT)?, text(TRACESTATE))
}

/// A field of `_meta`.
pub fn get<'a>(params: &'a Value, field: &str) -> Option<&'a Value> {
    params.get("_meta")?.get(field)
}

/// The protocol version of a request.
pub fn version(params: &Value) -> Option<&str> {
    get(params, VERSION)?.as_str()
}
