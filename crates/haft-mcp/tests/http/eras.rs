//! Which revision a request is written in, and what its headers must say.

use haft_mcp::wire::{
    HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, MISSING_CAPABILITY,
    UNSUPPORTED_VERSION,
};
use serde_json::json;

use crate::client::house;
use crate::support::{call, initialize, modern, modern_with, request};

#[test]
fn a_request_of_the_new_era_needs_no_session_and_leaves_none() {
    let house = house();
    let discover = house.post_modern(&request(1, "server/discover", modern(json!({}))));
    let reply = house.ask(&discover);
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.header("mcp-session-id"), None);
    assert_eq!(reply.json()["result"]["supportedVersions"][0], "2026-07-28");
    let stray = discover.with("Mcp-Session-Id", "of no importance");
    assert_eq!(house.ask(&stray).status, 200);
}

#[test]
fn headers_and_body_must_say_the_same() {
    let house = house();
    let good = house.post_modern(&request(7, "tools/call", modern(call("echo", json!({})))));
    assert_eq!(house.ask(&good).status, 200);
    assert_eq!(house.ask(&good.clone().with("Mcp-Name", "=?base64?ZWNobw==?=")).status, 200);
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
        let reply = house.ask(&bad);
        assert_eq!((reply.status, reply.code()), (400, HEADER_MISMATCH), "{what}");
        assert_eq!(reply.json()["id"], 7, "{what}");
    }
    let read = house.post_modern(&request(8, "resources/read", modern(json!({"uri": "toys://one"}))));
    assert_eq!(house.ask(&read).status, 200);
    assert_eq!(house.ask(&read.with("Mcp-Name", "toys://two")).code(), HEADER_MISMATCH);
}

#[test]
fn an_argument_that_a_tool_wants_in_a_header_must_be_there() {
    let house = house();
    let ask =
        house.post_modern(&request(1, "tools/call", modern(call("routed", json!({"region": "Zürich"})))));
    assert_eq!(house.ask(&ask.clone().with("Mcp-Param-Region", "=?base64?WsO8cmljaA==?=")).status, 200);
    let reply = house.ask(&ask);
    assert_eq!((reply.status, reply.code()), (400, HEADER_MISMATCH));
    let reply = house.ask(&ask.with("Mcp-Param-Region", "Zurich"));
    assert_eq!((reply.status, reply.code()), (400, HEADER_MISMATCH));
}

#[test]
fn every_kind_of_error_has_its_status() {
    let house = house();
    let ask = |method: &str, params| house.ask(&house.post_modern(&request("x", method, params)));
    let reply = ask("initialize", modern(json!({})));
    assert_eq!((reply.status, reply.code()), (404, METHOD_NOT_FOUND), "the new era has no handshake");
    let reply = ask("no/such/method", modern(json!({})));
    assert_eq!((reply.status, reply.code()), (404, METHOD_NOT_FOUND));
    let reply = ask("tools/list", json!({}));
    assert_eq!((reply.status, reply.code()), (400, INVALID_PARAMS), "nothing about itself");
    let reply = ask("tools/list", modern_with(json!({}), json!(7)));
    assert_eq!((reply.status, reply.code()), (400, INVALID_PARAMS), "capabilities that are none");
    let reply = ask("tools/call", modern(call("no such tool", json!({}))));
    assert_eq!(
        (reply.status, reply.code()),
        (200, INVALID_PARAMS),
        "nobody shall take this for an old server"
    );
    let reply = ask("tools/call", modern(call("fall", json!({}))));
    assert_eq!(reply.status, 200);
    assert!(reply.json()["error"]["message"].as_str().unwrap().contains("fault"));
    let mut params = modern(json!({}));
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("1999-01-01");
    let ask =
        house.post_modern(&request("x", "tools/list", params)).with("MCP-Protocol-Version", "1999-01-01");
    let reply = house.ask(&ask);
    assert_eq!((reply.status, reply.code()), (400, UNSUPPORTED_VERSION));
    assert_eq!(reply.json()["error"]["data"]["requested"], "1999-01-01");
    let reply =
        house.ask(&house.post(&request(1, "ping", json!({}))).with("MCP-Protocol-Version", "1999-01-01"));
    assert_eq!((reply.status, reply.code()), (400, UNSUPPORTED_VERSION));
    // No service of this test needs a capability that it has to refuse for; the code has its number all the same.
    assert_eq!(MISSING_CAPABILITY, -32021);
}

#[test]
fn there_is_nothing_to_get_or_to_delete_in_the_new_era() {
    let house = house();
    for method in ["GET", "DELETE"] {
        let ask =
            house.bare(method, "x").without("Mcp-Session-Id").with("MCP-Protocol-Version", "2026-07-28");
        let reply = house.ask(&ask);
        assert_eq!((reply.status, reply.header("allow")), (405, Some("POST")), "{method}");
    }
}

#[test]
fn a_notification_of_the_new_era_is_taken_and_does_nothing() {
    let house = house();
    let told = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": modern(json!({"requestId": 1}))});
    let reply = house.ask(&house.post_modern(&told));
    assert_eq!((reply.status, reply.body.len()), (202, 0));
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    let reply = house.ask(&house.post(&answer).with("MCP-Protocol-Version", "2026-07-28"));
    assert_eq!(reply.status, 400, "nobody was asked anything");
}

#[test]
fn both_eras_are_served_side_by_side_on_one_connection() {
    let house = house();
    let mut line = house.connect();
    line.send(&house.post(&initialize(1, "2025-06-18")).bytes());
    let reply = line.reply();
    assert_eq!(reply.json()["result"]["protocolVersion"], "2025-06-18");
    let session = reply.header("mcp-session-id").unwrap().to_owned();
    line.send(&house.post_modern(&request(2, "tools/list", modern(json!({})))).bytes());
    let new = line.reply();
    line.send(&house.post_in(&session, &request(2, "tools/list", json!({}))).bytes());
    let old = line.reply();
    assert_eq!(new.json()["result"]["resultType"], "complete");
    assert_eq!(old.json()["result"].get("resultType"), None);
    assert_eq!(old.json()["result"]["tools"], new.json()["result"]["tools"]);
}

#[test]
fn only_one_revision_has_batches() {
    let house = house();
    let batch = json!([
        request("a", "ping", json!({})),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "nonsense": true},
        request("b", "tools/call", call("echo", json!({}))),
    ]);
    let session = house.session("2025-03-26", crate::client::TOKEN);
    let mut line = house.connect();
    line.send(&house.post_in(&session, &batch).bytes());
    assert_eq!(line.head().header("content-type"), Some("text/event-stream"));
    let answers: Vec<_> = std::iter::from_fn(|| line.event()).map(|(_, message)| message).collect();
    assert_eq!(answers.len(), 3, "{answers:?}");
    assert_eq!(answers[0]["id"], "a");
    assert_eq!(answers[1]["error"]["code"], INVALID_REQUEST);
    assert_eq!(answers[2]["id"], "b");
    let told = json!([{"jsonrpc": "2.0", "method": "notifications/initialized"}]);
    assert_eq!(house.ask(&house.post_in(&session, &told)).status, 202);
    assert_eq!(house.ask(&house.post(&batch)).status, 400, "a batch without a session");

    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let session = house.session(version, crate::client::TOKEN);
        let reply = house.ask(&house.post_in(&session, &batch));
        assert_eq!((reply.status, reply.code()), (400, INVALID_REQUEST), "{version}");
    }
}
