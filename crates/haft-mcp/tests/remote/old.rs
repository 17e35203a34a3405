//! Servers of the first revision: one stream for all that they say.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use haft_mcp::client::{McpError, ServerChange};
use haft_mcp::wire::ProtocolVersion;
use serde_json::{Value, json};

use super::server::{Asked, Server, events, plain, said};
use super::{LONG, connect, echo, limits};

/// A server that answers on the stream it was last asked for; `answers` makes the events for one request.
fn old(target: &'static str, answers: impl Fn(&Asked) -> String + Send + Sync + 'static) -> Server {
    let stream: Arc<Mutex<Option<TcpStream>>> = Arc::default();
    Server::new(move |asked, reply| match (asked.verb.as_str(), asked.path.as_str()) {
        ("GET", _) => {
            events(reply, &format!("event: endpoint\ndata: {target}\n\n"));
            *stream.lock().unwrap() = Some(reply.try_clone().unwrap());
            // Whoever has the stream answers; this thread is done, the connection is not.
            true
        }
        ("POST", "/messages?id=1") => {
            let done = plain(reply, 202, "Accepted");
            if let Some(stream) = &mut *stream.lock().unwrap() {
                let _ = stream.write_all(answers(asked).as_bytes());
            }
            done
        }
        _ => plain(reply, 405, "Method Not Allowed"),
    })
}

fn event(value: &Value) -> String {
    format!("event: message\ndata: {value}\n\n")
}

fn honest(asked: &Asked) -> String {
    let result = match asked.method() {
        "initialize" => {
            json!({"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": {"name": "old"}})
        }
        "tools/list" => json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}),
        "tools/call" => said("hi"),
        _ => return String::new(),
    };
    event(&asked.result(&result))
}

#[test]
fn the_oldest_servers_are_found_and_used() {
    let server = old("/messages?id=1", |asked| {
        let news = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        if asked.method() == "tools/call" { event(&news) + &honest(asked) } else { honest(asked) }
    });
    let client = connect(&server.url(), limits()).unwrap();
    assert_eq!((client.info().version, client.info().name.as_str()), (ProtocolVersion::V2024_11_05, "old"));
    let (tell, told) = channel();
    client.on_change(move |news| drop(tell.send(news)));
    assert_eq!(client.list_tools().unwrap().items.len(), 1);
    assert_eq!(echo(&client).unwrap()["content"][0]["text"], "hi");
    assert_eq!(told.recv_timeout(LONG), Ok(ServerChange::Tools));
    client.close();
    assert_eq!(echo(&client).unwrap_err().kind, McpError::Closed);
}

#[test]
fn messages_go_to_no_other_host() {
    for target in ["http://127.0.0.1:9/messages", "//evil.example/x", "file:///etc/passwd"] {
        let server = old(target, honest);
        assert_eq!(
            connect(&server.url(), limits()).err().unwrap().kind,
            McpError::HttpStatus(405),
            "{target}"
        );
    }
}

#[test]
fn what_is_no_message_ends_the_call_and_what_is_too_long_ends_the_connection() {
    let server = old("/messages?id=1", |asked| {
        if asked.method() == "tools/call" { "data: no message\n\n".to_owned() } else { honest(asked) }
    });
    let client = connect(&server.url(), limits()).unwrap();
    assert_eq!(echo(&client).unwrap_err().kind, McpError::InvalidMessage);
    assert_eq!(client.list_tools().unwrap().items.len(), 1);
    let server = old("/messages?id=1", |asked| {
        if asked.method() == "tools/call" { "data: x".repeat(1 << 20) } else { honest(asked) }
    });
    let client = connect(&server.url(), limits()).unwrap();
    for _ in 0..2 {
        assert_eq!(echo(&client).unwrap_err().kind, McpError::TooLarge);
    }
}
