//! Mutated responses: decoded or refused, never a panic, and never a call that is not whole.

use haft_model::wire::WireError;
use haft_model::{AssistantPart, CallArguments, Conversation, Wire};
use haft_tool::{Value, json};

use crate::answers::{Part, answer};
use crate::fixture::{asked, codec, decode, encode, tool};

fn parts() -> Vec<Part> {
    let arguments = json!({"path": "é", "n": [1, null]}).as_object().unwrap().clone();
    vec![
        Part::Reasoning("hm".to_owned(), "c2ln".to_owned()),
        Part::Text("hé😀".to_owned()),
        Part::Call(arguments.clone()),
        Part::Opaque("x".to_owned()),
        Part::Call(arguments),
    ]
}

fn check(wire: Wire) {
    let (codec, conversation) = (codec(wire), asked("hello"));
    let sent = answer(wire, &parts());
    let error = r#"data: {"type":"error","error":{"type":"overloaded_error","message":"busy","code":529}}"#;
    let whole = sent.whole.to_string();
    let seeds = [sent.stream.as_bytes(), error.as_bytes(), b"data: [DONE]\n\n", whole.as_bytes()];
    haft_fuzz::check(&seeds, |bytes| {
        let (streamed, events) = decode(&codec, &conversation, &[bytes]);
        let pieces: Vec<&[u8]> = bytes.chunks(7).collect();
        let (in_pieces, _) = decode(&codec, &conversation, &pieces);
        assert_eq!(streamed.is_ok(), in_pieces.is_ok());
        assert!(events.len() <= bytes.len() + 8);
        if let Ok(response) = &streamed {
            check_message(&conversation, response.message.clone());
        }
        if let Ok(body) = serde_json::from_slice::<Value>(bytes) {
            let result: Result<_, WireError> = crate::fixture::decode_whole(&codec, &conversation, &body);
            if let Ok(response) = result {
                check_message(&conversation, response.message);
            }
        }
    });
}

/// Ids are unique, and the message can be sent to every provider.
fn check_message(conversation: &Conversation, message: haft_model::AssistantMessage) {
    let mut ids: Vec<&str> = message.calls().map(|call| call.id.as_str()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
    for part in &message.parts {
        if let AssistantPart::ToolCall(call) = part
            && let CallArguments::Invalid(text) = &call.arguments
        {
            assert!(serde_json::from_str::<serde_json::Map<String, Value>>(text).is_err());
        }
    }
    let next = crate::fixture::answered(conversation.clone(), message);
    for wire in Wire::ALL {
        encode(&codec(*wire), &next, &[tool("Read")]);
    }
}

#[test]
fn mutated_chat_completions() {
    check(Wire::OpenaiChat);
}

#[test]
fn mutated_responses() {
    check(Wire::OpenaiResponses);
}

#[test]
fn mutated_anthropic_messages() {
    check(Wire::Anthropic);
}

#[test]
fn mutated_gemini_chunks() {
    check(Wire::Gemini);
}

#[test]
fn mutated_ollama_lines() {
    check(Wire::Ollama);
}
