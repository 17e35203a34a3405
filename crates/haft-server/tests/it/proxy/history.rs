//! Conversations with calls and results.

use haft_model::Wire;
use haft_tool::{Value, json};

use super::fixture::{Answered, ProxyFixture, proxied, upstream_model};
use super::upstream::{Reply, Upstream};

fn ask(messages: &Value) -> (Answered, Vec<Value>) {
    let upstream = Upstream::new([Reply::json(
        200,
        r#"{"type":"message","role":"assistant","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn"}"#,
    )]);
    let fixture = ProxyFixture::openai(proxied(upstream_model("anthropic", Wire::Anthropic, &upstream)));
    let tools =
        json!([{"name": "bash", "description": "Runs a command.", "input_schema": {"type": "object"}}]);
    let body = json!({"model": "m", "messages": messages, "tools": tools});
    let answered = fixture.post("openai/complete", body.to_string());
    (answered, upstream.requests().iter().map(super::upstream::UpstreamRequest::json).collect())
}

fn call(id: &str) -> Value {
    json!({"id": id, "tool_name": "bash", "arguments_json": {"command": "ls"}})
}

#[test]
fn calls_and_results_reach_the_provider_in_its_format() {
    let (answered, sent) = ask(&json!([
        {"role": "user", "content": "List."},
        {"role": "assistant", "content": "", "tool_calls": [call("a"), call("b")]},
        {"role": "tool", "tool_call_id": "b", "content": "two"},
        {"role": "tool", "tool_call_id": "a", "content": ""},
        {"role": "user", "content": "Thanks."},
    ]));
    assert_eq!(answered.status, 200, "{}", answered.body);
    assert!(answered.body.get("notes").is_none());
    let messages = &sent[0]["messages"];
    assert_eq!(messages[1]["content"][0]["type"], "tool_use");
    assert_eq!(messages[1]["content"][1]["input"], json!({"command": "ls"}));
    let results = messages[2]["content"].as_array().unwrap();
    let ids: Vec<&Value> = results.iter().map(|block| &block["tool_use_id"]).collect();
    assert_eq!(ids, [&json!("b"), &json!("a"), &Value::Null], "results, and what the user said");
    assert_eq!(sent[0]["tools"][0]["description"], "Runs a command.");
}

#[test]
fn system_messages_anywhere_are_instructions() {
    let (_, sent) = ask(&json!([
        {"role": "system", "content": "One."},
        {"role": "user", "content": "x"},
        {"role": "system", "content": "Two."},
    ]));
    let texts: Vec<&Value> =
        sent[0]["system"].as_array().unwrap().iter().map(|block| &block["text"]).collect();
    assert_eq!(texts, ["One.", "Two."]);
}

#[test]
fn results_whose_calls_the_client_has_lost_are_sent_as_text() {
    let (answered, sent) = ask(&json!([
        {"role": "user", "content": "List."},
        {"role": "assistant", "content": ""},
        {"role": "tool", "tool_call_id": "call_1", "name": "bash", "content": "a.txt"},
        {"role": "tool", "tool_call_id": "call_2", "content": "b.txt"},
    ]));
    assert_eq!(answered.body["notes"], json!(["Results without calls were sent as text."]));
    let content = &sent[0]["messages"][0]["content"];
    assert_eq!(content[1]["text"], "Result of bash:\na.txt");
    assert_eq!(content[2]["text"], "Result:\nb.txt");
}

#[test]
fn arguments_that_were_no_object_stay_in_the_history() {
    for (arguments, sent_as) in [
        (json!("{\"command\":\"ls\"}"), json!({"command": "ls"})),
        (json!(null), json!({})),
        (json!([1]), json!({"invalid_arguments": "[1]"})),
        (json!("{\"command\":"), json!({"invalid_arguments": "\"{\\\"command\\\":\""})),
    ] {
        let (_, sent) = ask(&json!([
            {"role": "user", "content": "List."},
            {"role": "assistant", "tool_calls": [{"id": "a", "tool_name": "bash", "arguments_json": arguments}]},
            {"role": "tool", "tool_call_id": "a", "content": "x"},
        ]));
        assert_eq!(sent[0]["messages"][1]["content"][0]["input"], sent_as, "{arguments}");
    }
}

#[test]
fn histories_that_no_provider_accepts_are_refused_before_they_are_sent() {
    let user = json!({"role": "user", "content": "x"});
    let calls = |ids: &[&str]| json!({"role": "assistant", "tool_calls": ids.iter().map(|id| call(id)).collect::<Vec<_>>()});
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "y"});
    for (messages, words) in [
        (json!([]), "messages: expected a message of the user"),
        (json!([{"role": "system", "content": "x"}]), "messages: expected a message of the user"),
        (json!([{"role": "assistant", "content": " "}]), "messages: expected a message of the user"),
        (json!([{"role": "robot", "content": "x"}]), "messages[0].role: expected system, user"),
        (json!([{"role": 3, "content": "x"}]), "messages[0].role: expected a text, got the number 3"),
        (json!([{"content": "x"}]), "messages[0].role: expected a text"),
        (json!(["x"]), "messages[0]: expected an object, got a text"),
        (json!({"role": "user"}), "messages: expected a list, got an object"),
        (json!([{"role": "user"}]), "messages[0].content: expected a text"),
        (json!([{"role": "user", "content": null}]), "messages[0].content: expected a text"),
        (json!([{"role": "user", "content": "\n"}]), "messages[0].content: expected a text"),
        (json!([{"role": "user", "content": ["x"]}]), "messages[0].content: expected a text, got a list"),
        (json!([user, calls(&["a"])]), "messages: the call a has no result"),
        (
            json!([user, calls(&["a"]), user]),
            "messages[2].role: the call a before this message has no result",
        ),
        (json!([user, calls(&["a"]), calls(&["b"])]), "messages[2].role: the call a"),
        (json!([user, calls(&["a", "a"])]), "messages[1].tool_calls[1].id: a is the id of two calls"),
        (json!([user, calls(&["a b"])]), "messages[1].tool_calls[0].id: expected at most 64"),
        (json!([user, calls(&["a"]), result("b")]), "messages[2].tool_call_id: no call"),
        (json!([user, calls(&["a"]), result("a"), result("a")]), "messages[3].tool_call_id: a has a result"),
        (json!([user, {"role": "tool", "content": "y"}]), "messages[1].tool_call_id: expected a text"),
        (
            json!([user, {"role": "assistant", "tool_calls": [{"id": "a", "arguments_json": {}}]}]),
            "messages[1].tool_calls[0].tool_name: expected a text",
        ),
        (
            json!([user, {"role": "assistant", "tool_calls": {"id": "a"}}]),
            "messages[1].tool_calls: expected a list, got an object",
        ),
    ] {
        let (answered, sent) = ask(&messages);
        assert_eq!((answered.status, sent.len()), (400, 0), "{messages}");
        assert!(answered.error().starts_with(words), "{messages}: {}", answered.error());
    }
}
