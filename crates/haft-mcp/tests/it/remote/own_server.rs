//! The client against Haft's own server, in both families of versions.

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

use super::{TEST_TIMEOUT, call, endpoint, limits};
use crate::fixture::TestService;

/// Accepts every form.
struct AcceptForms;

impl ServerRequestHandler for AcceptForms {
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities { forms: true, ..ClientCapabilities::default() }
    }

    fn elicit(&self, question: &Elicitation, _: &Cancel) -> Result<ElicitationAnswer, RpcError> {
        assert_eq!(question.message, "Who?");
        Ok(ElicitationAnswer::Accept(Map::from_iter([("name".to_owned(), json!("Ann"))])))
    }
}

fn connect_to(version: ProtocolVersion) -> (McpClient, TestService, HttpServerHandle) {
    let service = TestService::default();
    let handle =
        serve_http(service.server(), HttpServerOptions::new(([127, 0, 0, 1], 0).into(), Vec::new())).unwrap();
    let endpoint = endpoint(&format!("http://{}/mcp", handle.address()), None);
    let options =
        ClientOptions { limits: limits(), version: Some(version), handler: Some(Arc::new(AcceptForms)) };
    (McpClient::connect(ServerTransport::Http(endpoint), options).unwrap(), service, handle)
}

#[test]
fn tools_and_questions_work_in_every_version() {
    for version in ProtocolVersion::ALL {
        let (client, _toys, _handle) = connect_to(version);
        assert_eq!(client.info().version, version);
        assert_eq!(client.list_tools().unwrap().items.len(), 8, "{version}");
        let said = call(&client, "echo", &json!({"a": "ü"})).unwrap();
        assert_eq!(said["content"][0]["text"], r#"{"a":"ü"}"#, "{version}");
        let answered = call(&client, "ask", &json!({})).unwrap();
        let text = answered["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(r#""name":"Ann""#), "{version}: {text}");
        let contents = client.read_resource("test://one", &Cancel::new()).unwrap();
        assert_eq!(contents[0]["text"], "one", "{version}");
    }
}

#[test]
fn cancelled_call_is_cancelled_at_the_server() {
    for version in [ProtocolVersion::V2025_11_25, ProtocolVersion::V2026_07_28] {
        let (client, service, _handle) = connect_to(version);
        let cancel = Cancel::new();
        std::thread::scope(|scope| {
            let waiting =
                scope.spawn(|| client.call_tool("hold", &json!({}), &ToolCallOptions::new(&cancel)));
            service.wait_until(|state| state.started == 1);
            cancel.cancel();
            assert_eq!(waiting.join().unwrap().unwrap_err().kind, McpError::Cancelled);
        });
        service.wait_until(|state| state.cancelled == 1);
    }
}

#[test]
fn response_after_a_disconnect_is_resumed() {
    let (client, service, _handle) = connect_to(ProtocolVersion::V2025_11_25);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| call(&client, "disconnect", &json!({})));
        service.wait_until(|state| state.started == 1);
        service.release();
        assert_eq!(waiting.join().unwrap().unwrap()["content"][0]["text"], "held");
    });
}

#[test]
fn changes_are_reported_in_both_families_over_http() {
    for version in [ProtocolVersion::V2025_11_25, ProtocolVersion::V2026_07_28] {
        let (client, service, _handle) = connect_to(version);
        let (sender, receiver) = channel();
        client.subscribe("test://one").unwrap();
        client.on_change(move |change| drop(sender.send(change)));
        service.notify(&ServerChange::Tools);
        assert_eq!(receiver.recv_timeout(TEST_TIMEOUT), Ok(ServerChange::Tools), "{version}");
        service.notify(&ServerChange::Resource("test://one".to_owned()));
        assert_eq!(
            receiver.recv_timeout(TEST_TIMEOUT),
            Ok(ServerChange::Resource("test://one".to_owned())),
            "{version}"
        );
    }
}

#[test]
fn concurrent_callers_share_one_client() {
    for version in [ProtocolVersion::V2025_11_25, ProtocolVersion::V2026_07_28] {
        let (client, _toys, _handle) = connect_to(version);
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
