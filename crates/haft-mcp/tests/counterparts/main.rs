//! Servers that people have, held by the client: each speaks the era that it is known to speak, lists and answers.
//!
//! They are found by the environment: `$HAFT_NODE22`, `$HAFT_MCP_NODE` and `$HAFT_MCP_PYTHON`, as `cargo xtask test` sets
//! them after it has installed them.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test starts what it needs and stops when it cannot go on"
)]

#[expect(dead_code, reason = "what only hostile servers need")]
#[path = "../support/process.rs"]
mod process;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_mcp::client::portable::make_portable;
use haft_mcp::client::{
    ClientLimits, ClientOptions, HttpEndpoint, McpClient, ServerTransport, ToolCallOptions,
};
use haft_mcp::wire::ProtocolVersion;
use haft_net::http::HttpService;
use haft_tool::Cancel;
use serde_json::{Value, json};

/// Long enough for a program of Node's or Python's to start on a busy machine.
const LONG: Duration = Duration::from_mins(2);

fn found(variable: &str) -> PathBuf {
    let missing = |_| format!("{variable} is not set; `cargo xtask test` installs it and sets it");
    std::env::var(variable).map(PathBuf::from).map_err(missing).unwrap()
}

fn node(package: &str, arguments: &[&str]) -> Command {
    let script = found("HAFT_MCP_NODE").join("@modelcontextprotocol").join(package).join("dist/index.js");
    let mut command = Command::new(found("HAFT_NODE22"));
    command.arg(script).args(arguments);
    command
}

fn python(module: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(found("HAFT_MCP_PYTHON"));
    command.args(["-m", module]).args(arguments);
    command
}

fn options() -> ClientOptions {
    let limits = ClientLimits {
        connect_timeout: LONG,
        probe_timeout: LONG,
        list_timeout: LONG,
        call_timeout: LONG,
        ..ClientLimits::default()
    };
    ClientOptions { limits, ..ClientOptions::default() }
}

fn held(command: &mut Command) -> McpClient {
    McpClient::connect(ServerTransport::Stdio(process::start(command, PathBuf::new())), options()).unwrap()
}

/// Tries a server: era, number of tools, all of them portable, and one call whose answer holds those words.
fn try_out(client: &McpClient, version: ProtocolVersion, tools: usize, call: (&str, &Value, &str)) {
    assert_eq!(client.info().version, version);
    let listed = client.list_tools().unwrap();
    assert_eq!((listed.items.len(), listed.warnings), (tools, Vec::new()));
    for tool in &listed.items {
        assert_eq!(make_portable(tool).unwrap().left_out, Vec::<String>::new(), "{}", tool.name);
    }
    let (name, arguments, words) = call;
    let result = client.call_tool(name, arguments, &ToolCallOptions::new(&Cancel::new())).unwrap();
    assert!(result["isError"] != true && result["content"].to_string().contains(words), "{result}");
    client.close();
}

#[test]
fn server_filesystem() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    std::fs::write(folder.join("a.txt"), "so it is").unwrap();
    let client = held(&mut node("server-filesystem", &[folder.to_str().unwrap()]));
    let path = json!({"path": folder.join("a.txt")});
    try_out(&client, ProtocolVersion::V2025_11_25, 14, ("read_text_file", &path, "so it is"));
}

#[test]
fn server_memory() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = node("server-memory", &[]);
    let client = held(command.env("MEMORY_FILE_PATH", folder.path().join("memory.json")));
    try_out(&client, ProtocolVersion::V2025_11_25, 9, ("read_graph", &json!({}), "entities"));
}

#[test]
fn server_everything() {
    let client = held(&mut node("server-everything", &["stdio"]));
    assert!(client.list_resources().unwrap().items.len() > 3);
    assert!(client.list_resource_templates().unwrap().items.len() > 1);
    assert!(client.list_prompts().unwrap().items.len() > 1);
    try_out(&client, ProtocolVersion::V2025_11_25, 13, ("echo", &json!({"message": "so it is"}), "so it is"));
}

#[test]
fn mcp_server_git() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    assert!(Command::new("git").args(["init", "-q", path]).status().unwrap().success());
    std::fs::write(folder.path().join("new.txt"), "").unwrap();
    let client = held(&mut python("mcp_server_git", &["--repository", path]));
    try_out(
        &client,
        ProtocolVersion::V2026_07_28,
        12,
        ("git_status", &json!({"repo_path": path}), "new.txt"),
    );
}

#[test]
fn mcp_server_time() {
    let client = held(&mut python("mcp_server_time", &["--local-timezone", "UTC"]));
    try_out(
        &client,
        ProtocolVersion::V2026_07_28,
        2,
        ("get_current_time", &json!({"timezone": "Asia/Tokyo"}), "+09:00"),
    );
}

/// A server over HTTP that ends with its test.
struct Remote(Child);

impl Drop for Remote {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn remote(kind: &str, path: &str) -> (McpClient, Remote) {
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let mut command = node("server-everything", &[kind]);
    let child = command
        .env("PORT", port.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let remote = Remote(child.spawn().unwrap());
    let until = Instant::now() + LONG;
    loop {
        let http = Arc::new(HttpService::default())
            .streams_for(vec![format!("127.0.0.1:{port}"), format!("[::1]:{port}")]);
        let url = format!("http://localhost:{port}{path}");
        let endpoint = HttpEndpoint { url, headers: Vec::new(), http, tokens: None };
        match McpClient::connect(ServerTransport::Http(endpoint), options()) {
            Ok(client) => return (client, remote),
            // It does not say when it listens.
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
        Cancel::new().wait(Duration::from_millis(100));
    }
}

#[test]
fn server_everything_over_http() {
    let (client, _remote) = remote("streamableHttp", "/mcp");
    try_out(&client, ProtocolVersion::V2025_11_25, 13, ("echo", &json!({"message": "so it is"}), "so it is"));
}

#[test]
fn server_everything_over_the_oldest_http() {
    let (client, _remote) = remote("sse", "/sse");
    try_out(&client, ProtocolVersion::V2025_11_25, 13, ("echo", &json!({"message": "so it is"}), "so it is"));
}

#[test]
fn the_programs_are_where_they_are_said_to_be() {
    for variable in ["HAFT_NODE22", "HAFT_MCP_NODE", "HAFT_MCP_PYTHON"] {
        assert!(Path::new(&found(variable)).exists(), "{variable}");
    }
}
