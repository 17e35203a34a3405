//! Requests of servers to the client.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haft_mcp::client::{
    ClientCapabilities, ClientLimits, ClientOptions, Elicitation, ElicitationAnswer, ElicitationKind,
    McpClient, McpError, ServerRequestHandler,
};
use haft_mcp::wire::RpcError;
use haft_tool::Cancel;
use serde_json::{Map, Value, json};

use super::{BOTH, HostileServer, LEGACY, client, echo, generous};

#[derive(Default)]
struct CountingHandler(AtomicUsize);

impl ServerRequestHandler for CountingHandler {
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities { forms: true, roots: true, ..ClientCapabilities::default() }
    }

    fn elicit(&self, question: &Elicitation, _: &Cancel) -> Result<ElicitationAnswer, RpcError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        assert!(matches!(&question.kind, ElicitationKind::Form(schema) if schema["type"] == "object"));
        assert_eq!(question.message, "Your password?");
        Ok(ElicitationAnswer::Accept(Map::from_iter([("password".to_owned(), json!("none"))])))
    }

    fn sample(&self, _: &Value, _: &Cancel) -> Result<Value, RpcError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(json!({}))
    }

    fn roots(&self) -> Result<Vec<(String, Option<String>)>, RpcError> {
        Ok(vec![("file:///work".to_owned(), Some("work".to_owned()))])
    }
}

fn client_with_handler(
    mode: &str,
    family: &'static str,
    limits: ClientLimits,
) -> (McpClient, HostileServer, Arc<CountingHandler>) {
    let (server, handler) = (HostileServer::new(mode, family), Arc::new(CountingHandler::default()));
    let shared: Arc<dyn ServerRequestHandler> = Arc::clone(&handler) as Arc<dyn ServerRequestHandler>;
    let options = ClientOptions { limits, handler: Some(shared), ..ClientOptions::default() };
    (McpClient::connect(server.start(), options).unwrap(), server, handler)
}

#[test]
fn undeclared_requests_are_refused_and_the_call_continues() {
    for mode in ["ask-sampling", "ask-roots", "ask-elicitation", "ask-unknown"] {
        let (client, _server) = client(mode, LEGACY, generous());
        let text = echo(&client, "hi").unwrap();
        assert!(
            text.starts_with("hi\n") && text.contains("-32601") && !text.contains("result"),
            "{mode}: {text}"
        );
    }
    let (client, _server) = client("ask-sampling", BOTH, generous());
    assert!(echo(&client, "hi").unwrap().contains("no answer"));
}

#[test]
fn ping_of_a_legacy_server_is_answered() {
    let (client, _server) = client("ask-ping", LEGACY, generous());
    assert_eq!(echo(&client, "hi").unwrap(), "hi\nping: result {}");
}

#[test]
fn only_declared_capabilities_are_answered() {
    let (client, _server, handler) = client_with_handler("ask-elicitation", LEGACY, generous());
    let text = echo(&client, "hi").unwrap();
    assert!(text.contains(r#"result {"action": "accept", "content": {"password": "none"}}"#), "{text}");
    assert_eq!(handler.0.load(Ordering::SeqCst), 1);
    let (client, _server, _) = client_with_handler("ask-roots", LEGACY, generous());
    let text = echo(&client, "hi").unwrap();
    assert!(text.contains(r#"result {"roots": [{"uri": "file:///work", "name": "work"}]}"#), "{text}");
    let (client, _server, handler) = client_with_handler("ask-sampling", LEGACY, generous());
    assert!(echo(&client, "hi").unwrap().contains("-32601"));
    assert_eq!(handler.0.load(Ordering::SeqCst), 0);
}

#[test]
fn number_of_questions_is_limited() {
    let (client, _server, handler) =
        client_with_handler("ask-elicitation", LEGACY, ClientLimits { max_questions: 0, ..generous() });
    assert!(echo(&client, "hi").unwrap().contains("No more questions"));
    assert_eq!(handler.0.load(Ordering::SeqCst), 0);
}

#[test]
fn input_rounds_are_limited_and_need_a_capability() {
    let (client, _server, _) = client_with_handler("input-required-for-ever", BOTH, generous());
    let error = echo(&client, "hi").unwrap_err();
    assert_eq!(error.kind, McpError::TooLarge);
    assert!(error.message.contains("more than 10 times"), "{error}");
    let (client, _server, handler) = client_with_handler("input-required-not-offered", BOTH, generous());
    let error = echo(&client, "hi").unwrap_err();
    assert!(
        error.kind == McpError::Unsupported && error.message.contains("sampling/createMessage"),
        "{error}"
    );
    assert_eq!(handler.0.load(Ordering::SeqCst), 0);
}

/// Answers later than the call timeout.
struct SlowHandler;

impl ServerRequestHandler for SlowHandler {
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities { forms: true, ..ClientCapabilities::default() }
    }

    fn elicit(&self, _: &Elicitation, cancel: &Cancel) -> Result<ElicitationAnswer, RpcError> {
        cancel.wait(Duration::from_secs(3));
        Ok(ElicitationAnswer::Decline)
    }
}

#[test]
fn open_question_pauses_the_timeout() {
    let server = HostileServer::new("ask-elicitation", LEGACY);
    let limits = ClientLimits { call_timeout: Duration::from_secs(2), ..generous() };
    let options = ClientOptions { limits, handler: Some(Arc::new(SlowHandler)), ..ClientOptions::default() };
    let client = McpClient::connect(server.start(), options).unwrap();
    assert!(echo(&client, "hi").unwrap().contains("decline"));
}
