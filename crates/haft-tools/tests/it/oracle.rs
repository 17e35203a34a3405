//! Loom's `oracle` and clawft's `message`.

use std::sync::{Arc, Mutex};

use haft_tool::testing::MemoryWorld;
use haft_tool::{
    Cancel, ErrorKind, Host, HttpResponse, Message, ModelRequest, ModelRole, Output, ToolError, Value, json,
};

use crate::fixture::{
    SERVER, call, clawft, loom, planned_hosts, reply, reply_with, request_header, request_json, request_line,
    world as fixture_world,
};

const ANSWER: &str = r#"{"message":{"role":"assistant","content":"Use a queue."},"tool_calls":[],"usage":{"prompt_tokens":100,"completion_tokens":250,"total_tokens":350},"finish_reason":"stop"}"#;

fn ask(replies: Vec<HttpResponse>, arguments: Value) -> (Result<Output, ToolError>, MemoryWorld) {
    let world = fixture_world(replies);
    let dialect = loom(json!({"loom": {"server_url": format!("{SERVER}/")}}));
    (call(&world, &dialect, "oracle", arguments), world)
}

#[test]
fn oracle_request_and_answer_have_documented_shapes() {
    let (result, world) = ask(vec![reply(200, ANSWER)], json!({"query": "Queue or lock?"}));
    assert_eq!(
        result.unwrap().as_text(),
        r#"{"message":{"role":"assistant","content":"Use a queue."},"tool_calls":[],"usage":{"input_tokens":100,"output_tokens":250},"finish_reason":"stop"}"#
    );
    let request = &world.http.requests()[0];
    assert_eq!(request_line(request), "POST /proxy/openai/complete");
    let body = request_json(request);
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
fn oracle_sends_all_fields() {
    let arguments = json!({
        "query": "q", "model": "o9", "max_tokens": 100, "temperature": 1.5, "system_prompt": "Be loud.",
    });
    let (result, world) = ask(vec![reply(200, ANSWER)], arguments);
    result.unwrap();
    let body = request_json(&world.http.requests()[0]);
    assert_eq!(json!([body["model"], body["max_tokens"], body["temperature"]]), json!(["o9", 100, 1.5]));
    assert_eq!(body["messages"][0]["content"], "Be loud.");
}

#[test]
fn loom_tools_send_the_token_of_the_settings_and_never_show_it() {
    let found = r#"{"results":[]}"#;
    for (tool, body) in [("oracle", ANSWER), ("web_search", found)] {
        let at = |token: Option<&str>, replies| {
            let world = fixture_world(replies);
            let dialect = loom(json!({"loom": {"server_url": SERVER, "token": token}}));
            (call(&world, &dialect, tool, json!({"query": "q"})), world)
        };
        let (result, world) = at(Some("s3cret"), vec![reply(200, body)]);
        result.unwrap();
        let request = &world.http.requests()[0];
        assert_eq!(request_header(request, "authorization"), Some("Bearer s3cret"), "{tool}");
        let (result, world) = at(None, vec![reply(200, body)]);
        result.unwrap();
        assert_eq!(request_header(&world.http.requests()[0], "authorization"), None, "{tool}");
        let (result, _) = at(Some("s3cret"), vec![reply(401, r#"{"error":"no such token: s3cret"}"#)]);
        let message = result.unwrap_err().message;
        assert!(message.contains("set LOOM_SERVER_TOKEN") && !message.contains("s3cret"), "{message}");
    }
}

#[test]
fn oracle_retries_temporary_errors_only() {
    for status in [408, 429, 502, 503, 504] {
        let (result, world) = ask(
            vec![reply_with(status, "", &[("Retry-After", "0")]), reply(200, ANSWER)],
            json!({"query": "q"}),
        );
        assert!(result.is_ok() && world.http.requests().len() == 2, "{status}");
    }
    let world = fixture_world([]);
    world.http.push_error(ToolError::new(ErrorKind::Timeout, "no response in time"));
    world.http.push(reply(200, ANSWER));
    let dialect = loom(json!({"loom": {"server_url": SERVER}}));
    let result = call(&world, &dialect, "oracle", json!({"query": "q"}));
    assert!(result.is_ok() && world.http.requests().len() == 2, "{result:?}");
    for (status, kind) in [
        (400, ErrorKind::ExecutionFailed),
        (500, ErrorKind::ExecutionFailed),
        (401, ErrorKind::ExecutionFailed),
    ] {
        let (result, world) = ask(vec![reply(status, r#"{"error":"no"}"#)], json!({"query": "q"}));
        let error = result.unwrap_err();
        assert_eq!((error.kind, world.http.requests().len()), (kind, 1));
        assert!(error.message.contains(&format!("HTTP {status}")), "{error}");
    }
    let down = || reply_with(503, r#"{"error":"openai is not configured"}"#, &[("Retry-After", "0")]);
    let (result, world) = ask(vec![down(), down(), down()], json!({"query": "q"}));
    assert!(result.unwrap_err().message.contains("openai is not configured; OpenAI may not be set up"));
    assert_eq!(world.http.requests().len(), 3);
}

#[test]
fn empty_question_and_malformed_answer_are_errors() {
    let (result, _) = ask(vec![], json!({"query": " \n"}));
    assert_eq!(result.unwrap_err().kind, ErrorKind::InvalidArguments);
    let (result, _) = ask(vec![reply(200, "hello")], json!({"query": "q"}));
    assert_eq!(result.unwrap_err().kind, ErrorKind::Serialization);
    assert_eq!(planned_hosts(&loom(json!({})), "oracle", json!({"query": "q"})), ["127.0.0.1:8080"]);
}

#[derive(Default)]
struct TestHost(Arc<Mutex<Vec<Message>>>);

impl Host for TestHost {
    fn has_model(&self, role: ModelRole) -> bool {
        role == ModelRole::Oracle
    }
    fn complete(&self, completion: &ModelRequest, _cancel: &Cancel) -> Result<String, ToolError> {
        Ok(format!("{} within {}", completion.prompt, completion.max_tokens))
    }
    fn send(&self, message: &Message) -> Result<(), ToolError> {
        self.0.lock().unwrap().push(message.clone());
        Ok(())
    }
}

#[test]
fn host_model_answers_if_no_server_is_set() {
    let output = call(
        &fixture_world([]).with_host(TestHost::default()),
        &loom(json!({})),
        "oracle",
        json!({"query": "q"}),
    )
    .unwrap();
    assert_eq!(
        output.structured.unwrap()["message"],
        json!({"role": "assistant", "content": "q within 512"})
    );
}

#[test]
fn message_is_passed_to_the_host() {
    let host = TestHost::default();
    let sent = Arc::clone(&host.0);
    let arguments = json!({"channel": "telegram", "chat_id": "12345", "content": "Grüße an alle 😀"});
    let output = call(&fixture_world([]).with_host(host), &clawft(json!({})), "message", arguments).unwrap();
    assert_eq!(
        output.as_text(),
        r#"{"status":"sent","channel":"telegram","chat_id":"12345","content_length":20}"#,
        "in bytes"
    );
    assert_eq!(sent.lock().unwrap()[0].content, "Grüße an alle 😀");
    let error = call(
        &fixture_world([]),
        &clawft(json!({})),
        "message",
        json!({"channel": "slack", "chat_id": "C1", "content": "hi"}),
    )
    .unwrap_err();
    assert!(error.message.contains("No channels are configured"), "{error}");
    let error = call(
        &fixture_world([]),
        &clawft(json!({})),
        "message",
        json!({"channel": "slack", "chat_id": "C1", "content": ""}),
    )
    .unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidArguments);
}
