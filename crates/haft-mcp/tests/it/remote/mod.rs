//! The client against servers over HTTP.

mod own_server;
mod redirects;
mod responses;
mod server;
mod sessions;
mod sse;
mod tokens;

use std::sync::Arc;
use std::time::Duration;

use haft_mcp::client::{
    ClientError, ClientLimits, ClientOptions, HttpEndpoint, McpClient, ServerTransport, TokenProvider,
    ToolCallOptions,
};
use haft_net::http::HttpService;
use haft_tool::Cancel;
use serde_json::{Value, json};

use crate::fixture::TEST_TIMEOUT;

fn limits() -> ClientLimits {
    ClientLimits {
        connect_timeout: TEST_TIMEOUT,
        list_timeout: TEST_TIMEOUT,
        call_timeout: TEST_TIMEOUT,
        probe_timeout: Duration::from_secs(10),
        max_message_bytes: 1 << 20,
        ..ClientLimits::default()
    }
}

/// The same, with a short timeout for calls.
fn short_calls() -> ClientLimits {
    ClientLimits {
        call_timeout: Duration::from_millis(500),
        max_call_time: Duration::from_millis(500),
        ..limits()
    }
}

fn endpoint(url: &str, tokens: Option<Arc<dyn TokenProvider>>) -> HttpEndpoint {
    let port = url::Url::parse(url).unwrap().port().unwrap();
    let hosts = vec![format!("127.0.0.1:{port}")];
    let http = Arc::new(HttpService::default()).streams_for(hosts);
    HttpEndpoint { url: url.to_owned(), headers: Vec::new(), http, tokens }
}

fn connect(url: &str, limits: ClientLimits) -> Result<McpClient, ClientError> {
    McpClient::connect(
        ServerTransport::Http(endpoint(url, None)),
        ClientOptions { limits, ..ClientOptions::default() },
    )
}

fn call(client: &McpClient, name: &str, arguments: &Value) -> Result<Value, ClientError> {
    client.call_tool(name, arguments, &ToolCallOptions::new(&Cancel::new()))
}

fn echo(client: &McpClient) -> Result<Value, ClientError> {
    call(client, "echo", &json!({"text": "hi"}))
}
