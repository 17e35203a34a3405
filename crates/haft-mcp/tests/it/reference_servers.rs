//! The client against published servers: version, tools and one call of each.
//!
//! `$HAFT_NODE22`, `$HAFT_MCP_NODE` and `$HAFT_MCP_PYTHON` say where they are installed; `cargo xtask peers` prints them.

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

use crate::fixture::process;

/// Enough for Node and Python to start on a busy machine.
const START_TIMEOUT: Duration = Duration::from_mins(2);

fn installed(variable: &str) -> PathBuf {
    let missing = |_| format!("{variable} is not set; `cargo xtask peers` installs it and prints it");
    std::env::var(variable).map(PathBuf::from).map_err(missing).unwrap()
}

fn node(package: &str, arguments: &[&str]) -> Command {
    let script = installed("HAFT_MCP_NODE").join("@modelcontextprotocol").join(package).join("dist/index.js");
    let mut command = Command::new(installed("HAFT_NODE22"));
    command.arg(script).args(arguments);
    command
}

fn python(module: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(installed("HAFT_MCP_PYTHON"));
    command.args(["-m", module]).args(arguments);
    command
}

fn options() -> ClientOptions {
    let limits = ClientLimits {
        connect_timeout: START_TIMEOUT,
        probe_timeout: START_TIMEOUT,
        list_timeout: START_TIMEOUT,
        call_timeout: START_TIMEOUT,
        ..ClientLimits::default()
    };
    ClientOptions { limits, ..ClientOptions::default() }
}

fn connect(command: &mut Command) -> McpClient {
    McpClient::connect(ServerTransport::Stdio(process::start(command, PathBuf::new())), options()).unwrap()
}

/// Checks the version, the number of tools, that all are portable, and that the result of one call contains a text.
fn check(client: &McpClient, version: ProtocolVersion, tools: usize, call: (&str, &Value, &str)) {
    assert_eq!(client.info().version, version);
    let listed = client.list_tools().unwrap();
    assert_eq!((listed.items.len(), listed.warnings), (tools, Vec::new()));
    for tool in &listed.items {
        assert_eq!(make_portable(tool).unwrap().left_out, Vec::<String>::new(), "{}", tool.name);
    }
    let (name, arguments, text) = call;
    let result = client.call_tool(name, arguments, &ToolCallOptions::new(&Cancel::new())).unwrap();
    assert!(result["isError"] != true && result["content"].to_string().contains(text), "{result}");
    client.close();
}

#[test]
fn server_filesystem() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    std::fs::write(folder.join("a.txt"), "a text").unwrap();
    let client = connect(&mut node("server-filesystem", &[folder.to_str().unwrap()]));
    let path = json!({"path": folder.join("a.txt")});
    check(&client, ProtocolVersion::V2025_11_25, 14, ("read_text_file", &path, "a text"));
}

#[test]
fn server_memory() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = node("server-memory", &[]);
    let client = connect(command.env("MEMORY_FILE_PATH", folder.path().join("memory.json")));
    check(&client, ProtocolVersion::V2025_11_25, 9, ("read_graph", &json!({}), "entities"));
}

#[test]
fn server_everything() {
    let client = connect(&mut node("server-everything", &["stdio"]));
    assert!(client.list_resources().unwrap().items.len() > 3);
    assert!(client.list_resource_templates().unwrap().items.len() > 1);
    assert!(client.list_prompts().unwrap().items.len() > 1);
    check(&client, ProtocolVersion::V2025_11_25, 13, ("echo", &json!({"message": "a text"}), "a text"));
}

#[test]
fn mcp_server_git() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    assert!(Command::new("git").args(["init", "-q", path]).status().unwrap().success());
    std::fs::write(folder.path().join("new.txt"), "").unwrap();
    let client = connect(&mut python("mcp_server_git", &["--repository", path]));
    check(&client, ProtocolVersion::V2026_07_28, 12, ("git_status", &json!({"repo_path": path}), "new.txt"));
}

#[test]
fn mcp_server_time() {
    let client = connect(&mut python("mcp_server_time", &["--local-timezone", "UTC"]));
    check(
        &client,
        ProtocolVersion::V2026_07_28,
        2,
        ("get_current_time", &json!({"timezone": "Asia/Tokyo"}), "+09:00"),
    );
}

/// An HTTP server that is killed when it is dropped.
struct RemoteProcess(Child);

impl Drop for RemoteProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn remote(kind: &str, path: &str) -> (McpClient, RemoteProcess) {
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let mut command = node("server-everything", &[kind]);
    let child = command
        .env("PORT", port.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let remote = RemoteProcess(child.spawn().unwrap());
    let until = Instant::now() + START_TIMEOUT;
    loop {
        let http = Arc::new(HttpService::default())
            .streams_for(vec![format!("127.0.0.1:{port}"), format!("[::1]:{port}")]);
        let url = format!("http://localhost:{port}{path}");
        let endpoint = HttpEndpoint { url, headers: Vec::new(), http, tokens: None };
        match McpClient::connect(ServerTransport::Http(endpoint), options()) {
            Ok(client) => return (client, remote),
            // The server does not report when it is ready.
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
        Cancel::new().wait(Duration::from_millis(100));
    }
}

#[test]
fn server_everything_over_http() {
    let (client, _remote) = remote("streamableHttp", "/mcp");
    check(&client, ProtocolVersion::V2025_11_25, 13, ("echo", &json!({"message": "a text"}), "a text"));
}

#[test]
fn server_everything_over_sse() {
    let (client, _remote) = remote("sse", "/sse");
    check(&client, ProtocolVersion::V2025_11_25, 13, ("echo", &json!({"message": "a text"}), "a text"));
}

#[test]
fn reference_servers_are_installed() {
    for variable in ["HAFT_NODE22", "HAFT_MCP_NODE", "HAFT_MCP_PYTHON"] {
        assert!(Path::new(&installed(variable)).exists(), "{variable}");
    }
}
