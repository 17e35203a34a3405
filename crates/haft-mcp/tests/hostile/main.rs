//! Servers that misbehave in every way that somebody thought of, held by the client: each ends in a result or a clear
//! error within its limit, nothing is left of it, and an honest server beside it never notices.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test starts what it needs and stops when it cannot go on"
)]

mod answers;
mod every;
mod launch;
mod lives;
mod offers;
#[path = "../support/process.rs"]
mod process;
mod words;

use std::time::Duration;

use haft_mcp::client::{ClientError, ClientLimits, ClientOptions, McpClient, ToolCallOptions};
use haft_tool::Cancel;
use launch::Run;
use serde_json::{Value, json};

const BOTH: &str = "both";
const LEGACY: &str = "legacy";
/// Long enough for whatever is under way; only a test that fails waits for so long.
const LONG: Duration = Duration::from_mins(1);

/// `ClientLimits` that an honest server keeps on any machine.
fn generous() -> ClientLimits {
    ClientLimits {
        connect_timeout: LONG,
        list_timeout: LONG,
        call_timeout: LONG,
        probe_timeout: Duration::from_secs(1),
        close_timeout: Duration::from_millis(300),
        max_message_bytes: 4 << 20,
        ..ClientLimits::default()
    }
}

/// The same, but for calls.
fn short_calls() -> ClientLimits {
    ClientLimits {
        call_timeout: Duration::from_millis(700),
        max_call_time: Duration::from_millis(1500),
        ..generous()
    }
}

fn connect(run: &Run, limits: ClientLimits) -> Result<McpClient, ClientError> {
    McpClient::connect(run.start(), ClientOptions { limits, ..ClientOptions::default() })
}

/// A client of that mode, which must connect.
fn client(mode: &str, era: &'static str, limits: ClientLimits) -> (McpClient, Run) {
    let run = Run::new(mode, era);
    let client = connect(&run, limits).unwrap();
    (client, run)
}

fn call(client: &McpClient, name: &str, arguments: &Value) -> Result<Value, ClientError> {
    client.call_tool(name, arguments, &ToolCallOptions::new(&Cancel::new()))
}

fn echo(client: &McpClient, text: &str) -> Result<String, ClientError> {
    call(client, "echo", &json!({"text": text})).map(|result| text_of(&result))
}

/// The text of a result, its parts one after the other.
fn text_of(result: &Value) -> String {
    let parts = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}
