//! The client against Haft's own server, in both eras.

use std::sync::Arc;
use std::sync::mpsc::channel;

use haft_mcp::client::{
    ClientCapabilities, ClientOptions, Elicitation, ElicitationAnswer, McpClient, McpError, ServerChange,
    ServerRequestHandler, ServerTransport, ToolCallOptions,
};
use haft_mcp::serve::{HttpServerHandle, HttpServerOptions, serve_http};
use haft_mcp::wire::{ProtocolVersion, RpcError};
use haft_tool::Cancel;
use serde_json::{Map, json};

use super::support::Toys;
use super::{LONG, call, endpoint, limits};

/// Answers every form.
struct Ann;

impl ServerRequestHandler for Ann {
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities { forms: true, ..ClientCapabilities::default() }
    }

    fn elicit(&self, question: &Elicitation, _: &Cancel) -> Result<ElicitationAnswer, RpcError> {
        assert_eq!(question.message, "Who?");
        Ok(ElicitationAnswer::Accept(Map::from_iter([("name".to_owned(), json!("Ann"))])))
    }
}

fn served(version: ProtocolVersion) -> (McpClient, Toys, HttpServerHandle) {
    let toys = Toys::default();
    let running =
        serve_http(toys.server(), HttpServerOptions::new(([127, 0, 0, 1], 0).into(), Vec::new())).unwrap();
    let endpoint = endpoint(&format!("http://{}/mcp", running.address()), None);
    let options = ClientOptions { limits: limits(), version: Some(version), handler: Some(Arc::new(Ann)) };
    (McpClient::connect(ServerTransport::Http(endpoint), options).unwrap(), toys, running)
}

#[test]
fn tools_are_called_and_questions_answered_in_every_revision() {
    for version in ProtocolVersion::ALL {
        let (client, _toys, _running) = served(version);
        assert_eq!(client.info().version, version);
        assert_eq!(client.list_tools().unwrap().items.len(), 8, "{version}");
        let said = call(&client, "echo", &json!({"a": "ü"})).unwrap();
        assert_eq!(said["content"][0]["text"], r#"{"a":"ü"}"#, "{version}");
        let answered = call(&client, "ask", &json!({})).unwrap();
        let text = answered["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(r#""name":"Ann""#), "{version}: {text}");
        let contents = client.read_resource("toys://one", &Cancel::new()).unwrap();
        assert_eq!(contents[0]["text"], "one", "{version}");
    }
}

#[test]
fn a_call_that_is_taken_back_is_stopped_at_the_server() {
    for version in [ProtocolVersion::V2025_11_25, ProtocolVersion::V2026_07_28] {
        let (client, toys, _running) = served(version);
        let cancel = Cancel::new();
        std::thread::scope(|scope| {
            let waiting =
                scope.spawn(|| client.call_tool("hold", &json!({}), &ToolCallOptions::new(&cancel)));
            toys.until(|seen| seen.begun == 1);
            cancel.cancel();
            assert_eq!(waiting.join().unwrap().unwrap_err().kind, McpError::Cancelled);
        });
        toys.until(|seen| seen.cancelled == 1);
    }
}

#[test]
fn an_answer_that_comes_back_later_is_asked_for() {
    let (client, toys, _running) = served(ProtocolVersion::V2025_11_25);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| call(&client, "later", &json!({})));
        toys.until(|seen| seen.begun == 1);
        toys.release();
        assert_eq!(waiting.join().unwrap().unwrap()["content"][0]["text"], "held");
    });
}

#[test]
fn news_of_lists_and_resources_come_in_both_eras() {
    for version in [ProtocolVersion::V2025_11_25, ProtocolVersion::V2026_07_28] {
        let (client, toys, _running) = served(version);
        let (tell, told) = channel();
        client.subscribe("toys://one").unwrap();
        client.on_change(move |news| drop(tell.send(news)));
        toys.tell(&ServerChange::Tools);
        assert_eq!(told.recv_timeout(LONG), Ok(ServerChange::Tools), "{version}");
        toys.tell(&ServerChange::Resource("toys://one".to_owned()));
        assert_eq!(told.recv_timeout(LONG), Ok(ServerChange::Resource("toys://one".to_owned())), "{version}");
    }
}

#[test]
fn many_callers_share_one_client() {
    for version in [ProtocolVersion::V2025_11_25, ProtocolVersion::V2026_07_28] {
        let (client, _toys, _running) = served(version);
        std::thread::scope(|scope| {
            for caller in 0..8 {
                let client = &client;
                scope.spawn(move || {
                    for turn in 0..5 {
                        let said = call(client, "echo", &json!({"caller": caller, "turn": turn})).unwrap();
                        assert_eq!(
                            said["content"][0]["text"],
                            format!(r#"{{"caller":{caller},"turn":{turn}}}"#)
                        );
                    }
                });
            }
        });
    }
}
