//! Invalid HTTP responses.

use std::io::{Read as _, Write as _};
use std::sync::mpsc::channel;

use haft_mcp::client::{McpError, ToolCallOptions};
use haft_tool::Cancel;
use serde_json::json;

use super::server::{ScriptedServer, respond, respond_json, respond_text, start_events, text_result};
use super::{TEST_TIMEOUT, connect, echo, limits, short_calls};

fn call_error(server: &ScriptedServer, limits: haft_mcp::client::ClientLimits) -> (McpError, String) {
    let client = connect(&server.url(), limits).unwrap();
    let error = echo(&client).unwrap_err();
    assert!(client.list_tools().is_ok(), "the connection goes on");
    (error.kind, error.message)
}

#[test]
fn stream_without_a_response_fails_the_call() {
    let server = ScriptedServer::stateless(|_, stream| {
        start_events(stream, "");
        false
    });
    assert_eq!(call_error(&server, limits()).0, McpError::Disconnected);
    let half = ScriptedServer::stateless(|request, stream| {
        let whole = request.result(&text_result("hi")).to_string();
        start_events(stream, &format!("data: {}", &whole[..whole.len() - 5]));
        false
    });
    assert_eq!(call_error(&half, limits()).0, McpError::Disconnected);
}

#[test]
fn broken_connection_fails_the_call() {
    let server = ScriptedServer::stateless(|_, stream| {
        let _ = stream.write_all(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 1000\r\n\r\ndata: {",
        );
        false
    });
    assert_eq!(call_error(&server, limits()).0, McpError::Disconnected);
    let nothing = ScriptedServer::stateless(|_, _| false);
    assert_eq!(call_error(&nothing, limits()).0, McpError::Unreachable);
}

#[test]
fn endless_event_is_refused() {
    let server = ScriptedServer::stateless(|_, stream| {
        start_events(stream, "data: ");
        while stream.write_all(&[b'x'; 8192]).is_ok() {}
        false
    });
    let (kind, message) = call_error(&server, limits());
    assert_eq!(kind, McpError::TooLarge);
    assert!(message.contains("1048576 bytes"), "{message}");
}

#[test]
fn trickling_response_times_out() {
    let server = ScriptedServer::stateless(|_, stream| {
        start_events(stream, "data: ");
        let pause = std::time::Duration::from_millis(10);
        while stream.write_all(b"x").is_ok() {
            std::thread::park_timeout(pause);
        }
        false
    });
    assert_eq!(call_error(&server, short_calls()).0, McpError::TimedOut);
    let comments = ScriptedServer::stateless(|_, stream| {
        start_events(stream, "");
        while stream.write_all(b": alive\n\n").is_ok() {
            std::thread::park_timeout(std::time::Duration::from_millis(10));
        }
        false
    });
    assert_eq!(call_error(&comments, short_calls()).0, McpError::TimedOut);
}

#[test]
fn compressed_bomb_is_refused() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..1000 {
        packed.write_all(&[b' '; 16384].repeat(8)).unwrap();
    }
    let packed = packed.finish().unwrap();
    let server = ScriptedServer::stateless(move |_, stream| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n";
        let _ = stream.write_all(format!("{head}Content-Length: {}\r\n\r\n", packed.len()).as_bytes());
        stream.write_all(&packed).is_ok()
    });
    assert_eq!(call_error(&server, limits()).0, McpError::TooLarge);
}

#[test]
fn invalid_response_is_an_error() {
    let page = ScriptedServer::stateless(|_, stream| {
        respond(stream, 200, &[("Content-Type", "text/html")], "<h1>Log in</h1>")
    });
    let (kind, message) = call_error(&page, limits());
    assert!(kind == McpError::InvalidMessage && message.contains("text/html"), "{message}");
    let broken = ScriptedServer::stateless(|_, stream| {
        respond(stream, 200, &[("Content-Type", "application/json")], "{\"jsonrpc\":")
    });
    assert_eq!(call_error(&broken, limits()).0, McpError::InvalidMessage);
    let deep = ScriptedServer::stateless(|_, stream| {
        let body = "[".repeat(100_000);
        respond(stream, 200, &[("Content-Type", "application/json")], &body)
    });
    assert_eq!(call_error(&deep, limits()).0, McpError::InvalidMessage);
    let event = ScriptedServer::stateless(|_, stream| {
        start_events(stream, "data: no message\n\n");
        false
    });
    assert_eq!(call_error(&event, limits()).0, McpError::InvalidMessage);
    let nothing = ScriptedServer::stateless(|_, stream| respond_text(stream, 202, ""));
    assert_eq!(call_error(&nothing, limits()).0, McpError::InvalidMessage);
}

#[test]
fn responses_to_other_requests_are_ignored() {
    let other = ScriptedServer::stateless(|request, stream| {
        let id = request.body["id"].as_i64().unwrap();
        start_events(stream, "data: {}\n\n");
        for wrong in [json!(id + 1), json!(id.to_string()), json!(null)] {
            let wrong = json!({"jsonrpc": "2.0", "id": wrong, "result": text_result("wrong")});
            let _ = stream.write_all(format!("data: {wrong}\n\n").as_bytes());
        }
        let _ = stream.write_all(format!("data: {}\n\n", request.result(&text_result("right"))).as_bytes());
        false
    });
    let client = connect(&other.url(), limits()).unwrap();
    assert_eq!(echo(&client).unwrap()["content"][0]["text"], "right");
    let wrong = ScriptedServer::stateless(|_, stream| {
        respond_json(stream, &json!({"jsonrpc": "2.0", "id": 999, "result": text_result("wrong")}))
    });
    assert_eq!(call_error(&wrong, limits()).0, McpError::InvalidMessage);
}

#[test]
fn error_status_is_reported_with_the_body() {
    let broken = ScriptedServer::stateless(|_, stream| respond_text(stream, 503, "down\u{1b}[31m for lunch"));
    let (kind, message) = call_error(&broken, limits());
    assert_eq!(kind, McpError::HttpStatus(503));
    assert!(message.ends_with("It wrote: down for lunch"), "{message}");
    let refused = ScriptedServer::stateless(|request, stream| {
        let error = json!({"jsonrpc": "2.0", "id": request.body["id"], "error": {"code": -32602, "message": "no such tool"}});
        respond(stream, 400, &[("Content-Type", "application/json")], &error.to_string())
    });
    let (kind, _) = call_error(&refused, limits());
    assert!(matches!(kind, McpError::Rpc(error) if error.code == -32602));
}

#[test]
fn cancelled_stateless_call_closes_its_stream() {
    let (sender, receiver) = channel();
    let server = ScriptedServer::stateless(move |_, stream| {
        start_events(stream, ": begun\n\n");
        let _ = sender.send("begun");
        let _ = stream.read(&mut [0]);
        let _ = sender.send("closed");
        false
    });
    let client = connect(&server.url(), limits()).unwrap();
    let cancel = Cancel::new();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| client.call_tool("echo", &json!({}), &ToolCallOptions::new(&cancel)));
        assert_eq!(receiver.recv_timeout(TEST_TIMEOUT), Ok("begun"));
        cancel.cancel();
        assert_eq!(waiting.join().unwrap().unwrap_err().kind, McpError::Cancelled);
        assert_eq!(receiver.recv_timeout(TEST_TIMEOUT), Ok("closed"));
    });
    assert!(server.received().iter().all(|request| request.method() != "notifications/cancelled"));
}

#[test]
fn unreachable_server_is_reported() {
    let error = connect("http://127.0.0.1:1/mcp", limits()).err().unwrap();
    assert_eq!(error.kind, McpError::Unreachable);
    assert!(error.message.contains("nothing listens there"), "{error}");
}
