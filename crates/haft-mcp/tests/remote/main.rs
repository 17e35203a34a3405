//! Servers over HTTP, honest and hostile, held by the client through real sockets.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test makes the server it needs and stops when it cannot go on"
)]

mod honest;
mod hostile;
mod old;
mod places;
mod server;
mod sessions;
#[expect(dead_code, reason = "what other tests need of it is not needed here")]
#[path = "../support/mod.rs"]
mod support;
mod tokens;

use std::sync::Arc;
use std::time::Duration;

use haft_mcp::client::{Authorize, CallOptions, Client, ClientError, Endpoint, Limits, Options, Transport};
use haft_net::http::Web;
use haft_tool::Cancel;
use serde_json::{Value, json};

/// Long enough for whatever is under way; only a test that fails waits for so long.
const LONG: Duration = Duration::from_mins(1);

fn limits() -> Limits {
    Limits {
        connect: LONG,
        list: LONG,
        call: LONG,
        probe: Duration::from_secs(10),
        message_bytes: 1 << 20,
        ..Limits::default()
    }
}

/// The same with calls that may not take long.
fn short_calls() -> Limits {
    Limits { call: Duration::from_millis(500), call_at_most: Duration::from_millis(500), ..limits() }
}

fn endpoint(url: &str, authorize: Option<Arc<dyn Authorize>>) -> Endpoint {
    let port = url::Url::parse(url).unwrap().port().unwrap();
    let hosts = vec![format!("127.0.0.1:{port}")];
    let http = Arc::new(Web::default()).streams_to(hosts);
    Endpoint { url: url.to_owned(), headers: Vec::new(), http, authorize }
}

fn connect(url: &str, limits: Limits) -> Result<Client, ClientError> {
    Client::connect(Transport::Http(endpoint(url, None)), Options { limits, ..Options::default() })
}

fn call(client: &Client, name: &str, arguments: &Value) -> Result<Value, ClientError> {
    client.call(name, arguments, &CallOptions::new(&Cancel::new()))
}

fn echo(client: &Client) -> Result<Value, ClientError> {
    call(client, "echo", &json!({"text": "hi"}))
}
