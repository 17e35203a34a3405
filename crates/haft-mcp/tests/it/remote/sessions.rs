//! Sessions, resumed streams and notifications of legacy servers.

use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use haft_mcp::client::{ClientLimits, McpError, ServerChange, ToolCallOptions};
use haft_mcp::wire::ProtocolVersion;
use haft_tool::Cancel;
use serde_json::json;

use super::server::{ScriptedServer, respond_json, respond_text, start_events, text_result};
use super::{TEST_TIMEOUT, connect, echo, limits, short_calls};

#[test]
fn session_id_is_sent_and_deleted() {
    let server =
        ScriptedServer::legacy(|request, stream| respond_json(stream, &request.result(&text_result("hi"))));
    let client = connect(&server.url(), limits()).unwrap();
    assert_eq!(client.info().version, ProtocolVersion::V2025_11_25);
    echo(&client).unwrap();
    client.close();
    let received = server.received();
    assert_eq!(received.last().unwrap().method(), "DELETE");
    for request in &received[2..] {
        assert_eq!(request.header("Mcp-Session-Id"), Some("s-1"), "{request:?}");
        assert_eq!(request.header("MCP-Protocol-Version"), Some("2025-11-25"), "{request:?}");
    }
    assert_eq!(received[1].header("Mcp-Session-Id"), None);
}

#[test]
fn lost_session_is_renewed_once() {
    let forgets = AtomicBool::new(true);
    let once = ScriptedServer::legacy(move |request, stream| {
        if forgets.swap(false, Ordering::SeqCst) {
            return respond_text(stream, 404, "who?");
        }
        respond_json(stream, &request.result(&text_result("hi")))
    });
    let client = connect(&once.url(), limits()).unwrap();
    assert_eq!(echo(&client).unwrap()["content"][0]["text"], "hi");
    let count = |server: &ScriptedServer, method: &str| {
        server.received().iter().filter(|request| request.method() == method).count()
    };
    assert_eq!(count(&once, "initialize"), 2);
    let always = ScriptedServer::legacy(|_, stream| respond_text(stream, 404, "who?"));
    let client = connect(&always.url(), limits()).unwrap();
    assert_eq!(echo(&client).unwrap_err().kind, McpError::SessionExpired);
    assert_eq!(count(&always, "initialize"), 2);
}

#[test]
fn interrupted_stream_is_resumed_after_the_last_event() {
    let server = ScriptedServer::legacy(|request, stream| {
        if request.method() == "tools/call" {
            start_events(stream, "id: one\nretry: 60\ndata: \n\n");
        } else {
            assert_eq!(request.header("Last-Event-ID"), Some("one"));
            let response = json!({"jsonrpc": "2.0", "id": 3, "result": text_result("later")});
            start_events(stream, &format!("id: two\ndata: {response}\n\n"));
        }
        false
    });
    let client = connect(&server.url(), limits()).unwrap();
    assert_eq!(echo(&client).unwrap()["content"][0]["text"], "later");
}

#[test]
fn repeatedly_interrupted_stream_times_out() {
    let server = ScriptedServer::legacy(|_, stream| {
        start_events(stream, "id: one\nretry: 0\ndata: \n\n");
        false
    });
    let client = connect(&server.url(), short_calls()).unwrap();
    assert_eq!(echo(&client).unwrap_err().kind, McpError::TimedOut);
    let request = server.received().iter().filter(|request| request.method() == "GET").count();
    assert!((1..=10).contains(&request), "{request} times in half a second");
}

#[test]
fn cancelled_legacy_call_sends_a_notification() {
    let (sender, receiver) = channel();
    let server = ScriptedServer::legacy(move |_, stream| {
        let _ = sender.send(());
        let _ = stream.read(&mut [0]);
        false
    });
    let client = connect(&server.url(), limits()).unwrap();
    let cancel = Cancel::new();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| client.call_tool("echo", &json!({}), &ToolCallOptions::new(&cancel)));
        receiver.recv_timeout(TEST_TIMEOUT).unwrap();
        cancel.cancel();
        assert_eq!(waiting.join().unwrap().unwrap_err().kind, McpError::Cancelled);
    });
    assert_eq!(server.wait_for("notifications/cancelled").body["params"]["requestId"], 3);
}

#[test]
fn notification_stream_is_reopened() {
    let times = AtomicUsize::new(0);
    let server = ScriptedServer::legacy(move |_, stream| {
        let change = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        let id = times.fetch_add(1, Ordering::SeqCst);
        start_events(stream, &format!("id: {id}\nretry: 1\ndata: {change}\n\n"));
        false
    });
    let client = connect(&server.url(), limits()).unwrap();
    let (sender, receiver) = channel();
    client.on_change(move |change| drop(sender.send(change)));
    for _ in 0..2 {
        assert_eq!(receiver.recv_timeout(TEST_TIMEOUT), Ok(ServerChange::Tools));
    }
    assert_eq!(server.wait_for("GET").header("Last-Event-ID"), None);
    assert_eq!(server.wait_for("GET").header("Last-Event-ID"), Some("0"));
}

#[test]
fn missing_notification_stream_is_not_retried() {
    let server = ScriptedServer::legacy(|_, stream| respond_text(stream, 405, ""));
    let client = connect(&server.url(), limits()).unwrap();
    client.on_change(|_| {});
    server.wait_for("GET");
    client.list_tools().unwrap();
    client.on_change(|_| {});
    assert!(server.received().iter().all(|request| request.method() != "GET"));
}

#[test]
fn silent_discover_falls_back_to_legacy() {
    let server =
        ScriptedServer::legacy(|request, stream| respond_json(stream, &request.result(&text_result("hi"))));
    let silent = ScriptedServer::new(|request, stream| {
        if request.method() == "server/discover" {
            let _ = stream.read(&mut [0]);
            return false;
        }
        let result =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "slow"}});
        respond_json(stream, &request.result(&result))
    });
    let limits = ClientLimits { probe_timeout: Duration::from_millis(100), ..limits() };
    assert_eq!(connect(&silent.url(), limits.clone()).unwrap().info().version, ProtocolVersion::V2025_06_18);
    assert_eq!(connect(&server.url(), limits).unwrap().info().name, "legacy");
}

#[test]
fn invalid_session_id_is_refused() {
    let server = ScriptedServer::new(|request, stream| match request.method() {
        "initialize" => {
            let result = request.result(&json!({"protocolVersion": "2025-11-25", "capabilities": {}}));
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: a b\r\n";
            let body = result.to_string();
            stream.write_all(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).is_ok()
        }
        _ => respond_text(stream, 400, ""),
    });
    assert_eq!(connect(&server.url(), limits()).err().unwrap().kind, McpError::InvalidMessage);
}
