//! Where servers send their clients.

use std::sync::atomic::{AtomicUsize, Ordering};

use haft_mcp::client::McpError;
use serde_json::json;

use super::server::{Server, answer, json_answer, plain, said};
use super::{connect, echo, limits};

#[test]
fn no_redirect_leads_to_another_host() {
    let other = Server::modern(|asked, stream| json_answer(stream, &asked.result(&said("stolen"))));
    let target = other.url();
    for status in [301, 302, 303, 307, 308] {
        let there = target.clone();
        let server = Server::new(move |_, stream| answer(stream, status, &[("Location", &there)], ""));
        let error = connect(&server.url(), limits()).err().unwrap();
        assert_eq!(error.kind, McpError::Unreachable, "{status}");
        assert!(error.message.contains("not followed") && error.message.contains(&target), "{error}");
    }
    assert!(other.heard().is_empty());
}

#[test]
fn a_redirect_on_the_same_ground_is_followed_but_not_in_circles() {
    let server = Server::new(|asked, stream| match (asked.path.as_str(), asked.method()) {
        ("/mcp", _) => answer(stream, 307, &[("Location", "/new")], ""),
        (_, "server/discover") => json_answer(
            stream,
            &asked.result(&json!({"supportedVersions": ["2026-07-28"], "capabilities": {}})),
        ),
        _ => json_answer(stream, &asked.result(&json!({"tools": []}))),
    });
    let client = connect(&server.url(), limits()).unwrap();
    assert!(client.list_tools().unwrap().items.is_empty());
    let circle = Server::new(|_, stream| answer(stream, 308, &[("Location", "/mcp")], ""));
    let error = connect(&circle.url(), limits()).err().unwrap();
    assert!(error.message.contains("redirects more than"), "{error}");
}

#[test]
fn headers_that_do_not_fit_lead_to_a_new_list_and_one_more_try() {
    let lists = AtomicUsize::new(0);
    let server = Server::new(move |asked, stream| match asked.method() {
        "server/discover" => json_answer(
            stream,
            &asked.result(&json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})),
        ),
        "tools/list" => {
            // The mark comes only with the second list.
            let mut text = json!({"type": "string"});
            if lists.fetch_add(1, Ordering::SeqCst) > 0 {
                text["x-mcp-header"] = json!("Text");
            }
            let schema = json!({"type": "object", "properties": {"text": text}});
            json_answer(stream, &asked.result(&json!({"tools": [{"name": "echo", "inputSchema": schema}]})))
        }
        _ if asked.header("Mcp-Param-Text") == Some("hi") => {
            json_answer(stream, &asked.result(&said("routed")))
        }
        _ => {
            let error = json!({"code": -32020, "message": "Header mismatch"});
            let error = json!({"jsonrpc": "2.0", "id": asked.body["id"], "error": error}).to_string();
            answer(stream, 400, &[("Content-Type", "application/json")], &error)
        }
    });
    let client = connect(&server.url(), limits()).unwrap();
    assert_eq!(echo(&client).unwrap()["content"][0]["text"], "routed");
    let calls = server.heard().iter().filter(|asked| asked.method() == "tools/call").count();
    assert_eq!(calls, 2);
}

#[test]
fn each_request_of_the_new_era_says_what_it_is_in_its_headers() {
    let server = Server::modern(|asked, stream| json_answer(stream, &asked.result(&said("hi"))));
    let client = connect(&server.url(), limits()).unwrap();
    echo(&client).unwrap();
    for asked in server.heard() {
        assert_eq!(asked.header("MCP-Protocol-Version"), Some("2026-07-28"));
        assert_eq!(asked.header("Mcp-Method"), Some(asked.method()));
        assert_eq!(asked.header("Mcp-Name"), (asked.method() == "tools/call").then_some("echo"));
        assert_eq!(asked.header("Mcp-Session-Id"), None);
        let meta = &asked.body["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({}));
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "haft");
    }
}

#[test]
fn a_server_that_only_says_no_is_believed() {
    for (status, expected) in [(500, McpError::HttpStatus(500)), (404, McpError::HttpStatus(404))] {
        let server = Server::new(move |_, stream| plain(stream, status, "no"));
        assert_eq!(connect(&server.url(), limits()).err().unwrap().kind, expected);
        let heard: Vec<_> = server.heard().iter().map(|asked| asked.method().to_owned()).collect();
        let first: Vec<_> = heard.iter().take(2).map(String::as_str).collect();
        assert_eq!(first, ["server/discover", "initialize"]);
        assert!(heard.len() <= 3, "{heard:?}");
    }
}
