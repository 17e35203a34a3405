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

use haft_mcp::client::{CallOptions, Client, ClientError, Limits, Options};
use haft_tool::Cancel;
use launch::Run;
use serde_json::{Value, json};

const BOTH: &str = "both";
const LEGACY: &str = "legacy";
/// Long enough for whatever is under way; only a test that fails waits for so long.
const LONG: Duration = Duration::from_mins(1);

/// Limits that an honest server keeps on any machine.
fn generous() -> Limits {
    Limits {
        connect: LONG,
        list: LONG,
        call: LONG,
        probe: Duration::from_secs(1),
        close: Duration::from_millis(300),
        message_bytes: 4 << 20,
        ..Limits::default()
    }
}

/// The same, but for calls.
fn short_calls() -> Limits {
    Limits { call: Duration::from_millis(700), call_at_most: Duration::from_millis(1500), ..generous() }
}

fn connect(run: &Run, limits: Limits) -> Result<Client, ClientError> {
    Client::connect(run.start(), Options { limits, ..Options::default() })
}

/// A client of that mode, which must connect.
fn client(mode: &str, era: &'static str, limits: Limits) -> (Client, Run) {
    let run = Run::new(mode, era);
    let client = connect(&run, limits).unwrap();
    (client, run)
}

fn call(client: &Client, name: &str, arguments: &Value) -> Result<Value, ClientError> {
    client.call(name, arguments, &CallOptions::new(&Cancel::new()))
}

fn echo(client: &Client, text: &str) -> Result<String, ClientError> {
    call(client, "echo", &json!({"text": text})).map(|result| text_of(&result))
}

/// The text of a result, its parts one after the other.
fn text_of(result: &Value) -> String {
    let parts = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}
