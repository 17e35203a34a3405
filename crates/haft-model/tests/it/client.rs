//! Requests over HTTP: retries, errors and interruptions.

use haft_model::{ModelErrorKind, ModelEvent, ModelTimeouts, ProviderSettings, TurnOptions, Wire};
use haft_tool::json;

use crate::fixture::{Piece, Played, Reply, play, play_within, settings, sse, texts};

fn hello() -> Reply {
    Reply::stream(sse(&[
        json!({"type": "response.created", "response": {"id": "r", "model": "m-1"}}),
        json!({"type": "response.output_text.delta", "output_index": 0, "delta": "Hello"}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": {"type": "message", "id": "i",
            "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}}),
        json!({"type": "response.completed", "response": {"status": "completed", "output": [], "usage":
            {"input_tokens": 3, "output_tokens": 1}}}),
    ]))
}

fn begin() -> String {
    sse(&[
        json!({"type": "response.created", "response": {"id": "r", "model": "m-1"}}),
        json!({"type": "response.output_text.delta", "output_index": 0, "delta": "Hel"}),
    ])
}

fn openai(replies: Vec<Reply>) -> Played {
    play(&settings("openai"), &TurnOptions::default(), replies)
}

fn failed(status: u16, headers: &[(&str, &str)], message: &str) -> Reply {
    Reply::new(status, headers, json!({"error": {"message": message, "type": "x"}}).to_string())
}

#[test]
fn response_has_text_provider_tokens_time_and_model() {
    let played = openai(vec![hello()]);
    let response = played.result.as_ref().unwrap();
    let summary = response.summary();
    assert_eq!((summary.text.as_str(), summary.provider.as_str()), ("Hello", "openai"));
    assert_eq!((summary.total_tokens, summary.model.as_deref()), (4, Some("m-1")));
    assert_eq!(played.requests[0].url, "https://api.openai.com/v1/responses");
    assert_eq!(texts(&played.events), "Hello");
    assert!(played.events.contains(&ModelEvent::Started { model: Some("m-1".to_owned()) }));
}

#[test]
fn model_of_the_request_replaces_the_configured_one() {
    let options = TurnOptions { model: Some("other".to_owned()), ..TurnOptions::default() };
    let played = play(&settings("openai"), &options, vec![hello()]);
    assert_eq!(played.body(0)["model"], "other");
    assert_eq!(played.result.unwrap().message.origin.model, "other");
}

#[test]
fn statuses_that_may_pass_are_retried_visibly() {
    for status in [408, 409, 429, 500, 502, 503, 504, 529] {
        let played = openai(vec![failed(status, &[("retry-after", "0")], "busy"), hello()]);
        assert!(played.result.is_ok(), "{status}");
        assert_eq!((played.retries(), played.requests.len()), (1, 2), "{status}");
        assert!(!played.events.contains(&ModelEvent::Restarted), "nothing had been shown");
    }
    let played = openai(vec![Reply::Refused, hello()]);
    assert!(played.result.is_ok() && played.retries() == 1);
}

#[test]
fn wait_is_the_one_that_the_server_asks_for() {
    let date = [("date", "Sun, 06 Nov 1994 08:49:37 GMT"), ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")];
    for headers in [&[("retry-after", "0")][..], &[("retry-after-ms", "3")], &date] {
        let played = openai(vec![failed(429, headers, "slow"), hello()]);
        let waits: Vec<u128> = played
            .events
            .iter()
            .filter_map(|event| match event {
                ModelEvent::Retrying(pause) => Some(pause.wait.as_millis()),
                _ => None,
            })
            .collect();
        let expected = if headers[0].0 == "retry-after-ms" { 3 } else { 0 };
        assert_eq!(waits, [expected], "{headers:?}");
    }
    let body = json!({"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED", "details": [
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.002s"}]}});
    let gemini = Reply::stream(sse(&[json!({"candidates": [{"finishReason": "STOP"}]})]));
    let played = play(
        &settings("gemini"),
        &TurnOptions::default(),
        vec![Reply::new(429, &[], body.to_string()), gemini],
    );
    let is_asked =
        |event: &ModelEvent| matches!(event, ModelEvent::Retrying(pause) if pause.wait.as_millis() == 2);
    assert!(played.events.iter().any(is_asked));
}

#[test]
fn attempts_are_bounded_and_a_long_wait_ends_them() {
    let played = openai(vec![failed(503, &[], "down"); 9]);
    assert_eq!((played.requests.len(), played.error().kind), (5, ModelErrorKind::Overloaded));
    for long in ["99999999999999999999999", "1e400"] {
        let played = openai(vec![failed(429, &[("retry-after", long)], "slow")]);
        assert_eq!((played.requests.len(), played.error().kind), (1, ModelErrorKind::RateLimit), "{long}");
    }
    let played = openai(vec![failed(429, &[("retry-after", "121")], "slow")]);
    assert_eq!((played.requests.len(), played.error().kind), (1, ModelErrorKind::RateLimit));
    assert!(played.error().to_string().contains("121 s"), "{}", played.error());
}

#[test]
fn silent_server_is_not_asked_again() {
    let played = openai(vec![Reply::Silent, hello()]);
    assert_eq!((played.requests.len(), played.error().kind), (1, ModelErrorKind::Timeout));
    assert!(played.error().to_string().contains("https://api.openai.com/v1"), "{}", played.error());
}

#[test]
fn what_was_shown_is_void_when_the_message_starts_again() {
    for broken in [
        Reply::stream(begin()).then(Piece::Drop),
        Reply::stream(begin()),
        Reply::stream(format!(
            "{}data: {{\"type\":\"error\",\"message\":\"x\",\"code\":\"server_error\"}}\n\n",
            begin()
        )),
    ] {
        let played = openai(vec![broken, hello()]);
        assert_eq!(played.result.as_ref().unwrap().message.text(), "Hello");
        let at = played.events.iter().position(|event| *event == ModelEvent::Restarted).unwrap();
        assert_eq!(
            (texts(&played.events[..at]).as_str(), texts(&played.events[at..]).as_str()),
            ("Hel", "Hello")
        );
    }
}

#[test]
fn error_after_all_attempts_has_what_arrived() {
    let played = openai(vec![Reply::stream(begin()).then(Piece::Drop); 5]);
    let error = played.error();
    assert_eq!(error.kind, ModelErrorKind::Network);
    assert_eq!(error.partial.as_ref().unwrap().message.text(), "Hel");
}

#[test]
fn cancellation_keeps_the_text_and_drops_unfinished_calls() {
    let call = json!({"type": "response.output_item.added", "output_index": 1, "item": {"type": "function_call",
        "call_id": "c", "name": "Read", "arguments": ""}});
    let reply = Reply::stream(format!("{}{}", begin(), sse(&[call]))).then(Piece::Cancel);
    let played = openai(vec![reply, hello()]);
    let error = played.error();
    assert_eq!((error.kind, played.requests.len()), (ModelErrorKind::Cancelled, 1));
    let partial = error.partial.as_ref().unwrap();
    assert_eq!((partial.message.text().as_str(), partial.message.calls().count()), ("Hel", 0));
}

#[test]
fn errors_say_what_to_do() {
    for (reply, kind, words) in [
        (failed(401, &[], "bad key sk-secret"), ModelErrorKind::Auth, "OPENAI_API_KEY"),
        (failed(402, &[], "no credit"), ModelErrorKind::Auth, "credit"),
        (failed(400, &[], "maximum context length is 8192"), ModelErrorKind::ContextTooLong, "/compact"),
        (failed(413, &[], "too large"), ModelErrorKind::ContextTooLong, "/compact"),
        (failed(404, &[], "The model `m` does not exist"), ModelErrorKind::UnknownModel, "--model"),
        (failed(404, &[], ""), ModelErrorKind::BadRequest, "--base-url"),
        (failed(422, &[], "no"), ModelErrorKind::BadRequest, "HTTP 422 from OpenAI: no"),
        (Reply::new(301, &[], ""), ModelErrorKind::BadRequest, "https://api.openai.com/v1"),
        (Reply::new(403, &[], "<html>\n no</html>"), ModelErrorKind::Auth, "<html> no</html>"),
        (
            Reply::json(&json!({"error": {"message": "x", "code": "invalid_api_key"}})),
            ModelErrorKind::Auth,
            "key",
        ),
    ] {
        let played = openai(vec![reply]);
        let error = played.error();
        assert_eq!((error.kind, played.requests.len()), (kind, 1), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
    let quota =
        json!({"error": {"code": "insufficient_quota", "type": "insufficient_quota", "message": "pay"}});
    let played = openai(vec![Reply::new(429, &[], quota.to_string())]);
    assert_eq!(
        (played.error().kind, played.requests.len()),
        (ModelErrorKind::Auth, 1),
        "waiting does not help"
    );
    let ollama = play(&ProviderSettings::new("ollama"), &TurnOptions::default(), vec![Reply::Refused; 5]);
    let message = ollama.error().to_string();
    assert!(message.contains("http://127.0.0.1:11434") && message.contains("ollama serve"), "{message}");
}

#[test]
fn request_id_is_kept_for_support() {
    let played = openai(vec![failed(400, &[("x-request-id", "req_1")], "no")]);
    assert_eq!(played.error().request_id.as_deref(), Some("req_1"));
}

#[test]
fn answer_need_not_have_the_form_that_was_asked_for() {
    let whole = json!({"status": "completed", "output": [{"type": "message", "id": "i", "role": "assistant",
        "content": [{"type": "output_text", "text": "Hello"}]}]});
    let played = openai(vec![Reply::json(&whole)]);
    assert_eq!(played.result.unwrap().message.text(), "Hello");
    let options = TurnOptions { stream: false, ..TurnOptions::default() };
    let played = play(&settings("openai"), &options, vec![hello()]);
    assert_eq!(played.body(0)["stream"], false);
    assert_eq!(played.result.unwrap().message.text(), "Hello");
}

#[test]
fn older_version_of_anthropics_protocol_is_used_once_the_server_wants_it() {
    let refusal = json!({"type": "error", "error": {"type": "invalid_request_error",
        "message": "anthropic-version: unknown version"}});
    let answer =
        json!({"type": "message", "content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn"});
    let replies = vec![Reply::new(400, &[], refusal.to_string()), Reply::json(&answer)];
    let played = play(&settings("anthropic"), &TurnOptions::default(), replies.clone());
    assert!(played.result.is_ok());
    let version = |at: usize| {
        let headers = &played.requests[at].headers;
        headers.iter().find(|(name, _)| name == "anthropic-version").unwrap().1.clone()
    };
    assert_eq!((version(0).as_str(), version(1).as_str()), ("2026-10-21", "2023-06-01"));
    assert!(played.events.iter().any(|event| matches!(event, ModelEvent::Notice { .. })));
    let fixed =
        ProviderSettings { anthropic_version: Some("2026-10-21".to_owned()), ..settings("anthropic") };
    let played = play(&fixed, &TurnOptions::default(), replies);
    assert_eq!(played.error().kind, ModelErrorKind::BadRequest, "the user chose the version");
}

#[test]
fn connection_that_breaks_after_the_message_does_not_matter() {
    let settings = ProviderSettings { wire: Some(Wire::OpenaiChat), ..settings("openai") };
    let stream = sse(&[json!({"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]})]);
    let played = play(&settings, &TurnOptions::default(), vec![Reply::stream(stream).then(Piece::Drop)]);
    assert_eq!((played.result.unwrap().message.text().as_str(), played.requests.len()), ("Hi", 1));
}

#[test]
fn comments_do_not_keep_a_stream_open_for_ever() {
    let comments = || vec![Piece::Bytes(b": PROCESSING\n\n".to_vec()); 3];
    let stream = |pieces: Vec<Piece>| Reply::Response {
        status: 200,
        headers: vec![("content-type".to_owned(), "text/event-stream".to_owned())],
        pieces,
    };
    let none = ModelTimeouts { comments: std::time::Duration::ZERO, ..ModelTimeouts::default() };
    let replies = (0..5).map(|_| stream(comments())).collect();
    let played = play_within(none, &settings("openai"), &TurnOptions::default(), replies);
    assert_eq!(played.error().kind, ModelErrorKind::Timeout);
    assert!(played.error().message.contains("only comments arrived"), "{}", played.error());
    let Reply::Response { pieces, .. } = hello() else { unreachable!() };
    let played = openai(vec![stream([comments(), pieces].concat())]);
    assert_eq!(played.result.unwrap().message.text(), "Hello");
}
