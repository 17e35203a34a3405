//! Servers behind an address: the newest transport, the oldest one, and another Haft.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::fixture::mcp_servers::ServerFixture;
use crate::fixture::peers::{node, script};

/// server-everything over HTTP.
struct Far {
    child: Child,
    port: u16,
}

impl Far {
    fn start(transport: &str) -> Self {
        // It can be told a port and cannot tell one.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(node());
        command
            .arg(script("server-everything", "dist/index.js"))
            .arg(transport)
            .env("PORT", port.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains(&format!("port {port}")) {
            assert!(errors.read_line(&mut said).unwrap() > 0, "server-everything ended: {said}");
        }
        std::thread::spawn(move || errors.read_to_end(&mut Vec::new()));
        Self { child, port }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_used(entry: &Value) {
    let fixture = ServerFixture::with(&[("far", entry.clone())]);
    let trial = fixture.json(&["mcp", "test", "far", "--json"]);
    assert_eq!(trial["protocol"], "2025-11-25", "{trial}");
    assert_eq!(trial["tools"].as_array().unwrap().len(), 13, "{trial}");
    let echo = fixture.call("mcp__far__echo", &json!({"message": "from afar"}));
    assert_eq!(echo["content"], "Echo: from afar", "{echo}");
    assert_eq!(echo["receipt"]["effects"][0]["reaches"], true, "{echo}");
    let address = "demo://resource/static/document/features.md";
    let read = json!({"server": "far", "uri": address}).to_string();
    assert!(fixture.done(&["call", "ReadMcpResource", &read]).contains("# Everything Server"));
}

#[test]
fn a_server_behind_an_address_is_used_like_any_other() {
    let far = Far::start("streamableHttp");
    is_used(&json!({"url": far.url("/mcp")}));
}

#[test]
fn a_server_that_speaks_only_the_oldest_form_is_used_too() {
    let far = Far::start("sse");
    is_used(&json!({"url": far.url("/sse"), "type": "sse"}));
    is_used(&json!({"url": far.url("/sse")}));
}

#[test]
fn a_server_behind_an_address_that_is_gone_is_a_clear_error() {
    let far = Far::start("streamableHttp");
    let url = far.url("/mcp");
    drop(far);
    let fixture = ServerFixture::with(&[("far", json!({"url": url}))]);
    let ran = fixture.haft(&["mcp", "test", "far"]);
    assert!(
        ran.code == 1 && ran.stderr.contains("the server far") && ran.stderr.contains("127.0.0.1"),
        "{}",
        ran.stderr
    );
}

#[test]
fn haft_holds_haft() {
    let far = ServerFixture::with(&[]);
    far.mcp.cli.write("letter.txt", "Dear Ann,\n");
    let served = far.mcp.serve(&[]);
    let entry =
        |token: &str| json!({"url": served.url, "headers": {"Authorization": format!("Bearer {token}")}});
    let near = ServerFixture::with(&[("far", entry(&served.token))]);
    let trial = near.json(&["mcp", "test", "far", "--json"]);
    assert_eq!(trial["protocol"], "2026-07-28", "{trial}");
    let letter = far.mcp.path("letter.txt");
    let wrote = near.call("mcp__far__Write", &json!({"file_path": letter, "content": "Dear Bob,\n"}));
    assert_eq!(wrote["is_error"], false, "{wrote}");
    assert_eq!(far.mcp.cli.read("letter.txt"), "Dear Bob,\n");
    far.mcp.haft(&["undo", "--yes"]);
    assert_eq!(far.mcp.cli.read("letter.txt"), "Dear Ann,\n", "who did it takes it back");
    near.own(&[("far", entry("guessed"))]);
    let refused = near.haft(&["mcp", "test", "far"]);
    assert!(refused.code != 0 && refused.stderr.contains("401"), "{}: {}", refused.code, refused.stderr);
    served.ends();
}
