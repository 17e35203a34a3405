//! Chat Completions and its variants.

use haft_model::wire::{ChatVariant, Codec};
use haft_model::{
    CallArguments, ChatMessage, ContentPart, ModelErrorKind, ModelEvent, ModelStop, OutputSchema,
    ReasoningEffort, ToolChoice, ToolResult, TurnOptions, TurnRequest, Wire,
};
use haft_tool::{Value, json};

use crate::fixture::{answered, asked, codec, completed, decode, decode_whole, encode, sse, texts, tool};

fn call(index: u64, id: &str, arguments: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {"tool_calls": [{
        "index": index, "id": id, "type": "function", "function": {"name": "Read", "arguments": arguments},
    }]}}]})
}

fn end(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn variant(chat: ChatVariant) -> Codec {
    let mut codec = codec(Wire::OpenaiChat);
    codec.options.chat = chat;
    codec
}

fn body(codec: &Codec, options: &TurnOptions) -> Value {
    let (conversation, tools) = (asked("hello"), [tool("Read")]);
    codec.encode(&TurnRequest { conversation: &conversation, tools: &tools, options }, "m")
}

#[test]
fn parallel_calls_are_reported_as_soon_as_each_is_complete() {
    let first = sse(&[call(0, "a", "{\"path\":"), call(0, "", "\"x\"}"), call(1, "b", "{}")]);
    let (result, events) = decode(&codec(Wire::OpenaiChat), &asked("hello"), &[first.as_bytes()]);
    assert!(result.is_err());
    assert_eq!(completed(&events), ["Read"], "the second call may go on");
    let all = format!("{first}{}", sse(&[end("tool_calls")]));
    let (result, events) = decode(&codec(Wire::OpenaiChat), &asked("hello"), &[all.as_bytes()]);
    let message = result.unwrap().message;
    let ids: Vec<&str> = message.calls().map(|call| call.id.as_str()).collect();
    assert_eq!((ids, completed(&events).len()), (vec!["a", "b"], 2));
}

#[test]
fn results_follow_the_answer_one_message_each_with_images_after_all_of_them() {
    let stream = sse(&[call(0, "a", "{}"), call(1, "b", "{}"), end("stop")]);
    let (result, _) = decode(&codec(Wire::OpenaiChat), &asked("hello"), &[stream.as_bytes()]);
    let mut conversation = answered(asked("hello"), result.unwrap().message);
    let Some(ChatMessage::ToolResults { results, content }) = conversation.messages.last_mut() else {
        panic!("no results")
    };
    results[0].is_error = true;
    let image = ContentPart::Image { media_type: "image/png".to_owned(), data: "AAAA".to_owned() };
    results[1].content.push(image);
    content.push(ContentPart::text("and?"));
    let body = encode(&codec(Wire::OpenaiChat), &conversation, &[tool("Read")]);
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages[3], json!({"role": "tool", "tool_call_id": "a", "content": "Error: done"}));
    assert_eq!(messages[4]["tool_call_id"], "b");
    assert_eq!(messages[5]["role"], "user");
    assert_eq!(messages[5]["content"][1]["image_url"]["url"], "data:image/png;base64,AAAA");
    assert_eq!(messages[5]["content"][2]["text"], "and?");
}

#[test]
fn calls_decide_and_not_the_reason() {
    let stream = sse(&[call(0, "a", "{}"), end("stop")]);
    let (result, _) = decode(&codec(Wire::OpenaiChat), &asked("hello"), &[stream.as_bytes()]);
    assert_eq!(result.unwrap().message.calls().count(), 1);
}

#[test]
fn call_that_was_cut_is_dropped_and_the_one_before_it_is_kept() {
    for cut in ["", "{\"path\": \"/et"] {
        let stream = sse(&[call(0, "a", "{}"), call(1, "b", cut), end("length")]);
        let (result, events) = decode(&codec(Wire::OpenaiChat), &asked("hello"), &[stream.as_bytes()]);
        let response = result.unwrap();
        assert_eq!((response.stop, response.message.calls().count()), (ModelStop::Length, 1));
        assert_eq!(completed(&events).len(), 1);
    }
}

#[test]
fn odd_arguments_are_interpreted_or_passed_on_as_invalid() {
    for (text, expected, has_note) in [
        ("", Some(json!({})), true),
        ("null", Some(json!({})), true),
        (r#""{\"path\": \"x\"}""#, Some(json!({"path": "x"})), true),
        (r#"{"path": "x"}"#, Some(json!({"path": "x"})), false),
        (r#"{"path": "x""#, None, false),
        ("[1]", None, false),
        ("\"x\"", None, false),
    ] {
        let stream = sse(&[call(0, "a", text), end("tool_calls")]);
        let (result, _) = decode(&codec(Wire::OpenaiChat), &asked("hello"), &[stream.as_bytes()]);
        let message = result.unwrap().message;
        let call = message.calls().next().unwrap();
        match (&call.arguments, expected) {
            (CallArguments::Object(object), Some(expected)) => {
                assert_eq!(Value::Object(object.clone()), expected);
            }
            (CallArguments::Invalid(invalid), None) => assert_eq!(invalid, text),
            other => panic!("{text}: {other:?}"),
        }
        assert_eq!(call.note.is_some(), has_note, "{text}");
    }
}

#[test]
fn invalid_arguments_go_back_as_json_to_servers_that_parse_them() {
    let stream = sse(&[call(0, "a", "{\"path\":"), end("tool_calls")]);
    for (chat, expected) in [
        (ChatVariant::Openai, "{\"path\":"),
        (ChatVariant::Compatible, r#"{"invalid_arguments":"{\"path\":"}"#),
    ] {
        let codec = variant(chat);
        let (result, _) = decode(&codec, &asked("hello"), &[stream.as_bytes()]);
        let body = encode(&codec, &answered(asked("hello"), result.unwrap().message), &[]);
        assert_eq!(body["messages"][2]["tool_calls"][0]["function"]["arguments"], expected);
    }
}

#[test]
fn calls_with_one_id_are_told_apart() {
    let stream = sse(&[call(0, "a", "{}"), call(1, "a", "{}"), end("tool_calls")]);
    let (result, _) = decode(&codec(Wire::OpenaiChat), &asked("hello"), &[stream.as_bytes()]);
    let conversation = answered(asked("hello"), result.unwrap().message);
    let body = encode(&codec(Wire::OpenaiChat), &conversation, &[]);
    let ids: Vec<&Value> = (0..2).map(|at| &body["messages"][2]["tool_calls"][at]["id"]).collect();
    assert_ne!(ids[0], ids[1]);
    assert_eq!(body["messages"][3]["tool_call_id"], *ids[0]);
    assert_eq!(body["messages"][4]["tool_call_id"], *ids[1]);
    // The same id in a later turn is unique inside and the provider's own outside.
    let stream = sse(&[call(0, "a", "{}"), end("tool_calls")]);
    let (result, _) = decode(&codec(Wire::OpenaiChat), &conversation, &[stream.as_bytes()]);
    let message = result.unwrap().message;
    assert_ne!(message.calls().next().unwrap().id, "a");
    let body = encode(&codec(Wire::OpenaiChat), &answered(conversation, message), &[]);
    assert_eq!(body["messages"][5]["tool_calls"][0]["id"], "a");
    assert_eq!(body["messages"][6]["tool_call_id"], "a");
}

#[test]
fn refusal_is_a_stop_and_a_200_can_be_an_error() {
    let stream = sse(&[json!({"choices": [{"delta": {"refusal": "No."}}]}), end("stop")]);
    let (result, _) = decode(&codec(Wire::OpenaiChat), &asked("hello"), &[stream.as_bytes()]);
    assert_eq!(result.unwrap().stop, ModelStop::Refused { explanation: "No.".to_owned() });
    for (body, kind) in [
        (json!({"error": {"code": 502, "message": "Provider returned error"}}), ModelErrorKind::Overloaded),
        (json!({"error": {"code": "429", "message": "slow down"}}), ModelErrorKind::RateLimit),
        (json!({"error": {"code": 402, "message": "no credit"}}), ModelErrorKind::Auth),
        (
            json!({"error": {"code": "context_length_exceeded", "message": "too long"}}),
            ModelErrorKind::ContextTooLong,
        ),
    ] {
        let whole = decode_whole(&codec(Wire::OpenaiChat), &asked("hello"), &body);
        assert_eq!(whole.unwrap_err().kind, kind, "{body}");
        let stream = sse(&[json!({"choices": [{"delta": {"content": "I"}}]}), body.clone()]);
        let (streamed, events) = decode(&codec(Wire::OpenaiChat), &asked("hello"), &[stream.as_bytes()]);
        assert_eq!((streamed.unwrap_err().kind, texts(&events).as_str()), (kind, "I"), "{body}");
    }
}

#[test]
fn stream_without_a_reason_to_stop_is_incomplete() {
    let begin = sse(&[json!({"choices": [{"delta": {"content": "Hel"}}]})]);
    for stream in [begin.clone(), format!("{begin}data: [DONE]\n\n"), String::new()] {
        let (result, _) = decode(&codec(Wire::OpenaiChat), &asked("hello"), &[stream.as_bytes()]);
        assert_eq!(result.unwrap_err().kind, ModelErrorKind::Protocol, "{stream}");
    }
}

#[test]
fn reasoning_of_litellm_is_shown_once_and_goes_back() {
    let delta = |delta: Value| json!({"choices": [{"delta": delta}]});
    let stream = sse(&[
        delta(
            json!({"reasoning_content": "Let ", "thinking_blocks": [{"type": "thinking", "thinking": "Let "}]}),
        ),
        delta(
            json!({"reasoning_content": "me", "thinking_blocks": [{"type": "thinking", "thinking": "me"}]}),
        ),
        delta(json!({"thinking_blocks": [{"type": "thinking", "thinking": "", "signature": "sig"}]})),
        delta(json!({"thinking_blocks": [{"type": "redacted_thinking", "data": "xx"}], "content": "Hi"})),
        end("stop"),
    ]);
    let codec = variant(ChatVariant::Litellm);
    let (result, events) = decode(&codec, &asked("hello"), &[stream.as_bytes()]);
    let shown: Vec<&ModelEvent> =
        events.iter().filter(|event| matches!(event, ModelEvent::Reasoning { .. })).collect();
    assert_eq!(shown.len(), 2);
    let body = encode(&codec, &answered(asked("hello"), result.unwrap().message), &[]);
    assert_eq!(
        body["messages"][2],
        json!({"role": "assistant", "content": "Hi", "reasoning_content": "Let me", "thinking_blocks": [
            {"type": "thinking", "thinking": "Let me", "signature": "sig"},
            {"type": "redacted_thinking", "data": "xx"},
        ]})
    );
}

#[test]
fn options_have_the_names_that_each_variant_knows() {
    let options = TurnOptions {
        max_tokens: Some(100),
        effort: Some(ReasoningEffort::Low),
        tool_choice: ToolChoice::Tool("Read".to_owned()),
        parallel_calls: Some(false),
        cache_key: Some("k".to_owned()),
        output_schema: Some(OutputSchema {
            name: "out".to_owned(),
            schema: json!({"type": "object",
            "properties": {"a": {"type": "string"}}, "required": ["a"]}),
        }),
        ..TurnOptions::default()
    };
    let openai = body(&variant(ChatVariant::Openai), &options);
    assert_eq!(openai["max_completion_tokens"], 100);
    assert_eq!(openai["reasoning_effort"], "low");
    assert_eq!(openai["prompt_cache_key"], "k");
    assert_eq!(openai["tool_choice"]["function"]["name"], "Read");
    assert_eq!(openai["response_format"]["json_schema"]["strict"], true);
    assert_eq!(openai["stream_options"]["include_usage"], true);
    let openrouter = body(&variant(ChatVariant::Openrouter), &options);
    assert_eq!((&openrouter["max_tokens"], &openrouter["reasoning"]["effort"]), (&json!(100), &json!("low")));
    assert!(openrouter.get("prompt_cache_key").is_none());
}

#[test]
fn arguments_as_objects_and_deltas_without_an_index_are_understood() {
    let delta = |call: Value| json!({"choices": [{"delta": {"tool_calls": [call]}}]});
    let stream = sse(&[
        delta(json!({"id": "a", "function": {"name": "Read", "arguments": {"path": "x"}}})),
        delta(json!({"id": "b", "function": {"name": "Read", "arguments": "{\"pa"}})),
        delta(json!({"function": {"arguments": "th\":1}"}})),
        end("tool_calls"),
    ]);
    let (result, _) = decode(&codec(Wire::OpenaiChat), &asked("hello"), &[stream.as_bytes()]);
    let message = result.unwrap().message;
    let arguments: Vec<&CallArguments> = message.calls().map(|call| &call.arguments).collect();
    let object = |value: Value| CallArguments::Object(value.as_object().unwrap().clone());
    assert_eq!(arguments, [&object(json!({"path": "x"})), &object(json!({"path": 1}))]);
}

#[test]
fn conversation_knows_its_unanswered_calls() {
    let stream = sse(&[call(0, "a", "{}"), call(1, "b", "{}"), end("stop")]);
    let (result, _) = decode(&codec(Wire::OpenaiChat), &asked("hello"), &[stream.as_bytes()]);
    let mut conversation = asked("hello");
    assert!(conversation.unanswered_calls().is_empty());
    conversation.messages.push(ChatMessage::Assistant(result.unwrap().message));
    assert_eq!(conversation.unanswered_calls().len(), 2);
    let result =
        ToolResult { call_id: "a".to_owned(), name: "Read".to_owned(), content: Vec::new(), is_error: true };
    conversation.messages.push(ChatMessage::ToolResults { results: vec![result], content: Vec::new() });
    assert_eq!(conversation.unanswered_calls()[0].id, "b");
}
