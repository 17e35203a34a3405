//! Messages.

use haft_model::{
    CallArguments, ChatMessage, ContentPart, Conversation, ModelErrorKind, ModelEvent, ModelStop,
    ReasoningEffort, ToolResult, TurnOptions, TurnRequest, Wire,
};
use haft_tool::{Value, json};

use crate::fixture::{answered, asked, codec, completed, decode, decode_whole, encode, sse, texts, tool};

fn call(index: u64, pieces: &[&str]) -> Vec<Value> {
    let block = json!({"type": "tool_use", "id": format!("toolu_{index}"), "name": "Read", "input": {}});
    let mut events = vec![json!({"type": "content_block_start", "index": index, "content_block": block})];
    for piece in pieces {
        let delta = json!({"type": "input_json_delta", "partial_json": piece});
        events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
    }
    events.push(json!({"type": "content_block_stop", "index": index}));
    events
}

fn stream(blocks: Vec<Vec<Value>>, end: &Value) -> String {
    let mut events =
        vec![json!({"type": "message_start", "message": {"id": "msg", "model": "m", "usage": {}}})];
    events.extend(blocks.into_iter().flatten());
    events.push(json!({"type": "message_delta", "delta": end, "usage": {"output_tokens": 3}}));
    events.push(json!({"type": "message_stop"}));
    sse(&events)
}

#[test]
fn call_is_reported_at_the_end_of_its_block() {
    let text =
        stream(vec![call(0, &["{\"path\"", ": 1}"]), call(1, &[])], &json!({"stop_reason": "tool_use"}));
    let before_end = &text[..text.find("message_delta").unwrap() - 20];
    let (_, events) = decode(&codec(Wire::Anthropic), &asked("hello"), &[before_end.as_bytes()]);
    assert_eq!(completed(&events).len(), 1, "the second call may have been cut");
    let (result, events) = decode(&codec(Wire::Anthropic), &asked("hello"), &[text.as_bytes()]);
    assert_eq!((result.unwrap().message.calls().count(), completed(&events).len()), (2, 2));
}

#[test]
fn call_that_was_cut_is_dropped() {
    for pieces in [&[][..], &["{\"path\": \"/et"]] {
        let text = stream(vec![call(0, &["{}"]), call(1, pieces)], &json!({"stop_reason": "max_tokens"}));
        let (result, events) = decode(&codec(Wire::Anthropic), &asked("hello"), &[text.as_bytes()]);
        let response = result.unwrap();
        assert_eq!((response.stop, response.message.calls().count()), (ModelStop::Length, 1));
        assert_eq!(completed(&events).len(), 1);
    }
    let body = json!({"type": "message", "stop_reason": "max_tokens", "usage": {},
        "content": [{"type": "text", "text": "x"}, {"type": "tool_use", "id": "t", "name": "Read", "input": {}}]});
    let response = decode_whole(&codec(Wire::Anthropic), &asked("hello"), &body).unwrap();
    assert_eq!(response.message.calls().count(), 0);
}

#[test]
fn malformed_input_is_an_invalid_call_that_can_be_answered() {
    let text = stream(vec![call(0, &["{\"path\": oops}"])], &json!({"stop_reason": "tool_use"}));
    let (result, _) = decode(&codec(Wire::Anthropic), &asked("hello"), &[text.as_bytes()]);
    let message = result.unwrap().message;
    let arguments = &message.calls().next().unwrap().arguments;
    assert_eq!(arguments, &CallArguments::Invalid("{\"path\": oops}".to_owned()));
    let body = encode(&codec(Wire::Anthropic), &answered(asked("hello"), message), &[]);
    assert!(body["messages"][1]["content"][0]["input"].is_object());
}

#[test]
fn all_results_are_in_one_message_before_anything_else() {
    let text = stream(vec![call(0, &["{}"]), call(1, &["{}"])], &json!({"stop_reason": "tool_use"}));
    let (result, _) = decode(&codec(Wire::Anthropic), &asked("hello"), &[text.as_bytes()]);
    let mut conversation = answered(asked("hello"), result.unwrap().message);
    conversation.say("and?");
    let body = encode(&codec(Wire::Anthropic), &conversation, &[tool("Read")]);
    let content = &body["messages"][2]["content"];
    let kinds: Vec<&Value> = content.as_array().unwrap().iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["tool_result", "tool_result", "text"]);
    assert_eq!(content[0]["tool_use_id"], "toolu_0");
    assert_eq!(content[0]["is_error"], false);
}

#[test]
fn cache_is_marked_behind_stable_instructions_and_at_the_end() {
    let mut conversation = asked("hello");
    conversation.system.push("Today is Monday.".to_owned());
    let body = encode(&codec(Wire::Anthropic), &conversation, &[tool("Read")]);
    let mark = json!({"type": "ephemeral"});
    assert_eq!(body["system"][0]["cache_control"], mark);
    assert!(body["system"][1].get("cache_control").is_none());
    assert_eq!(body["messages"][0]["content"][0]["cache_control"], mark);
    let plain = Conversation { system: Vec::new(), ..conversation };
    let body = encode(&codec(Wire::Anthropic), &plain, &[tool("Read")]);
    assert_eq!((body.get("system"), &body["tools"][0]["cache_control"]), (None, &mark));
}

#[test]
fn fields_that_the_version_removed_are_never_sent() {
    let mut options = TurnOptions::default();
    options.extra.insert("temperature".to_owned(), json!(1.0));
    options.extra.insert("service_tier".to_owned(), json!("auto"));
    let conversation = asked("hello");
    let request = TurnRequest { conversation: &conversation, tools: &[], options: &options };
    let mut codec = codec(Wire::Anthropic);
    let body = codec.encode(&request, "m");
    assert_eq!((body.get("temperature"), &body["service_tier"]), (None, &json!("auto")));
    codec.options.anthropic_version = "2023-06-01".to_owned();
    assert_eq!(codec.encode(&request, "m")["temperature"], 1.0);
}

#[test]
fn reasons_to_stop_are_told_apart() {
    for (end, stop) in [
        (json!({"stop_reason": "end_turn"}), ModelStop::End),
        (json!({"stop_reason": "pause_turn"}), ModelStop::Paused),
        (json!({"stop_reason": "model_context_window_exceeded"}), ModelStop::ContextFull),
        (
            json!({"stop_reason": "refusal", "stop_details": {"category": "cyber", "explanation": "No."}}),
            ModelStop::Refused { explanation: "No.".to_owned() },
        ),
        (json!({"stop_reason": "newly_made"}), ModelStop::Other { name: "newly_made".to_owned() }),
    ] {
        let (result, _) =
            decode(&codec(Wire::Anthropic), &asked("hello"), &[stream(Vec::new(), &end).as_bytes()]);
        assert_eq!(result.unwrap().stop, stop);
    }
}

#[test]
fn paused_turn_is_sent_back_as_it_is_with_its_container() {
    let body = json!({"type": "message", "stop_reason": "pause_turn", "container": {"id": "ctr", "expires_at": "t"},
        "content": [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": "x"}}], "usage": {}});
    let response = decode_whole(&codec(Wire::Anthropic), &asked("hello"), &body).unwrap();
    let next = encode(&codec(Wire::Anthropic), &answered(asked("hello"), response.message), &[]);
    assert_eq!(next["messages"][1]["content"], body["content"]);
    assert_eq!((next["messages"].as_array().unwrap().len(), &next["container"]), (2, &json!("ctr")));
}

#[test]
fn answer_that_was_cut_while_it_thought_does_not_end_with_thinking() {
    let body = json!({"type": "message", "stop_reason": "max_tokens", "usage": {},
        "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}]});
    let message = decode_whole(&codec(Wire::Anthropic), &asked("hello"), &body).unwrap().message;
    let mut conversation = answered(asked("hello"), message);
    conversation.say("go on");
    let next = encode(&codec(Wire::Anthropic), &conversation, &[]);
    assert_eq!(next["messages"].as_array().unwrap().len(), 1);
}

#[test]
fn error_event_and_missing_end_are_errors_and_unknown_events_are_not() {
    let begin = [
        json!({"type": "message_start", "message": {"id": "msg", "usage": {}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hel"}}),
        json!({"type": "brand_new_event"}),
    ];
    let (result, events) = decode(&codec(Wire::Anthropic), &asked("hello"), &[sse(&begin).as_bytes()]);
    assert_eq!((result.unwrap_err().kind, texts(&events).as_str()), (ModelErrorKind::Protocol, "Hel"));
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let stream = format!("{}{}", sse(&begin), sse(&[error]));
    let (result, _) = decode(&codec(Wire::Anthropic), &asked("hello"), &[stream.as_bytes()]);
    assert_eq!(result.unwrap_err().kind, ModelErrorKind::Overloaded);
}

#[test]
fn missed_cache_is_reported() {
    let body = json!({"type": "message", "stop_reason": "end_turn", "content": [{"type": "text", "text": "x"}],
        "usage": {}, "diagnostics": {"cache_miss_reason": {"type": "tools_changed", "cache_missed_input_tokens": 7}}});
    let start = json!({"type": "message_start", "message": body});
    let (_, events) = decode(&codec(Wire::Anthropic), &asked("hello"), &[sse(&[start]).as_bytes()]);
    assert!(events.contains(&ModelEvent::Notice {
        text: "The prompt cache was missed (tools_changed, 7 tokens).".to_owned()
    }));
}

#[test]
fn empty_texts_are_left_out_and_effort_has_its_place() {
    let mut conversation = asked("hello");
    let result = |text: &str| ToolResult {
        call_id: "x".to_owned(),
        name: "Read".to_owned(),
        content: vec![ContentPart::text(text)],
        is_error: false,
    };
    conversation.messages.push(ChatMessage::ToolResults { results: vec![result("")], content: Vec::new() });
    let options = TurnOptions { effort: Some(ReasoningEffort::Max), ..TurnOptions::default() };
    let request = TurnRequest { conversation: &conversation, tools: &[], options: &options };
    let body = codec(Wire::Anthropic).encode(&request, "m");
    assert_eq!(body["messages"][0]["content"][1]["content"], json!([]));
    assert_eq!(
        (&body["thinking"], &body["output_config"]),
        (&json!({"type": "adaptive"}), &json!({"effort": "max"}))
    );
}
