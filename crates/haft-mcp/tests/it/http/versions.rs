//! Which revision a request is written in, and what its headers must say.

use haft_mcp::wire::{
    HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, MISSING_CAPABILITY,
    UNSUPPORTED_VERSION,
};
use serde_json::json;

use crate::fixture::{call, initialize, request, stateless, stateless_with};
use crate::http::client::server;

#[test]
fn stateless_request_has_no_session() {
    let server = server();
    let discover = server.post_stateless(&request(1, "server/discover", stateless(json!({}))));
    let response = server.send(&discover);
    assert_eq!(response.status, 200);
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert_eq!(response.header("mcp-session-id"), None);
    assert_eq!(response.json()["result"]["supportedVersions"][0], "2026-07-28");
    let stray = discover.with("Mcp-Session-Id", "of no importance");
    assert_eq!(server.send(&stray).status, 200);
}

#[test]
fn headers_must_match_the_body() {
    let server = server();
    let good = server.post_stateless(&request(7, "tools/call", stateless(call("echo", json!({})))));
    assert_eq!(server.send(&good).status, 200);
    assert_eq!(server.send(&good.clone().with("Mcp-Name", "=?base64?ZWNobw==?=")).status, 200);
    let mut twice = good.clone();
    twice.add("Mcp-Name", "echo");
    for (what, bad) in [
        ("another version", good.clone().with("MCP-Protocol-Version", "2025-11-25")),
        ("no version", good.clone().without("MCP-Protocol-Version")),
        ("another method", good.clone().with("Mcp-Method", "tools/list")),
        ("a method in capitals", good.clone().with("Mcp-Method", "TOOLS/CALL")),
        ("no method", good.clone().without("Mcp-Method")),
        ("another name", good.clone().with("Mcp-Name", "hold")),
        ("no name", good.clone().without("Mcp-Name")),
        ("a name twice", twice),
        ("a wrapped name that is another", good.clone().with("Mcp-Name", "=?base64?aG9sZA==?=")),
        ("a wrapped name that is none", good.clone().with("Mcp-Name", "=?base64?ZWNobw?=")),
        ("a name that is no text", good.clone().with("Mcp-Name", "=?base64?/w==?=")),
    ] {
        let response = server.send(&bad);
        assert_eq!((response.status, response.code()), (400, HEADER_MISMATCH), "{what}");
        assert_eq!(response.json()["id"], 7, "{what}");
    }
    let read = server.post_stateless(&request(8, "resources/read", stateless(json!({"uri": "test://one"}))));
    assert_eq!(server.send(&read).status, 200);
    assert_eq!(server.send(&read.with("Mcp-Name", "test://two")).code(), HEADER_MISMATCH);
}

#[test]
fn marked_argument_must_be_in_a_header() {
    let server = server();
    let post = server.post_stateless(&request(
        1,
        "tools/call",
        stateless(call("routed", json!({"region": "Zürich"}))),
    ));
    assert_eq!(server.send(&post.clone().with("Mcp-Param-Region", "=?base64?WsO8cmljaA==?=")).status, 200);
    let response = server.send(&post);
    assert_eq!((response.status, response.code()), (400, HEADER_MISMATCH));
    let response = server.send(&post.with("Mcp-Param-Region", "Zurich"));
    assert_eq!((response.status, response.code()), (400, HEADER_MISMATCH));
}

#[test]
fn errors_have_their_http_status() {
    let server = server();
    let ask = |method: &str, params| server.send(&server.post_stateless(&request("x", method, params)));
    let response = ask("initialize", stateless(json!({})));
    assert_eq!((response.status, response.code()), (404, METHOD_NOT_FOUND), "the new era has no handshake");
    let response = ask("no/such/method", stateless(json!({})));
    assert_eq!((response.status, response.code()), (404, METHOD_NOT_FOUND));
    let response = ask("tools/list", json!({}));
    assert_eq!((response.status, response.code()), (400, INVALID_PARAMS), "nothing about itself");
    let response = ask("tools/list", stateless_with(json!({}), json!(7)));
    assert_eq!((response.status, response.code()), (400, INVALID_PARAMS), "capabilities that are none");
    let response = ask("tools/call", stateless(call("no such tool", json!({}))));
    assert_eq!(
        (response.status, response.code()),
        (200, INVALID_PARAMS),
        "this is not the response of a legacy server"
    );
    let response = ask("tools/call", stateless(call("panic", json!({}))));
    assert_eq!(response.status, 200);
    assert!(response.json()["error"]["message"].as_str().unwrap().contains("fault"));
    let mut params = stateless(json!({}));
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("1999-01-01");
    let post =
        server.post_stateless(&request("x", "tools/list", params)).with("MCP-Protocol-Version", "1999-01-01");
    let response = server.send(&post);
    assert_eq!((response.status, response.code()), (400, UNSUPPORTED_VERSION));
    assert_eq!(response.json()["error"]["data"]["requested"], "1999-01-01");
    let response =
        server.send(&server.post(&request(1, "ping", json!({}))).with("MCP-Protocol-Version", "1999-01-01"));
    assert_eq!((response.status, response.code()), (400, UNSUPPORTED_VERSION));
    // No service of this test needs a capability that it has to refuse for; the code has its number all the same.
    assert_eq!(MISSING_CAPABILITY, -32021);
}

#[test]
fn stateless_get_and_delete_are_refused() {
    let server = server();
    for method in ["GET", "DELETE"] {
        let post =
            server.bare(method, "x").without("Mcp-Session-Id").with("MCP-Protocol-Version", "2026-07-28");
        let response = server.send(&post);
        assert_eq!((response.status, response.header("allow")), (405, Some("POST")), "{method}");
    }
}

#[test]
fn stateless_notification_is_ignored() {
    let server = server();
    let told = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": stateless(json!({"requestId": 1}))});
    let response = server.send(&server.post_stateless(&told));
    assert_eq!((response.status, response.body.len()), (202, 0));
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    let response = server.send(&server.post(&answer).with("MCP-Protocol-Version", "2026-07-28"));
    assert_eq!(response.status, 400, "the user was not asked");
}

#[test]
fn both_families_are_served_on_one_connection() {
    let server = server();
    let mut connection = server.connect();
    connection.send(&server.post(&initialize(1, "2025-06-18")).bytes());
    let response = connection.response();
    assert_eq!(response.json()["result"]["protocolVersion"], "2025-06-18");
    let session = response.header("mcp-session-id").unwrap().to_owned();
    connection.send(&server.post_stateless(&request(2, "tools/list", stateless(json!({})))).bytes());
    let new = connection.response();
    connection.send(&server.post_in(&session, &request(2, "tools/list", json!({}))).bytes());
    let old = connection.response();
    assert_eq!(new.json()["result"]["resultType"], "complete");
    assert_eq!(old.json()["result"].get("resultType"), None);
    assert_eq!(old.json()["result"]["tools"], new.json()["result"]["tools"]);
}

#[test]
fn only_version_2025_03_26_has_batches() {
    let server = server();
    let batch = json!([
        request("a", "ping", json!({})),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "nonsense": true},
        request("b", "tools/call", call("echo", json!({}))),
    ]);
    let session = server.session("2025-03-26", crate::http::client::TOKEN);
    let mut connection = server.connect();
    connection.send(&server.post_in(&session, &batch).bytes());
    assert_eq!(connection.head().header("content-type"), Some("text/event-stream"));
    let answers: Vec<_> = std::iter::from_fn(|| connection.event()).map(|(_, message)| message).collect();
    assert_eq!(answers.len(), 3, "{answers:?}");
    assert_eq!(answers[0]["id"], "a");
    assert_eq!(answers[1]["error"]["code"], INVALID_REQUEST);
    assert_eq!(answers[2]["id"], "b");
    let told = json!([{"jsonrpc": "2.0", "method": "notifications/initialized"}]);
    assert_eq!(server.send(&server.post_in(&session, &told)).status, 202);
    assert_eq!(server.send(&server.post(&batch)).status, 400, "a batch without a session");

    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let session = server.session(version, crate::http::client::TOKEN);
        let response = server.send(&server.post_in(&session, &batch));
        assert_eq!((response.status, response.code()), (400, INVALID_REQUEST), "{version}");
    }
}
