//! Answers that are sent as a whole.

use std::time::Duration;

use haft_model::{ScriptModel, Wire};
use haft_server::proxy::{ProxyModel, ProxyModels};
use haft_tool::{Value, json};

use super::fixture::{KEY, ProxyFixture, proxied, unset, upstream_model, upstream_within};
use super::upstream::{Reply, Upstream};

fn request() -> Value {
    json!({
        "model": "m-1",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Queue or lock?"},
        ],
        "tools": [],
        "max_tokens": 512,
        "temperature": 0.2,
    })
}

fn chat_answer() -> Reply {
    Reply::json(
        200,
        r#"{"id":"r","model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":"A queue."},"finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":3}}"#,
    )
}

fn openai(upstream: &Upstream) -> ProxyFixture {
    ProxyFixture::openai(proxied(upstream_model("openai", Wire::OpenaiChat, upstream)))
}

#[test]
fn the_answer_has_message_calls_usage_and_reason() {
    let upstream = Upstream::new([chat_answer()]);
    let answered = openai(&upstream).post("openai/complete", request().to_string());
    assert_eq!(
        answered.body.to_string(),
        r#"{"message":{"role":"assistant","content":"A queue."},"tool_calls":[],"usage":{"input_tokens":20,"output_tokens":3},"finish_reason":"stop"}"#
    );
    let asked = &upstream.requests()[0];
    assert_eq!(asked.line, "POST /chat/completions");
    assert!(asked.has_header(&format!("authorization: Bearer {KEY}")), "{asked:?}");
    let body = asked.json();
    assert_eq!(json!([body["model"], body["max_tokens"], body["temperature"]]), json!(["m-1", 512, 0.2]));
    assert_eq!(body["stream"], false);
    assert_eq!(
        body["messages"],
        json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Queue or lock?"}])
    );
}

#[test]
fn each_family_asks_its_own_provider_in_its_format() {
    let anthropic = Upstream::new([Reply::json(
        200,
        r#"{"type":"message","role":"assistant","content":[{"type":"text","text":"A lock."},{"type":"tool_use","id":"t_1","name":"bash","input":{"command":"ls"}}],"stop_reason":"tool_use","usage":{"input_tokens":5,"cache_read_input_tokens":10,"output_tokens":2}}"#,
    )]);
    let gemini = Upstream::new([Reply::json(
        200,
        r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Both."}]},"finishReason":"MAX_TOKENS"}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":1}}"#,
    )]);
    let fixture = ProxyFixture::models(ProxyModels {
        openai: unset(),
        anthropic: Ok(proxied(upstream_model("anthropic", Wire::Anthropic, &anthropic))),
        vertex: Ok(proxied(upstream_model("gemini", Wire::Gemini, &gemini))),
    });
    let answered = fixture.post("anthropic/complete", request().to_string());
    assert_eq!(
        answered.body,
        json!({
            "message": {"role": "assistant", "content": "A lock."},
            "tool_calls": [{"id": "t_1", "tool_name": "bash", "arguments_json": {"command": "ls"}}],
            "usage": {"input_tokens": 15, "output_tokens": 2},
            "finish_reason": "tool_calls",
        })
    );
    let asked = &anthropic.requests()[0];
    assert_eq!((asked.line.as_str(), &asked.json()["max_tokens"]), ("POST /v1/messages", &json!(512)));
    let answered = fixture.post("vertex/complete", request().to_string());
    assert_eq!(answered.body["message"]["content"], "Both.");
    assert_eq!(answered.body["finish_reason"], "length");
    let asked = &gemini.requests()[0];
    assert_eq!(asked.line, "POST /v1beta/models/m-1:generateContent");
    assert!(asked.has_header(&format!("x-goog-api-key: {KEY}")), "{asked:?}");
    assert_eq!(asked.json()["generationConfig"], json!({"maxOutputTokens": 512, "temperature": 0.2}));
}

#[test]
fn a_family_that_is_not_configured_is_unavailable_and_says_why() {
    let fixture = ProxyFixture::unconfigured();
    for path in ["openai/complete", "anthropic/complete", "vertex/complete", "vertex/stream"] {
        let answered = fixture.post(path, "not even JSON");
        assert_eq!(answered.status, 503, "{path}");
        assert!(answered.error().contains("is not configured on this server: Set THE_KEY."), "{path}");
    }
}

#[test]
fn failures_of_the_provider_have_documented_statuses() {
    let error = |message: &str| json!({"error": {"message": message, "type": "x"}}).to_string();
    for (reply, status) in [
        (Reply::json(429, error("slow down")), 503),
        (Reply::json(429, r#"{"error":{"message":"no credit","code":"insufficient_quota"}}"#), 503),
        (Reply::json(408, error("too slow")), 504),
        (Reply::json(504, error("too slow")), 504),
        (Reply::json(400, error("maximum context length")), 502),
        (Reply::json(401, error(&format!("bad key {KEY}"))), 502),
        (Reply::json(404, error("no such model")), 502),
        (Reply::json(500, error("broken")), 502),
        (Reply::json(503, error("down")), 502),
        (Reply::json(529, error("overloaded")), 502),
        (Reply::json(200, "{\"choices\":["), 502),
        (Reply::json(200, "[]"), 502),
        (Reply::with(200, "Content-Type: text/html\r\n", "<html>a login page"), 502),
        (Reply::with(302, "Location: http://127.0.0.1:1/\r\n", ""), 502),
        (Reply::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{".to_vec()), 502),
        (Reply::Bytes(b"\0\x01garbage\r\n\r\n".to_vec()), 502),
        (Reply::Bytes(Vec::new()), 502),
    ] {
        let upstream = Upstream::new([reply]);
        let answered = openai(&upstream).post("openai/complete", request().to_string());
        assert_eq!(answered.status, status, "{}", answered.body);
        assert_eq!(upstream.requests().len(), 1, "clients make further attempts");
        assert!(!answered.error().is_empty() && answered.headers.is_empty(), "{answered:?}");
    }
}

#[test]
fn a_provider_that_is_silent_is_a_timeout() {
    let upstream = Upstream::new([Reply::Hold(Vec::new())]);
    let model = upstream_within(Duration::from_millis(20), "openai", Wire::OpenaiChat, &upstream);
    let answered = ProxyFixture::openai(proxied(model)).post("openai/complete", request().to_string());
    assert_eq!(answered.status, 504, "{}", answered.body);
    upstream.closed.recv().unwrap();
}

#[test]
fn a_provider_that_is_not_there_is_a_bad_gateway() {
    let mut gone = Upstream::new([]);
    // The system gives this port to no other test.
    gone.url = "http://127.0.0.1:1".to_owned();
    assert_eq!(openai(&gone).post("openai/complete", request().to_string()).status, 502);
}

#[test]
fn a_wait_that_the_provider_asks_for_is_passed_on() {
    let limited = Reply::with(429, "Retry-After: 7\r\n", r#"{"error":{"message":"slow down"}}"#);
    let answered = openai(&Upstream::new([limited])).post("openai/complete", request().to_string());
    assert_eq!(answered.headers, [("retry-after", "7".to_owned())]);
    assert_eq!(answered.body, json!({"error": "HTTP 429 from OpenAI: slow down"}));
}

#[test]
fn a_temperature_that_is_refused_is_left_out_with_a_note() {
    let refusal = r#"{"error":{"message":"Unsupported value: 'temperature' does not support 0.2 with this model.","param":"temperature"}}"#;
    let upstream = Upstream::new([Reply::json(400, refusal), chat_answer()]);
    let answered = openai(&upstream).post("openai/complete", request().to_string());
    let note = "m-1 of OpenAI does not accept the temperature 0.2; it was left out.";
    assert_eq!((answered.status, &answered.body["notes"]), (200, &json!([note])));
    assert!(upstream.requests()[1].json().get("temperature").is_none());
}

#[test]
fn a_model_of_the_server_answers_in_place_of_the_one_that_is_named() {
    let upstream = Upstream::new([chat_answer(), chat_answer()]);
    let model = proxied(upstream_model("openai", Wire::OpenaiChat, &upstream));
    let fixture = ProxyFixture::openai(ProxyModel { own_model: Some("own".to_owned()), ..model });
    let answered = fixture.post("openai/complete", request().to_string());
    assert_eq!(answered.body["notes"], json!(["own answers on this server, in place of m-1."]));
    let mut unnamed = request();
    unnamed.as_object_mut().unwrap().remove("model");
    assert!(fixture.post("openai/complete", unnamed.to_string()).body.get("notes").is_none());
    assert!(upstream.requests().iter().all(|asked| asked.json()["model"] == "own"));
}

#[test]
fn each_way_to_stop_has_a_reason() {
    for (turn, reason) in [
        (json!({"text": "x"}), "stop"),
        (json!({"calls": [{"name": "bash", "arguments": {"command": "ls"}}]}), "tool_calls"),
        (json!({"text": "x", "stop": {"reason": "length"}}), "length"),
        (json!({"text": "x", "stop": {"reason": "context_full"}}), "length"),
        (json!({"text": "x", "stop": {"reason": "paused"}}), "pause"),
        (json!({"stop": {"reason": "refused", "explanation": "No."}}), "content_filter"),
        (json!({"stop": {"reason": "invalid_call", "explanation": "No."}}), "invalid_tool_call"),
        (json!({"stop": {"reason": "other", "name": "weather"}}), "weather"),
    ] {
        let fixture = ProxyFixture::openai(proxied(ScriptModel::parse(&turn.to_string()).unwrap()));
        let answered = fixture.post("openai/complete", request().to_string());
        assert_eq!(answered.body["finish_reason"], reason, "{turn}");
        assert_eq!(answered.body.get("notes").is_some(), turn.to_string().contains("explanation"), "{turn}");
    }
}

#[test]
fn malformed_arguments_of_a_model_are_passed_on_as_text() {
    let turn = json!({"calls": [{"name": "bash", "arguments": "{\"command\": "}]});
    let fixture = ProxyFixture::openai(proxied(ScriptModel::parse(&turn.to_string()).unwrap()));
    let answered = fixture.post("openai/complete", request().to_string());
    assert_eq!(answered.body["tool_calls"][0]["arguments_json"], "{\"command\": ");
}
