//! Redirects and headers.

use std::sync::atomic::{AtomicUsize, Ordering};

use haft_mcp::client::McpError;
use serde_json::json;

use super::server::{ScriptedServer, respond, respond_json, respond_text, text_result};
use super::{connect, echo, limits};

#[test]
fn redirect_to_another_host_is_refused() {
    let other = ScriptedServer::stateless(|request, stream| {
        respond_json(stream, &request.result(&text_result("stolen")))
    });
    let target = other.url();
    for status in [301, 302, 303, 307, 308] {
        let there = target.clone();
        let server =
            ScriptedServer::new(move |_, stream| respond(stream, status, &[("Location", &there)], ""));
        let error = connect(&server.url(), limits()).err().unwrap();
        assert_eq!(error.kind, McpError::Unreachable, "{status}");
        assert!(error.message.contains("not followed") && error.message.contains(&target), "{error}");
    }
    assert!(other.received().is_empty());
}

#[test]
fn redirect_within_the_origin_is_followed() {
    let server = ScriptedServer::new(|request, stream| match (request.path.as_str(), request.method()) {
        ("/mcp", _) => respond(stream, 307, &[("Location", "/new")], ""),
        (_, "server/discover") => respond_json(
            stream,
            &request.result(&json!({"supportedVersions": ["2026-07-28"], "capabilities": {}})),
        ),
        _ => respond_json(stream, &request.result(&json!({"tools": []}))),
    });
    let client = connect(&server.url(), limits()).unwrap();
    assert!(client.list_tools().unwrap().items.is_empty());
    let circle = ScriptedServer::new(|_, stream| respond(stream, 308, &[("Location", "/mcp")], ""));
    let error = connect(&circle.url(), limits()).err().unwrap();
    assert!(error.message.contains("redirects more than"), "{error}");
}

#[test]
fn header_mismatch_refreshes_the_list_and_retries_once() {
    let lists = AtomicUsize::new(0);
    let server = ScriptedServer::new(move |request, stream| match request.method() {
        "server/discover" => respond_json(
            stream,
            &request.result(&json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})),
        ),
        "tools/list" => {
            // Only the second list has the mark.
            let mut text = json!({"type": "string"});
            if lists.fetch_add(1, Ordering::SeqCst) > 0 {
                text["x-mcp-header"] = json!("Text");
            }
            let schema = json!({"type": "object", "properties": {"text": text}});
            respond_json(
                stream,
                &request.result(&json!({"tools": [{"name": "echo", "inputSchema": schema}]})),
            )
        }
        _ if request.header("Mcp-Param-Text") == Some("hi") => {
            respond_json(stream, &request.result(&text_result("routed")))
        }
        _ => {
            let error = json!({"code": -32020, "message": "Header mismatch"});
            let error = json!({"jsonrpc": "2.0", "id": request.body["id"], "error": error}).to_string();
            respond(stream, 400, &[("Content-Type", "application/json")], &error)
        }
    });
    let client = connect(&server.url(), limits()).unwrap();
    assert_eq!(echo(&client).unwrap()["content"][0]["text"], "routed");
    let calls = server.received().iter().filter(|request| request.method() == "tools/call").count();
    assert_eq!(calls, 2);
}

#[test]
fn stateless_headers_describe_the_request() {
    let server = ScriptedServer::stateless(|request, stream| {
        respond_json(stream, &request.result(&text_result("hi")))
    });
    let client = connect(&server.url(), limits()).unwrap();
    echo(&client).unwrap();
    for request in server.received() {
        assert_eq!(request.header("MCP-Protocol-Version"), Some("2026-07-28"));
        assert_eq!(request.header("Mcp-Method"), Some(request.method()));
        assert_eq!(request.header("Mcp-Name"), (request.method() == "tools/call").then_some("echo"));
        assert_eq!(request.header("Mcp-Session-Id"), None);
        let meta = &request.body["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({}));
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "haft");
    }
}

#[test]
fn error_of_a_server_is_not_retried() {
    for (status, expected) in [(500, McpError::HttpStatus(500)), (404, McpError::HttpStatus(404))] {
        let server = ScriptedServer::new(move |_, stream| respond_text(stream, status, "no"));
        assert_eq!(connect(&server.url(), limits()).err().unwrap().kind, expected);
        let received: Vec<_> = server.received().iter().map(|request| request.method().to_owned()).collect();
        let first: Vec<_> = received.iter().take(2).map(String::as_str).collect();
        assert_eq!(first, ["server/discover", "initialize"]);
        assert!(received.len() <= 3, "{received:?}");
    }
}
