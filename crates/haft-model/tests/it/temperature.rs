//! How freely a model answers, where the provider lets the caller say so.

use std::sync::{Arc, Mutex};

use haft_model::wire::{Codec, OLD_ANTHROPIC_VERSION, WireOptions};
use haft_model::{HttpModel, Model, ModelEvent, TurnOptions, TurnRequest, Wire};
use haft_tool::{Cancel, HttpStreams, json};

use crate::fixture::{Reply, ScriptedStreams, asked, codec, play, settings};

fn warm() -> TurnOptions {
    TurnOptions { temperature: Some(0.2), max_tokens: Some(9), stream: false, ..TurnOptions::default() }
}

fn answer() -> Reply {
    Reply::json(
        &json!({"choices": [{"message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}]}),
    )
}

fn notices(events: &[ModelEvent]) -> Vec<&str> {
    let mut texts = Vec::new();
    for event in events {
        if let ModelEvent::Notice { text } = event {
            texts.push(text.as_str());
        }
    }
    texts
}

#[test]
fn each_format_has_its_field_and_anthropics_current_version_has_none() {
    let conversation = asked("hello");
    let options = warm();
    let body = |codec: &Codec| {
        codec.encode(&TurnRequest { conversation: &conversation, tools: &[], options: &options }, "m")
    };
    for (wire, pointer) in [
        (Wire::OpenaiResponses, "/temperature"),
        (Wire::OpenaiChat, "/temperature"),
        (Wire::Gemini, "/generationConfig/temperature"),
        (Wire::Ollama, "/options/temperature"),
    ] {
        assert_eq!(body(&codec(wire)).pointer(pointer), Some(&json!(0.2)), "{wire}");
    }
    assert_eq!(body(&codec(Wire::Ollama))["options"]["num_predict"], 9);
    assert!(body(&codec(Wire::Anthropic)).get("temperature").is_none());
    let old = WireOptions { anthropic_version: OLD_ANTHROPIC_VERSION.to_owned(), ..WireOptions::default() };
    assert_eq!(body(&Codec { options: old, ..codec(Wire::Anthropic) })["temperature"], 0.2);
}

#[test]
fn what_the_format_refuses_is_left_out_with_a_notice() {
    let reply = json!({"type": "message", "role": "assistant", "content": [{"type": "text", "text": "yes"}],
        "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}});
    let played = play(&settings("anthropic"), &warm(), vec![Reply::json(&reply)]);
    assert_eq!(played.result.as_ref().unwrap().message.text(), "yes");
    assert!(played.body(0).get("temperature").is_none());
    assert_eq!(
        notices(&played.events),
        ["m of Anthropic does not accept the temperature 0.2; it was left out."]
    );
}

#[test]
fn what_a_model_refuses_is_left_out_and_remembered() {
    let refusal = r#"{"error":{"message":"Unsupported value: 'temperature' does not support 0.2 with this model.","param":"temperature"}}"#;
    let http = Arc::new(ScriptedStreams {
        replies: Mutex::new([Reply::new(400, &[], refusal), answer(), answer(), answer()].into()),
        ..Default::default()
    });
    let mut settings = settings("openai");
    settings.wire = Some(Wire::OpenaiChat);
    let endpoint = settings.resolve(&|_| None).unwrap();
    let model = HttpModel::new(endpoint, "m", Arc::clone(&http) as Arc<dyn HttpStreams>);
    let ask = |options: &TurnOptions| {
        let (conversation, mut events) = (asked("hello"), Vec::new());
        let request = TurnRequest { conversation: &conversation, tools: &[], options };
        model.respond(&request, &mut |event| events.push(event), &Cancel::new()).unwrap();
        events
    };
    let first = ask(&warm());
    assert_eq!(notices(&first), ["m of OpenAI does not accept the temperature 0.2; it was left out."]);
    assert_eq!(notices(&ask(&warm())).len(), 1, "the caller is told each time");
    ask(&TurnOptions { temperature: Some(1.0), ..warm() });
    let sent: Vec<_> = http
        .requests
        .lock()
        .unwrap()
        .iter()
        .map(|request| {
            let body: haft_tool::Value = serde_json::from_slice(request.body.as_deref().unwrap()).unwrap();
            body.get("temperature").cloned()
        })
        .collect();
    assert_eq!(sent, [Some(json!(0.2)), None, None, Some(json!(1.0))], "another value may be accepted");
}

#[test]
fn other_bad_requests_are_not_repeated() {
    let refusal = r#"{"error":{"message":"Unsupported parameter: max_tokens"}}"#;
    let played = play(&settings("openai"), &warm(), vec![Reply::new(400, &[], refusal)]);
    assert_eq!((played.requests.len(), played.error().status), (1, Some(400)));
}
