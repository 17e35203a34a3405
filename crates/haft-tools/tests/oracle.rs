//! Loom's oracle and clawft's message: what is asked, what comes back, and what the host does.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on has failed, and it serves itself"
)]

#[path = "../../haft-bus/tests/it/http_fixture.rs"]
mod http_fixture;
mod world;

use std::sync::{Arc, Mutex};

use haft_tool::{Cancel, Completion, ErrorKind, Host, Message, ModelRole, ToolError, Value, json};
use http_fixture::{Response, Server, response};
use world::{TestWorld, clawft, loom};

const SAID: &str = r#"{"message":{"role":"assistant","content":"Use a queue."},"tool_calls":[],"usage":{"prompt_tokens":100,"completion_tokens":250,"total_tokens":350},"finish_reason":"stop"}"#;

fn ask(answers: Vec<Response>, arguments: Value) -> (Result<haft_tool::Output, ToolError>, Server) {
    let server = Server::new(answers);
    let dialect = loom(json!({"loom": {"server_url": format!("{}/", server.url)}}));
    (TestWorld::default().call(&dialect, "oracle", arguments), server)
}

#[test]
fn the_question_and_the_answer_have_the_documented_shapes() {
    let (result, server) = ask(vec![response(200, SAID)], json!({"query": "Queue or lock?"}));
    assert_eq!(
        result.unwrap().as_text(),
        r#"{"message":{"role":"assistant","content":"Use a queue."},"tool_calls":[],"usage":{"input_tokens":100,"output_tokens":250},"finish_reason":"stop"}"#
    );
    let asked = &server.requests()[0];
    assert_eq!(asked.line, "POST /proxy/openai/complete");
    let body = asked.json();
    assert_eq!(
        (&body["model"], &body["max_tokens"], &body["temperature"]),
        (&json!("gpt-4o"), &json!(512), &json!(0.2))
    );
    assert_eq!((&body["tools"], &body["messages"][0]["role"]), (&json!([]), &json!("system")));
    assert!(!body["messages"][0]["content"].as_str().unwrap().is_empty());
    assert_eq!(body["messages"][1], json!({"role": "user", "content": "Queue or lock?"}));
    assert_eq!(body["messages"].as_array().unwrap().len(), 2);
}

#[test]
fn every_field_is_sent_and_numbers_are_brought_into_range() {
    for (max_tokens, temperature, sent) in
        [(1, -1.0, json!([16, 0.0])), (99_999, 9.0, json!([4096, 2.0])), (100, 1.5, json!([100, 1.5]))]
    {
        let arguments = json!({
            "query": "q", "model": "o9", "max_tokens": max_tokens, "temperature": temperature, "system_prompt": "Be loud.",
        });
        let (result, server) = ask(vec![response(200, SAID)], arguments);
        result.unwrap();
        let body = server.requests()[0].json();
        assert_eq!(json!([body["max_tokens"], body["temperature"]]), sent);
        assert_eq!((&body["model"], &body["messages"][0]["content"]), (&json!("o9"), &json!("Be loud.")));
    }
}

#[test]
fn what_may_pass_is_asked_again_and_what_may_not_is_not() {
    for status in [408, 429, 502, 503, 504] {
        let (result, server) = ask(
            vec![response(status, "").header("Retry-After", "0"), response(200, SAID)],
            json!({"query": "q"}),
        );
        assert!(result.is_ok() && server.requests().len() == 2, "{status}");
    }
    for (status, kind) in [
        (400, ErrorKind::ExecutionFailed),
        (500, ErrorKind::ExecutionFailed),
        (401, ErrorKind::ExecutionFailed),
    ] {
        let (result, server) = ask(vec![response(status, r#"{"error":"no"}"#)], json!({"query": "q"}));
        let error = result.unwrap_err();
        assert_eq!((error.kind, server.requests().len()), (kind, 1));
        assert!(error.message.contains(&format!("HTTP {status}")), "{error}");
    }
    let down = || response(503, r#"{"error":"openai is not configured"}"#).header("Retry-After", "0");
    let (result, server) = ask(vec![down(), down(), down()], json!({"query": "q"}));
    assert!(result.unwrap_err().message.contains("openai is not configured; OpenAI may not be set up"));
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn an_empty_question_and_a_senseless_answer_are_errors() {
    let (result, _server) = ask(vec![], json!({"query": " \n"}));
    assert_eq!(result.unwrap_err().kind, ErrorKind::InvalidArguments);
    let (result, _server) = ask(vec![response(200, "hello")], json!({"query": "q"}));
    assert_eq!(result.unwrap_err().kind, ErrorKind::Serialization);
    assert_eq!(world::reached(&loom(json!({})), "oracle", json!({"query": "q"})), ["127.0.0.1:8080"]);
}

#[derive(Default)]
struct TestHost(Arc<Mutex<Vec<Message>>>);

impl Host for TestHost {
    fn has_model(&self, role: ModelRole) -> bool {
        role == ModelRole::Oracle
    }
    fn complete(&self, completion: &Completion, _: &Cancel) -> Result<String, ToolError> {
        Ok(format!("{} within {}", completion.prompt, completion.max_tokens))
    }
    fn send(&self, message: &Message) -> Result<(), ToolError> {
        self.0.lock().unwrap().push(message.clone());
        Ok(())
    }
}

#[test]
fn a_host_with_an_oracle_answers_where_no_server_is_named() {
    let output =
        TestWorld::with(TestHost::default()).call(&loom(json!({})), "oracle", json!({"query": "q"})).unwrap();
    assert_eq!(
        output.structured.unwrap()["message"],
        json!({"role": "assistant", "content": "q within 512"})
    );
}

#[test]
fn a_message_is_handed_to_the_host() {
    let host = TestHost::default();
    let sent = Arc::clone(&host.0);
    let arguments = json!({"channel": "telegram", "chat_id": "12345", "content": "Grüße an alle 😀"});
    let output = TestWorld::with(host).call(&clawft(json!({})), "message", arguments).unwrap();
    assert_eq!(
        output.as_text(),
        r#"{"status":"sent","channel":"telegram","chat_id":"12345","content_length":20}"#,
        "in bytes"
    );
    assert_eq!(sent.lock().unwrap()[0].content, "Grüße an alle 😀");
    let error = TestWorld::default()
        .call(&clawft(json!({})), "message", json!({"channel": "slack", "chat_id": "C1", "content": "hi"}))
        .unwrap_err();
    assert!(error.message.contains("no channels are set up"), "{error}");
    let error = TestWorld::default()
        .call(&clawft(json!({})), "message", json!({"channel": "slack", "chat_id": "C1", "content": ""}))
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidArguments);
}
