//! The client against servers that misbehave: each ends in a result or a clear error within its limit, leaves no process
//! behind, and does not affect a good server beside it.

mod calls;
mod lifecycle;
mod modes;
mod server;
mod server_requests;
mod tools;

use std::time::Duration;

use haft_mcp::client::{ClientError, ClientLimits, ClientOptions, McpClient, ToolCallOptions};
use haft_tool::Cancel;
use serde_json::{Value, json};

use crate::fixture::TEST_TIMEOUT;
use server::HostileServer;

/// The families of protocol versions that a server supports.
const BOTH: &str = "both";
const LEGACY: &str = "legacy";

/// Limits that a good server keeps on any machine.
fn generous() -> ClientLimits {
    ClientLimits {
        connect_timeout: TEST_TIMEOUT,
        list_timeout: TEST_TIMEOUT,
        call_timeout: TEST_TIMEOUT,
        probe_timeout: Duration::from_secs(1),
        close_timeout: Duration::from_millis(300),
        max_message_bytes: 4 << 20,
        ..ClientLimits::default()
    }
}

/// The same, with short timeouts for calls.
fn short_calls() -> ClientLimits {
    ClientLimits {
        call_timeout: Duration::from_millis(700),
        max_call_time: Duration::from_millis(1500),
        ..generous()
    }
}

fn connect(server: &HostileServer, limits: ClientLimits) -> Result<McpClient, ClientError> {
    McpClient::connect(server.start(), ClientOptions { limits, ..ClientOptions::default() })
}

/// A client of a server in this mode, which must connect.
fn client(mode: &str, family: &'static str, limits: ClientLimits) -> (McpClient, HostileServer) {
    let server = HostileServer::new(mode, family);
    let client = connect(&server, limits).unwrap();
    (client, server)
}

fn call(client: &McpClient, name: &str, arguments: &Value) -> Result<Value, ClientError> {
    client.call_tool(name, arguments, &ToolCallOptions::new(&Cancel::new()))
}

fn echo(client: &McpClient, text: &str) -> Result<String, ClientError> {
    call(client, "echo", &json!({"text": text})).map(|result| text_of(&result))
}

/// The text of a result, joined.
fn text_of(result: &Value) -> String {
    let parts = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}
