//! The old era over HTTP: sessions, streams that break off, news.

use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use haft_mcp::client::{ClientLimits, McpError, ServerChange, ToolCallOptions};
use haft_mcp::wire::ProtocolVersion;
use haft_tool::Cancel;
use serde_json::json;

use super::server::{Server, events, json_answer, plain, said};
use super::{LONG, connect, echo, limits, short_calls};

#[test]
fn every_request_names_the_session_and_the_end_ends_it() {
    let server = Server::legacy(|asked, stream| json_answer(stream, &asked.result(&said("hi"))));
    let client = connect(&server.url(), limits()).unwrap();
    assert_eq!(client.info().version, ProtocolVersion::V2025_11_25);
    echo(&client).unwrap();
    client.close();
    let heard = server.heard();
    assert_eq!(heard.last().unwrap().method(), "DELETE");
    for asked in &heard[2..] {
        assert_eq!(asked.header("Mcp-Session-Id"), Some("s-1"), "{asked:?}");
        assert_eq!(asked.header("MCP-Protocol-Version"), Some("2025-11-25"), "{asked:?}");
    }
    assert_eq!(heard[1].header("Mcp-Session-Id"), None);
}

#[test]
fn a_forgotten_session_is_begun_anew_once_and_not_in_circles() {
    let forgets = AtomicBool::new(true);
    let once = Server::legacy(move |asked, stream| {
        if forgets.swap(false, Ordering::SeqCst) {
            return plain(stream, 404, "who?");
        }
        json_answer(stream, &asked.result(&said("hi")))
    });
    let client = connect(&once.url(), limits()).unwrap();
    assert_eq!(echo(&client).unwrap()["content"][0]["text"], "hi");
    let count = |server: &Server, method: &str| {
        server.heard().iter().filter(|asked| asked.method() == method).count()
    };
    assert_eq!(count(&once, "initialize"), 2);
    let always = Server::legacy(|_, stream| plain(stream, 404, "who?"));
    let client = connect(&always.url(), limits()).unwrap();
    assert_eq!(echo(&client).unwrap_err().kind, McpError::SessionExpired);
    assert_eq!(count(&always, "initialize"), 2);
}

#[test]
fn a_stream_that_breaks_off_is_gone_on_with_where_it_was() {
    let server = Server::legacy(|asked, stream| {
        if asked.method() == "tools/call" {
            events(stream, "id: one\nretry: 60\ndata: \n\n");
        } else {
            assert_eq!(asked.header("Last-Event-ID"), Some("one"));
            let answer = json!({"jsonrpc": "2.0", "id": 3, "result": said("later")});
            events(stream, &format!("id: two\ndata: {answer}\n\n"));
        }
        false
    });
    let client = connect(&server.url(), limits()).unwrap();
    assert_eq!(echo(&client).unwrap()["content"][0]["text"], "later");
}

#[test]
fn a_stream_that_always_breaks_off_is_late_and_not_asked_for_without_pause() {
    let server = Server::legacy(|_, stream| {
        events(stream, "id: one\nretry: 0\ndata: \n\n");
        false
    });
    let client = connect(&server.url(), short_calls()).unwrap();
    assert_eq!(echo(&client).unwrap_err().kind, McpError::TimedOut);
    let asked = server.heard().iter().filter(|asked| asked.method() == "GET").count();
    assert!((1..=10).contains(&asked), "{asked} times in half a second");
}

#[test]
fn a_call_that_is_taken_back_is_told_of() {
    let (tell, told) = channel();
    let server = Server::legacy(move |_, stream| {
        let _ = tell.send(());
        let _ = stream.read(&mut [0]);
        false
    });
    let client = connect(&server.url(), limits()).unwrap();
    let cancel = Cancel::new();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| client.call_tool("echo", &json!({}), &ToolCallOptions::new(&cancel)));
        told.recv_timeout(LONG).unwrap();
        cancel.cancel();
        assert_eq!(waiting.join().unwrap().unwrap_err().kind, McpError::Cancelled);
    });
    assert_eq!(server.until("notifications/cancelled").body["params"]["requestId"], 3);
}

#[test]
fn news_come_on_a_stream_of_their_own_which_is_kept_up() {
    let times = AtomicUsize::new(0);
    let server = Server::legacy(move |_, stream| {
        let news = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        let id = times.fetch_add(1, Ordering::SeqCst);
        events(stream, &format!("id: {id}\nretry: 1\ndata: {news}\n\n"));
        false
    });
    let client = connect(&server.url(), limits()).unwrap();
    let (tell, told) = channel();
    client.on_change(move |news| drop(tell.send(news)));
    for _ in 0..2 {
        assert_eq!(told.recv_timeout(LONG), Ok(ServerChange::Tools));
    }
    assert_eq!(server.until("GET").header("Last-Event-ID"), None);
    assert_eq!(server.until("GET").header("Last-Event-ID"), Some("0"));
}

#[test]
fn a_server_without_a_stream_of_news_is_left_alone() {
    let server = Server::legacy(|_, stream| plain(stream, 405, ""));
    let client = connect(&server.url(), limits()).unwrap();
    client.on_change(|_| {});
    server.until("GET");
    client.list_tools().unwrap();
    client.on_change(|_| {});
    assert!(server.heard().iter().all(|asked| asked.method() != "GET"));
}

#[test]
fn silence_about_the_new_era_leads_to_the_old_one() {
    let server = Server::legacy(|asked, stream| json_answer(stream, &asked.result(&said("hi"))));
    let silent = Server::new(|asked, stream| {
        if asked.method() == "server/discover" {
            let _ = stream.read(&mut [0]);
            return false;
        }
        let result =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "slow"}});
        json_answer(stream, &asked.result(&result))
    });
    let limits = ClientLimits { probe_timeout: Duration::from_millis(100), ..limits() };
    assert_eq!(connect(&silent.url(), limits.clone()).unwrap().info().version, ProtocolVersion::V2025_06_18);
    assert_eq!(connect(&server.url(), limits).unwrap().info().name, "legacy");
}

#[test]
fn a_session_that_no_header_can_hold_is_refused() {
    let server = Server::new(|asked, stream| match asked.method() {
        "initialize" => {
            let result = asked.result(&json!({"protocolVersion": "2025-11-25", "capabilities": {}}));
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: a b\r\n";
            let body = result.to_string();
            stream.write_all(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).is_ok()
        }
        _ => plain(stream, 400, ""),
    });
    assert_eq!(connect(&server.url(), limits()).err().unwrap().kind, McpError::InvalidMessage);
}
