//! generateContent.

use haft_model::{
    ChatMessage, ContentPart, ModelErrorKind, ModelStop, ReasoningEffort, ToolChoice, TurnOptions,
    TurnRequest, Wire,
};
use haft_tool::{Value, json};

use crate::fixture::{answered, asked, codec, decode, decode_whole, encode, sse, tool};

fn reply(parts: &Value, reason: &str) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": reason}]})
}

#[test]
fn calls_without_ids_get_some_inside_and_none_outside() {
    let parts = json!([
        {"functionCall": {"name": "Read", "args": {"path": "a"}}, "thoughtSignature": "c2ln"},
        {"functionCall": {"name": "Read", "args": {"path": "b"}}},
    ]);
    let response = decode_whole(&codec(Wire::Gemini), &asked("hello"), &reply(&parts, "STOP")).unwrap();
    assert_eq!(response.stop, ModelStop::End);
    let ids: Vec<&str> = response.message.calls().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["call_1", "call_2"]);
    let mut conversation = answered(asked("hello"), response.message);
    let Some(ChatMessage::ToolResults { results, .. }) = conversation.messages.last_mut() else {
        panic!("no results")
    };
    results[1].is_error = true;
    let image = ContentPart::Image { media_type: "image/png".to_owned(), data: "AAAA".to_owned() };
    results[0].content.push(image);
    let body = encode(&codec(Wire::Gemini), &conversation, &[tool("Read")]);
    assert_eq!(body["contents"][1]["parts"], parts);
    assert_eq!(
        body["contents"][2],
        json!({"role": "user", "parts": [
            {"functionResponse": {"name": "Read", "response": {"output": "done"},
                "parts": [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]}},
            {"functionResponse": {"name": "Read", "response": {"error": "done"}}},
        ]})
    );
}

#[test]
fn signature_stays_on_its_part() {
    let chunk = |parts: Value| json!({"candidates": [{"content": {"role": "model", "parts": parts}}]});
    let stream = sse(&[
        chunk(json!([{"text": "Hel"}])),
        chunk(json!([{"text": "lo"}])),
        chunk(json!([{"text": "", "thoughtSignature": "c2ln"}])),
        reply(&json!([{"text": "!"}]), "STOP"),
    ]);
    let (result, _) = decode(&codec(Wire::Gemini), &asked("hello"), &[stream.as_bytes()]);
    let body = encode(&codec(Wire::Gemini), &answered(asked("hello"), result.unwrap().message), &[]);
    assert_eq!(
        body["contents"][1]["parts"],
        json!([{"text": "Hello"}, {"text": "", "thoughtSignature": "c2ln"}, {"text": "!"}])
    );
}

#[test]
fn calls_of_another_provider_have_the_documented_signature() {
    let body = json!({"type": "message", "stop_reason": "tool_use", "usage": {}, "content": [
        {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}},
        {"type": "tool_use", "id": "toolu_2", "name": "Read", "input": {}},
    ]});
    let message = decode_whole(&codec(Wire::Anthropic), &asked("hello"), &body).unwrap().message;
    let next = encode(&codec(Wire::Gemini), &answered(asked("hello"), message), &[]);
    let parts = &next["contents"][1]["parts"];
    assert_eq!(parts[0]["thoughtSignature"], "skip_thought_signature_validator");
    assert!(parts[1].get("thoughtSignature").is_none());
    assert_eq!(next["contents"][2]["parts"][1]["functionResponse"]["id"], "toolu_2");
}

#[test]
fn reasons_to_stop_are_told_apart() {
    for (reason, stop) in [
        ("MAX_TOKENS", ModelStop::Length),
        ("SAFETY", ModelStop::Refused { explanation: "SAFETY".to_owned() }),
        (
            "MALFORMED_FUNCTION_CALL",
            ModelStop::InvalidCall { explanation: "MALFORMED_FUNCTION_CALL".to_owned() },
        ),
        ("BRAND_NEW", ModelStop::Other { name: "BRAND_NEW".to_owned() }),
    ] {
        let body = json!({"candidates": [{"finishReason": reason}]});
        let response = decode_whole(&codec(Wire::Gemini), &asked("hello"), &body).unwrap();
        assert_eq!(response.stop, stop);
    }
    let blocked = json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}});
    let error = decode_whole(&codec(Wire::Gemini), &asked("hello"), &blocked).unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Refused);
}

#[test]
fn list_of_chunks_is_a_response_and_a_stream_without_a_reason_is_not() {
    let chunk = json!({"candidates": [{"content": {"parts": [{"text": "Hel"}]}}]});
    let list = json!([chunk, reply(&json!([{"text": "lo"}]), "STOP")]);
    let response = decode_whole(&codec(Wire::Gemini), &asked("hello"), &list).unwrap();
    assert_eq!(response.message.text(), "Hello");
    let (result, _) = decode(&codec(Wire::Gemini), &asked("hello"), &[sse(&[chunk]).as_bytes()]);
    assert_eq!(result.unwrap_err().kind, ModelErrorKind::Protocol);
}

#[test]
fn options_are_in_their_places() {
    let options = TurnOptions {
        max_tokens: Some(5),
        effort: Some(ReasoningEffort::Low),
        tool_choice: ToolChoice::Required,
        ..TurnOptions::default()
    };
    let (conversation, tools) = (asked("hello"), [tool("Read")]);
    let request = TurnRequest { conversation: &conversation, tools: &tools, options: &options };
    let mut codec = codec(Wire::Gemini);
    let body = codec.encode(&request, "m");
    assert_eq!(body["generationConfig"]["maxOutputTokens"], 5);
    assert_eq!(body["generationConfig"]["thinkingConfig"]["thinkingLevel"], "LOW");
    assert_eq!(body["toolConfig"]["functionCallingConfig"]["mode"], "ANY");
    assert_eq!(body["systemInstruction"]["parts"][0]["text"], "Be brief.");
    let declaration = &body["tools"][0]["functionDeclarations"][0];
    assert!(declaration["parametersJsonSchema"].is_object() && declaration.get("parameters").is_none());
    codec.options.gemini_openapi = true;
    let body = codec.encode(&request, "m");
    assert!(body["tools"][0]["functionDeclarations"][0]["parameters"].is_object());
}
