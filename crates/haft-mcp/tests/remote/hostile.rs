//! Answers that are none, in every way that HTTP has.

use std::io::{Read as _, Write as _};
use std::sync::mpsc::channel;

use haft_mcp::client::{McpError, ToolCallOptions};
use haft_tool::Cancel;
use serde_json::json;

use super::server::{Server, answer, events, json_answer, plain, said};
use super::{LONG, connect, echo, limits, short_calls};

fn trouble(server: &Server, limits: haft_mcp::client::ClientLimits) -> (McpError, String) {
    let client = connect(&server.url(), limits).unwrap();
    let error = echo(&client).unwrap_err();
    assert!(client.list_tools().is_ok(), "the connection goes on");
    (error.kind, error.message)
}

#[test]
fn a_stream_without_an_answer_is_the_end_of_the_call() {
    let server = Server::modern(|_, stream| {
        events(stream, "");
        false
    });
    assert_eq!(trouble(&server, limits()).0, McpError::Disconnected);
    let half = Server::modern(|asked, stream| {
        let whole = asked.result(&said("hi")).to_string();
        events(stream, &format!("data: {}", &whole[..whole.len() - 5]));
        false
    });
    assert_eq!(trouble(&half, limits()).0, McpError::Disconnected);
}

#[test]
fn a_connection_that_breaks_in_the_middle_is_the_end_of_the_call() {
    let server = Server::modern(|_, stream| {
        let _ = stream.write_all(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 1000\r\n\r\ndata: {",
        );
        false
    });
    assert_eq!(trouble(&server, limits()).0, McpError::Disconnected);
    let nothing = Server::modern(|_, _| false);
    assert_eq!(trouble(&nothing, limits()).0, McpError::Unreachable);
}

#[test]
fn an_event_without_end_is_not_read_to_its_end() {
    let server = Server::modern(|_, stream| {
        events(stream, "data: ");
        while stream.write_all(&[b'x'; 8192]).is_ok() {}
        false
    });
    let (kind, words) = trouble(&server, limits());
    assert_eq!(kind, McpError::TooLarge);
    assert!(words.contains("1048576 bytes"), "{words}");
}

#[test]
fn what_only_drips_is_late() {
    let server = Server::modern(|_, stream| {
        events(stream, "data: ");
        let pause = std::time::Duration::from_millis(10);
        while stream.write_all(b"x").is_ok() {
            std::thread::park_timeout(pause);
        }
        false
    });
    assert_eq!(trouble(&server, short_calls()).0, McpError::TimedOut);
    let comments = Server::modern(|_, stream| {
        events(stream, "");
        while stream.write_all(b": still here\n\n").is_ok() {
            std::thread::park_timeout(std::time::Duration::from_millis(10));
        }
        false
    });
    assert_eq!(trouble(&comments, short_calls()).0, McpError::TimedOut);
}

#[test]
fn a_bomb_is_not_unpacked() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..1000 {
        packed.write_all(&[b' '; 16384].repeat(8)).unwrap();
    }
    let packed = packed.finish().unwrap();
    let server = Server::modern(move |_, stream| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n";
        let _ = stream.write_all(format!("{head}Content-Length: {}\r\n\r\n", packed.len()).as_bytes());
        stream.write_all(&packed).is_ok()
    });
    assert_eq!(trouble(&server, limits()).0, McpError::TooLarge);
}

#[test]
fn what_is_neither_json_nor_a_stream_is_said_to_be_neither() {
    let page =
        Server::modern(|_, stream| answer(stream, 200, &[("Content-Type", "text/html")], "<h1>Log in</h1>"));
    let (kind, words) = trouble(&page, limits());
    assert!(kind == McpError::InvalidMessage && words.contains("text/html"), "{words}");
    let broken = Server::modern(|_, stream| {
        answer(stream, 200, &[("Content-Type", "application/json")], "{\"jsonrpc\":")
    });
    assert_eq!(trouble(&broken, limits()).0, McpError::InvalidMessage);
    let deep = Server::modern(|_, stream| {
        let body = "[".repeat(100_000);
        answer(stream, 200, &[("Content-Type", "application/json")], &body)
    });
    assert_eq!(trouble(&deep, limits()).0, McpError::InvalidMessage);
    let event = Server::modern(|_, stream| {
        events(stream, "data: no message\n\n");
        false
    });
    assert_eq!(trouble(&event, limits()).0, McpError::InvalidMessage);
    let nothing = Server::modern(|_, stream| plain(stream, 202, ""));
    assert_eq!(trouble(&nothing, limits()).0, McpError::InvalidMessage);
}

#[test]
fn answers_to_other_questions_are_no_answers() {
    let other = Server::modern(|asked, stream| {
        let id = asked.body["id"].as_i64().unwrap();
        events(stream, "data: {}\n\n");
        for wrong in [json!(id + 1), json!(id.to_string()), json!(null)] {
            let wrong = json!({"jsonrpc": "2.0", "id": wrong, "result": said("wrong")});
            let _ = stream.write_all(format!("data: {wrong}\n\n").as_bytes());
        }
        let _ = stream.write_all(format!("data: {}\n\n", asked.result(&said("right"))).as_bytes());
        false
    });
    let client = connect(&other.url(), limits()).unwrap();
    assert_eq!(echo(&client).unwrap()["content"][0]["text"], "right");
    let wrong = Server::modern(|_, stream| {
        json_answer(stream, &json!({"jsonrpc": "2.0", "id": 999, "result": said("wrong")}))
    });
    assert_eq!(trouble(&wrong, limits()).0, McpError::InvalidMessage);
}

#[test]
fn a_status_that_is_no_success_is_told_with_what_was_said() {
    let broken = Server::modern(|_, stream| plain(stream, 503, "down\u{1b}[31m for lunch"));
    let (kind, words) = trouble(&broken, limits());
    assert_eq!(kind, McpError::HttpStatus(503));
    assert!(words.ends_with("It wrote: down for lunch"), "{words}");
    let refused = Server::modern(|asked, stream| {
        let error = json!({"jsonrpc": "2.0", "id": asked.body["id"], "error": {"code": -32602, "message": "no such tool"}});
        answer(stream, 400, &[("Content-Type", "application/json")], &error.to_string())
    });
    let (kind, _) = trouble(&refused, limits());
    assert!(matches!(kind, McpError::Rpc(error) if error.code == -32602));
}

#[test]
fn a_call_that_is_taken_back_closes_its_stream() {
    let (tell, told) = channel();
    let server = Server::modern(move |_, stream| {
        events(stream, ": begun\n\n");
        let _ = tell.send("begun");
        let _ = stream.read(&mut [0]);
        let _ = tell.send("closed");
        false
    });
    let client = connect(&server.url(), limits()).unwrap();
    let cancel = Cancel::new();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| client.call_tool("echo", &json!({}), &ToolCallOptions::new(&cancel)));
        assert_eq!(told.recv_timeout(LONG), Ok("begun"));
        cancel.cancel();
        assert_eq!(waiting.join().unwrap().unwrap_err().kind, McpError::Cancelled);
        assert_eq!(told.recv_timeout(LONG), Ok("closed"));
    });
    assert!(server.heard().iter().all(|asked| asked.method() != "notifications/cancelled"));
}

#[test]
fn a_server_that_is_not_there_is_said_not_to_be_there() {
    let error = connect("http://127.0.0.1:1/mcp", limits()).err().unwrap();
    assert_eq!(error.kind, McpError::Unreachable);
    assert!(error.message.contains("nothing listens there"), "{error}");
}
