//! Sessions of clients that begin with a handshake.

use std::collections::HashSet;

use serde_json::json;

use crate::fixture::{call, initialize, request};
use crate::http::client::{OTHER_TOKEN, TOKEN, server, server_with_limits};

fn ping() -> serde_json::Value {
    request(2, "ping", json!({}))
}

#[test]
fn session_of_another_principal_is_refused() {
    let server = server();
    let all: HashSet<String> = (0..50).map(|_| server.session("2025-11-25", TOKEN)).collect();
    assert_eq!(all.len(), 50);
    assert!(all.iter().all(|id| id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_graphic())));
    let mine = all.iter().next().unwrap();
    assert_eq!(server.send(&server.post_in(mine, &ping())).status, 200);
    let theirs = format!("Bearer {OTHER_TOKEN}");
    for method in ["GET", "DELETE"] {
        assert_eq!(
            server.send(&server.bare(method, mine).with("Authorization", &theirs)).status,
            404,
            "{method}"
        );
    }
    assert_eq!(server.send(&server.post_in(mine, &ping()).with("Authorization", &theirs)).status, 404);
    assert_eq!(server.send(&server.post_in(mine, &ping())).status, 200, "no other client could end it");
    for guess in
        [&mine[..63], &mine.to_uppercase().replace(char::is_numeric, "0"), "1", "../../etc/passwd", " "]
    {
        assert!(server.send(&server.post_in(guess, &ping())).status >= 400, "{guess:?}");
        assert!(server.send(&server.bare("DELETE", guess)).status >= 400, "{guess:?}");
    }
    let mut both = server.post_in(mine, &ping());
    both.add("Mcp-Session-Id", mine);
    assert_eq!(server.send(&both).status, 400, "one of two may belong to another client");
}

#[test]
fn missing_session_is_400_and_ended_session_is_404() {
    let server = server();
    let session = server.session("2025-11-25", TOKEN);
    let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(server.send(&server.post_in(&session, &told)).status, 202);
    assert_eq!(server.send(&server.post(&ping())).status, 400);
    assert_eq!(server.send(&server.post(&told)).status, 400);
    assert_eq!(server.send(&server.bare("GET", &session).without("Mcp-Session-Id")).status, 400);
    assert_eq!(server.send(&server.bare("DELETE", &session).without("Mcp-Session-Id")).status, 400);
    assert_eq!(server.send(&server.bare("DELETE", &session)).status, 204);
    for response in [
        server.send(&server.post_in(&session, &ping())),
        server.send(&server.post_in(&session, &told)),
        server.send(&server.bare("GET", &session)),
        server.send(&server.bare("DELETE", &session)),
    ] {
        assert_eq!(response.status, 404);
    }
    let again = server.session("2025-11-25", TOKEN);
    assert_eq!(server.send(&server.post_in(&again, &ping())).status, 200);
}

#[test]
fn delete_cancels_the_requests_of_a_session() {
    let server = server();
    let session = server.session("2025-11-25", TOKEN);
    let mut calling = server.connect();
    calling.send(&server.post_in(&session, &request(3, "tools/call", call("hold", json!({})))).bytes());
    let mut listening = server.connect();
    listening.send(&server.bare("GET", &session).bytes());
    assert_eq!(listening.head().status, 200);
    server.service.wait_until(|state| state.started == 1);
    assert_eq!(server.send(&server.bare("DELETE", &session)).status, 204);
    server.service.wait_until(|state| state.cancelled == 1);
    assert_eq!(listening.event().unwrap().1, json!(null));
    assert_eq!(listening.event(), None, "the stream ends");
    let response = calling.response();
    assert_eq!(response.header("content-type"), Some("text/event-stream"));
}

#[test]
fn longest_unused_session_ends_at_the_limit() {
    let server = server_with_limits(|limits| limits.max_sessions = 2);
    let first = server.session("2025-11-25", TOKEN);
    let mut listening = server.connect();
    listening.send(&server.bare("GET", &first).bytes());
    assert_eq!(listening.head().status, 200);
    let second = server.session("2025-11-25", TOKEN);
    let third = server.session("2025-11-25", TOKEN);
    assert_eq!(server.send(&server.post_in(&first, &ping())).status, 200, "it has a listener");
    assert_eq!(server.send(&server.post_in(&second, &ping())).status, 404);
    assert_eq!(server.send(&server.post_in(&third, &ping())).status, 200);
    let mut also = server.connect();
    also.send(&server.bare("GET", &third).bytes());
    assert_eq!(also.head().status, 200);
    let response = server.send(&server.post(&initialize(1, "2025-11-25")));
    assert_eq!((response.status, response.header("retry-after")), (503, Some("1")));
}

#[test]
fn handshake_agrees_on_a_legacy_version() {
    let server = server();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let response = server.send(&server.post(&initialize(1, version)));
        assert_eq!(response.json()["result"]["protocolVersion"], version);
        let session = response.header("mcp-session-id").unwrap();
        let post = server.post_in(session, &ping()).with("MCP-Protocol-Version", version);
        assert_eq!(server.send(&post).status, 200);
        assert_eq!(server.send(&post.with("MCP-Protocol-Version", "2025-13-13")).status, 400);
    }
    for version in ["1999-01-01", "2026-07-28"] {
        let response = server.send(&server.post(&initialize(1, version)));
        assert_eq!(response.json()["result"]["protocolVersion"], "2025-11-25");
    }
}

#[test]
fn id_in_use_is_refused() {
    let server = server();
    let session = server.session("2025-11-25", TOKEN);
    let mut calling = server.connect();
    calling.send(&server.post_in(&session, &request(3, "tools/call", call("hold", json!({})))).bytes());
    server.service.wait_until(|state| state.started == 1);
    let response = server.send(&server.post_in(&session, &request(3, "ping", json!({}))));
    assert!(response.json()["error"]["message"].as_str().unwrap().contains("in progress"));
    let other = server.session("2025-11-25", TOKEN);
    assert_eq!(
        server.send(&server.post_in(&other, &request(3, "ping", json!({})))).json()["result"],
        json!({})
    );
    server.service.release();
    assert_eq!(calling.response().status, 200);
    assert_eq!(
        server.send(&server.post_in(&session, &request(3, "ping", json!({})))).json()["result"],
        json!({})
    );
}
