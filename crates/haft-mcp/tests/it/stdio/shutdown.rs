//! The end of a connection.

use std::io::Write as _;

use haft_mcp::serve::{ClientRequestError, serve_stdio};
use serde_json::{Value, json};

use super::client::{connect, initialized};
use crate::fixture::{TestService, call, initialize, request, stateless};

#[test]
fn requests_finish_after_eof() {
    let mut client = connect();
    for id in 0..20 {
        client.send(&request(id, "tools/call", stateless(call("hold", json!({})))));
    }
    client.service.wait_until(|state| state.started == 20);
    client.close_input();
    client.service.release();
    assert_eq!(client.close().len(), 20);
}

#[test]
fn all_responses_are_sent_before_the_end() {
    for _ in 0..20 {
        let mut client = initialized("2025-11-25");
        let all: String = (0..200).map(|id| format!("{}\n", request(id, "ping", Value::Null))).collect();
        client.raw(all.as_bytes());
        assert_eq!(client.close().len(), 200);
    }
}

#[test]
fn requests_are_cancelled_after_the_grace_period() {
    let mut client = connect();
    client.send(&request(1, "tools/call", stateless(call("hold", json!({})))));
    client.service.wait_until(|state| state.started == 1);
    let service = client.service.clone();
    assert_eq!(client.close(), Vec::<Value>::new());
    service.wait_until(|state| state.cancelled == 1);
}

#[test]
fn open_questions_fail_at_eof() {
    let mut client = initialized("2025-11-25");
    client.send(&request(1, "tools/call", call("ask", json!({}))));
    assert_eq!(client.next()["method"], "elicitation/create");
    client.send(&request(2, "tools/call", stateless(call("ask", json!({})))));
    assert_eq!(client.response(2)["result"]["resultType"], "input_required");
    let service = client.service.clone();
    let last = client.close();
    service.wait_until(|state| {
        state.client_errors == [ClientRequestError::Cancelled, ClientRequestError::Cancelled]
    });
    // A slow call is also reported.
    let responses = last.iter().filter(|message| message["method"].is_null());
    let answered: Vec<&Value> = responses.map(|message| &message["id"]).collect();
    assert_eq!(answered, [1], "the suspended request was answered already");
}

#[test]
fn client_that_reads_nothing_does_not_keep_the_server() {
    let service = TestService::default();
    let (server_input, mut input) = std::io::pipe().unwrap();
    let (unread, server_output) = std::io::pipe().unwrap();
    let serving = service.server();
    let server = std::thread::spawn(move || {
        let (stop, _never_stopped) = std::io::pipe().unwrap();
        serve_stdio(&serving, server_input.into(), server_output.into(), stop.into()).unwrap();
    });
    // The answers are more than a pipe holds; they block the thread that reads and the one that calls.
    writeln!(input, "{}", initialize(0, "2025-11-25")).unwrap();
    let text = "x".repeat(100_000);
    writeln!(input, "{}", request(1, "tools/call", call("echo", json!({"text": text})))).unwrap();
    for id in 2..100 {
        writeln!(input, "{}", request(id, "ping", Value::Null)).unwrap();
    }
    drop(input);
    server.join().unwrap();
    drop(unread);
}

#[test]
fn eof_before_any_message_is_no_error() {
    assert_eq!(connect().close(), Vec::<Value>::new());
    let mut half = connect();
    half.raw(b"{\"jsonrpc\":\"2.0\",\"id\":1,");
    let last = half.close();
    assert_eq!(last.len(), 1);
    assert_eq!(last[0]["error"]["code"], -32700);
}
