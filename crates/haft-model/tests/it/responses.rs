//! Responses.

use haft_model::{
    AssistantPart, ChatMessage, ContentPart, ModelErrorKind, ModelStop, ReasoningEffort, TurnOptions,
    TurnRequest, Wire,
};
use haft_tool::{Value, json};

use crate::fixture::{answered, asked, codec, completed, decode, decode_whole, encode, sse, texts, tool};

fn call(index: u64, status: &str, arguments: &str) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": {
        "type": "function_call", "id": format!("fc_{index}"), "call_id": format!("call_{index}"),
        "name": "Read", "arguments": arguments, "status": status, "namespace": "files",
    }})
}

fn reasoning(index: u64) -> Value {
    json!({"type": "response.output_item.done", "output_index": index,
        "item": {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "xyz"}})
}

fn end(kind: &str, response: &Value) -> Value {
    json!({"type": format!("response.{kind}"), "response": response})
}

#[test]
fn call_counts_when_its_item_is_done_and_completed() {
    let stream = sse(&[
        json!({"type": "response.output_item.added", "output_index": 0, "item": {
            "type": "function_call", "call_id": "call_0", "name": "Read", "arguments": "", "status": "in_progress"}}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{}"}),
    ]);
    let (result, events) = decode(&codec(Wire::OpenaiResponses), &asked("hello"), &[stream.as_bytes()]);
    assert!(result.is_err() && completed(&events).is_empty());
    let stream = format!("{stream}{}", sse(&[call(0, "completed", "{}")]));
    let (_, events) = decode(&codec(Wire::OpenaiResponses), &asked("hello"), &[stream.as_bytes()]);
    assert_eq!(completed(&events), ["Read"]);
}

#[test]
fn incomplete_response_has_no_calls_and_no_reasoning_that_leads_to_one() {
    let stream = sse(&[
        json!({"type": "response.output_item.done", "output_index": 0, "item": {"type": "message", "id": "m",
            "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "Hi"}]}}),
        reasoning(1),
        call(2, "completed", "{}"),
        call(3, "incomplete", "{\"pa"),
        end(
            "incomplete",
            &json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}),
        ),
    ]);
    let (result, events) = decode(&codec(Wire::OpenaiResponses), &asked("hello"), &[stream.as_bytes()]);
    let response = result.unwrap();
    assert_eq!(response.stop, ModelStop::Length);
    assert_eq!(response.message.calls().count(), 0);
    assert_eq!((response.message.parts.len(), completed(&events).len()), (1, 1));
    assert_eq!(texts(&events), "Hi", "text without deltas is shown at the end of its item");
}

#[test]
fn failures_end_the_stream_with_their_kind() {
    for (event, kind) in [
        (
            end(
                "failed",
                &json!({"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "slow"}}),
            ),
            ModelErrorKind::RateLimit,
        ),
        (
            end("failed", &json!({"status": "failed", "error": {"code": "server_error", "message": "oops"}})),
            ModelErrorKind::Overloaded,
        ),
        (
            json!({"type": "error", "code": "context_length_exceeded", "message": "long"}),
            ModelErrorKind::ContextTooLong,
        ),
        (
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": "bad"}}),
            ModelErrorKind::BadRequest,
        ),
    ] {
        let (result, _) = decode(&codec(Wire::OpenaiResponses), &asked("hello"), &[sse(&[event]).as_bytes()]);
        assert_eq!(result.unwrap_err().kind, kind);
    }
    let failed = json!({"status": "failed", "output": [], "error": {"code": "server_error", "message": "x"}});
    let whole = decode_whole(&codec(Wire::OpenaiResponses), &asked("hello"), &failed);
    assert_eq!(whole.unwrap_err().kind, ModelErrorKind::Overloaded);
}

#[test]
fn refusal_is_a_stop() {
    let body = json!({"status": "completed", "output": [{"type": "message", "id": "m", "role": "assistant",
        "content": [{"type": "refusal", "refusal": "No."}]}]});
    let response = decode_whole(&codec(Wire::OpenaiResponses), &asked("hello"), &body).unwrap();
    assert_eq!(response.stop, ModelStop::Refused { explanation: "No.".to_owned() });
}

#[test]
fn result_repeats_the_namespace_of_its_call_and_may_hold_images() {
    let stream = sse(&[reasoning(0), call(1, "completed", "{}"), end("completed", &json!({"output": []}))]);
    let (result, _) = decode(&codec(Wire::OpenaiResponses), &asked("hello"), &[stream.as_bytes()]);
    let message = result.unwrap().message;
    assert!(matches!(message.parts[0], AssistantPart::Reasoning { .. }));
    let mut conversation = answered(asked("hello"), message);
    let Some(ChatMessage::ToolResults { results, .. }) = conversation.messages.last_mut() else {
        panic!("no results")
    };
    let image = ContentPart::Image { media_type: "image/png".to_owned(), data: "AAAA".to_owned() };
    results[0].content.push(image);
    let body = encode(&codec(Wire::OpenaiResponses), &conversation, &[tool("Read")]);
    let output = &body["input"][3];
    assert_eq!((&output["type"], &output["call_id"]), (&json!("function_call_output"), &json!("call_1")));
    assert_eq!(output["namespace"], "files");
    assert_eq!(output["output"][1]["type"], "input_image");
    assert_eq!(body["input"][1]["encrypted_content"], "xyz");
}

#[test]
fn request_keeps_no_state_on_the_server() {
    let options = TurnOptions {
        effort: Some(ReasoningEffort::XHigh),
        cache_key: Some("k".to_owned()),
        max_tokens: Some(9),
        ..TurnOptions::default()
    };
    let (conversation, tools) = (asked("hello"), [tool("Read")]);
    let request = TurnRequest { conversation: &conversation, tools: &tools, options: &options };
    let body = codec(Wire::OpenaiResponses).encode(&request, "m");
    assert_eq!(body["store"], false);
    assert_eq!(body["instructions"], "Be brief.");
    assert_eq!(body["reasoning"], json!({"effort": "xhigh", "summary": "auto"}));
    assert_eq!((&body["prompt_cache_key"], &body["max_output_tokens"]), (&json!("k"), &json!(9)));
    assert_eq!(body["tools"][0]["strict"], false, "its default would be true");
    assert_eq!(body["input"], json!([{"type": "message", "role": "user", "content": "hello"}]));
}
