//! Servers with the HTTP+SSE transport of version 2024-11-05.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use haft_mcp::client::{McpError, ServerChange};
use haft_mcp::wire::ProtocolVersion;
use serde_json::{Value, json};

use super::server::{ReceivedRequest, ScriptedServer, respond_text, start_events, text_result};
use super::{TEST_TIMEOUT, connect, echo, limits};

/// A server of the HTTP+SSE transport; the closure returns the events for one request.
fn sse_server(
    target: &'static str,
    make_events: impl Fn(&ReceivedRequest) -> String + Send + Sync + 'static,
) -> ScriptedServer {
    let stream: Arc<Mutex<Option<TcpStream>>> = Arc::default();
    ScriptedServer::new(move |request, reply| match (request.verb.as_str(), request.path.as_str()) {
        ("GET", _) => {
            start_events(reply, &format!("event: endpoint\ndata: {target}\n\n"));
            *stream.lock().unwrap() = Some(reply.try_clone().unwrap());
            // POST requests write their events to the stream, so it stays open.
            true
        }
        ("POST", "/messages?id=1") => {
            let done = respond_text(reply, 202, "Accepted");
            if let Some(stream) = &mut *stream.lock().unwrap() {
                let _ = stream.write_all(make_events(request).as_bytes());
            }
            done
        }
        _ => respond_text(reply, 405, "Method Not Allowed"),
    })
}

fn event(value: &Value) -> String {
    format!("event: message\ndata: {value}\n\n")
}

fn good_events(request: &ReceivedRequest) -> String {
    let result = match request.method() {
        "initialize" => {
            json!({"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": {"name": "old"}})
        }
        "tools/list" => json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}),
        "tools/call" => text_result("hi"),
        _ => return String::new(),
    };
    event(&request.result(&result))
}

#[test]
fn sse_server_is_detected_and_used() {
    let server = sse_server("/messages?id=1", |request| {
        let change = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        if request.method() == "tools/call" {
            event(&change) + &good_events(request)
        } else {
            good_events(request)
        }
    });
    let client = connect(&server.url(), limits()).unwrap();
    assert_eq!((client.info().version, client.info().name.as_str()), (ProtocolVersion::V2024_11_05, "old"));
    let (sender, receiver) = channel();
    client.on_change(move |change| drop(sender.send(change)));
    assert_eq!(client.list_tools().unwrap().items.len(), 1);
    assert_eq!(echo(&client).unwrap()["content"][0]["text"], "hi");
    assert_eq!(receiver.recv_timeout(TEST_TIMEOUT), Ok(ServerChange::Tools));
    client.close();
    assert_eq!(echo(&client).unwrap_err().kind, McpError::Closed);
}

#[test]
fn sse_target_of_another_host_is_refused() {
    for target in ["http://127.0.0.1:9/messages", "//evil.example/x", "file:///etc/passwd"] {
        let server = sse_server(target, good_events);
        assert_eq!(
            connect(&server.url(), limits()).err().unwrap().kind,
            McpError::HttpStatus(405),
            "{target}"
        );
    }
}

#[test]
fn invalid_sse_message_fails_the_call_and_overlong_closes() {
    let server = sse_server("/messages?id=1", |request| {
        if request.method() == "tools/call" {
            "data: no message\n\n".to_owned()
        } else {
            good_events(request)
        }
    });
    let client = connect(&server.url(), limits()).unwrap();
    assert_eq!(echo(&client).unwrap_err().kind, McpError::InvalidMessage);
    assert_eq!(client.list_tools().unwrap().items.len(), 1);
    let server = sse_server("/messages?id=1", |request| {
        if request.method() == "tools/call" { "data: x".repeat(1 << 20) } else { good_events(request) }
    });
    let client = connect(&server.url(), limits()).unwrap();
    for _ in 0..2 {
        assert_eq!(echo(&client).unwrap_err().kind, McpError::TooLarge);
    }
}
