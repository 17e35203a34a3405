//! The official suite's authorization scenarios, one per run: `conformance-auth URL`.
#![expect(clippy::print_stderr, reason = "the suite shows what the client says")]

#[path = "conformance-client/auth.rs"]
mod auth;

use std::process::ExitCode;
use std::sync::Arc;

use haft_mcp::client::{CallOptions, Client, Endpoint, Options, Transport};
use haft_tool::{Cancel, Value, json};
use haft_world::Web;
use url::Url;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().next_back().ok_or("which server?")?;
    let context: Value = std::env::var("MCP_CONFORMANCE_CONTEXT")
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let web = Arc::new(Web::default());
    let folder = tempfile::tempdir()?;
    let authorize = auth::authorize(&web, &url, &context, folder.path())?;
    let port = Url::parse(&url)?.port().unwrap_or(80);
    let http = web.streams_to(vec![format!("127.0.0.1:{port}"), format!("[::1]:{port}")]);
    let endpoint = Endpoint { url, headers: Vec::new(), http, authorize: Some(authorize) };
    let client = Client::connect(Transport::Http(endpoint), Options::default())?;
    client.tools()?;
    client.call("test-tool", &json!({}), &CallOptions::new(&Cancel::new()))?;
    client.close();
    Ok(())
}
