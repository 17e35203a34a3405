//! Answers that are sent as events.

use std::time::Duration;

use haft_model::{
    Model, ModelError, ModelErrorKind, ModelEvent, ModelResponse, ScriptModel, TurnRequest, Wire,
};
use haft_server::proxy::{LoomReply, LoomRequest};
use haft_tool::{Cancel, Value, json};

use super::fixture::{ProxyFixture, proxied, upstream_model, upstream_within};
use super::upstream::{Reply, Upstream};

fn request() -> Value {
    json!({"model": "m-1", "messages": [{"role": "user", "content": "Count."}], "temperature": 0.5})
}

fn delta(delta: &Value) -> Value {
    json!({"id": "r", "model": "m-1", "choices": [{"index": 0, "delta": delta}]})
}

fn openai(upstream: &Upstream) -> ProxyFixture {
    ProxyFixture::openai(proxied(upstream_model("openai", Wire::OpenaiChat, upstream)))
}

/// The payloads of events, each of which must have the documented form.
fn payloads(sent: &[String]) -> Vec<Value> {
    let mut payloads = Vec::new();
    for event in sent.iter().filter(|event| !event.starts_with(':')) {
        let data = event.strip_prefix("event: llm\ndata: ").and_then(|rest| rest.strip_suffix("\n\n"));
        let data = data.unwrap_or_else(|| panic!("{event:?}"));
        assert!(!data.contains('\n'));
        payloads.push(serde_json::from_str(data).unwrap());
    }
    payloads
}

#[test]
fn text_and_calls_come_as_they_arrive_and_the_whole_answer_at_the_end() {
    let upstream = Upstream::new([Reply::events(
        &[
            delta(&json!({"role": "assistant", "content": "One\n"})),
            delta(&json!({"content": "two"})),
            delta(
                &json!({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "bash", "arguments": ""}}]}),
            ),
            delta(&json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"command\":"}}]})),
            delta(&json!({"tool_calls": [{"index": 0, "function": {"arguments": "\"ls\"}"}}]})),
            json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
            json!({"choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": 6}}),
        ],
        Reply::Bytes,
    )]);
    let sent = openai(&upstream).stream("openai/stream", &request()).unwrap();
    assert!(sent[0].starts_with(':'), "the client knows at once that the answer begins: {sent:?}");
    assert_eq!(
        payloads(&sent),
        [
            json!({"type": "text_delta", "content": "One\n"}),
            json!({"type": "text_delta", "content": "two"}),
            json!({"type": "tool_call_delta", "call_id": "c1", "tool_name": "bash", "arguments_fragment": "{\"command\":\"ls\"}"}),
            json!({"type": "completed", "response": {
                "message": {"role": "assistant", "content": "One\ntwo"},
                "tool_calls": [{"id": "c1", "tool_name": "bash", "arguments_json": {"command": "ls"}}],
                "usage": {"input_tokens": 4, "output_tokens": 6},
                "finish_reason": "tool_calls",
            }}),
        ]
    );
    assert_eq!(upstream.requests()[0].json()["stream"], true);
}

#[test]
fn failures_before_the_answer_begins_have_statuses() {
    let not_configured = ProxyFixture::unconfigured();
    assert_eq!(not_configured.stream("openai/stream", &request()).unwrap_err().status, 503);
    for (reply, status) in [
        (Reply::with(429, "Retry-After: 1\r\n", ""), 503),
        (Reply::json(500, "{}"), 502),
        (Reply::json(504, "{}"), 504),
        (Reply::Bytes(Vec::new()), 502),
    ] {
        let answered = openai(&Upstream::new([reply])).stream("openai/stream", &request()).unwrap_err();
        assert_eq!(answered.status, status, "{}", answered.body);
    }
    let silent = Upstream::new([Reply::Hold(Vec::new())]);
    let model = upstream_within(Duration::from_millis(20), "openai", Wire::OpenaiChat, &silent);
    let answered = ProxyFixture::openai(proxied(model)).stream("openai/stream", &request()).unwrap_err();
    assert_eq!(answered.status, 504);
}

#[test]
fn a_failure_in_the_middle_is_the_last_event() {
    let begin = delta(&json!({"role": "assistant", "content": "One"}));
    let error = json!({"error": {"message": "the model fell over"}});
    for (events, words) in [(vec![begin.clone()], "OpenAI"), (vec![begin, error], "the model fell over")] {
        let upstream = Upstream::new([Reply::events(&events, Reply::Bytes)]);
        let payloads = payloads(&openai(&upstream).stream("openai/stream", &request()).unwrap());
        assert_eq!(payloads[0], json!({"type": "text_delta", "content": "One"}));
        assert_eq!((payloads.len(), &payloads[1]["type"]), (2, &json!("error")));
        assert!(payloads[1]["message"].as_str().unwrap().contains(words), "{payloads:?}");
    }
}

#[test]
fn when_the_client_has_gone_the_request_to_the_provider_ends() {
    let begin = [delta(&json!({"content": "One"}))];
    let upstream = Upstream::new([Reply::events(&begin, Reply::Hold)]);
    let (fixture, cancel, body) = (openai(&upstream), Cancel::new(), request().to_string());
    let request = LoomRequest { method: "POST", path: "openai/stream", body: body.as_bytes() };
    let mut sent = Vec::new();
    let reply = fixture.proxies.respond(&request, &cancel, &mut |event| {
        sent.push(event);
        sent.len() < 2
    });
    assert_eq!((reply, sent.len()), (LoomReply::Streamed, 2), "nothing is sent after that");
    assert!(cancel.is_cancelled());
    upstream.closed.recv().unwrap();
}

#[test]
fn a_cancelled_request_ends_while_the_provider_is_silent() {
    for path in ["openai/stream", "openai/complete"] {
        let upstream = Upstream::new([Reply::Hold(Vec::new())]);
        let (fixture, cancel, body) = (openai(&upstream), Cancel::new(), request().to_string());
        let reply = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let request = LoomRequest { method: "POST", path, body: body.as_bytes() };
                fixture.proxies.respond(&request, &cancel, &mut |_| true)
            });
            upstream.came.recv().unwrap();
            cancel.cancel();
            waiting.join().unwrap()
        });
        assert!(matches!(reply, LoomReply::Whole(response) if response.status == 503), "{path}");
        upstream.closed.recv().unwrap();
    }
}

#[test]
fn notes_are_in_the_completed_answer() {
    let refusal = Reply::json(400, r#"{"error":{"message":"temperature is not supported"}}"#);
    let upstream = Upstream::new([
        refusal,
        Reply::events(
            &[
                delta(&json!({"content": "x"})),
                json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
            ],
            Reply::Bytes,
        ),
    ]);
    let payloads = payloads(&openai(&upstream).stream("openai/stream", &request()).unwrap());
    let notes = &payloads.last().unwrap()["response"]["notes"];
    assert!(notes[0].as_str().unwrap().contains("temperature 0.5"), "{notes}");
}

/// A model that starts its answer again after sending a part of it.
struct BeginsAgain;

impl Model for BeginsAgain {
    fn provider(&self) -> &'static str {
        "test"
    }

    fn model(&self) -> &'static str {
        "test"
    }

    fn respond(
        &self,
        _: &TurnRequest<'_>,
        on_event: &mut dyn FnMut(ModelEvent),
        cancel: &Cancel,
    ) -> Result<ModelResponse, ModelError> {
        on_event(ModelEvent::Text { delta: "One".to_owned() });
        on_event(ModelEvent::Restarted);
        assert!(cancel.is_cancelled());
        Err(ModelError::new(ModelErrorKind::Cancelled, "test", "cancelled"))
    }
}

#[test]
fn what_was_sent_is_never_sent_again() {
    let sent = ProxyFixture::openai(proxied(BeginsAgain)).stream("openai/stream", &request()).unwrap();
    let payloads = payloads(&sent);
    assert_eq!((payloads.len(), &payloads[1]["type"]), (2, &json!("error")));
    assert!(payloads[1]["message"].as_str().unwrap().contains("broke"));
}

#[test]
fn a_scripted_model_streams_too() {
    let script = json!({"text": "a b", "reasoning": "hm", "usage": {"input": 1, "output": 2}}).to_string();
    let fixture = ProxyFixture::openai(proxied(ScriptModel::parse(&script).unwrap()));
    let kinds: Vec<Value> = payloads(&fixture.stream("openai/stream", &request()).unwrap())
        .into_iter()
        .map(|mut payload| payload["type"].take())
        .collect();
    assert_eq!(kinds, ["text_delta", "text_delta", "completed"]);
}
