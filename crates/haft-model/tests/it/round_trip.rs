//! What a provider sent goes back unchanged, however it arrived, and never to another provider.

use haft_model::wire::Codec;
use haft_model::{AssistantMessage, AssistantPart, Conversation, ToolCall, TurnOptions, TurnRequest, Wire};
use haft_tool::Value;
use proptest::prelude::*;

use crate::answers::{Answer, answer, parts};
use crate::fixture::{answered, asked, codec, completed, decode, decode_whole, encode, tool};

/// The part of the request that repeats the answer.
fn sent_back(wire: Wire, body: &Value, answer: &Answer) -> Value {
    match wire {
        Wire::Anthropic => body["messages"][1]["content"].clone(),
        Wire::Gemini => body["contents"][1]["parts"].clone(),
        Wire::OpenaiResponses => {
            let count = answer.sent_back.as_array().unwrap().len();
            body["input"].as_array().unwrap()[1..=count].to_vec().into()
        }
        _ => body["messages"][2].clone(),
    }
}

fn cut(bytes: &[u8], mut cuts: Vec<prop::sample::Index>) -> Vec<Vec<u8>> {
    let mut at: Vec<usize> = cuts.drain(..).map(|cut| cut.index(bytes.len() + 1)).collect();
    at.sort_unstable();
    let mut pieces = Vec::new();
    let mut from = 0;
    for end in at.into_iter().chain([bytes.len()]) {
        pieces.push(bytes[from..end].to_vec());
        from = end;
    }
    pieces
}

fn through_log(conversation: &Conversation) -> Conversation {
    serde_json::from_str(&serde_json::to_string(conversation).unwrap()).unwrap()
}

/// Text and calls, which every provider may see.
fn common(message: &AssistantMessage) -> (String, Vec<(String, String)>) {
    let calls = message.calls().map(|call| (call.id.clone(), call.name.clone())).collect();
    (message.text(), calls)
}

fn wires() -> impl Strategy<Value = Wire> {
    prop::sample::select(Wire::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn answer_goes_back_unchanged_and_does_not_depend_on_how_it_arrived(
        wire in wires(),
        parts in parts(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..30),
        crlf in any::<bool>(),
    ) {
        let (codec, conversation) = (codec(wire), asked("hello"));
        let sent = answer(wire, &parts);
        let stream = if crlf { sent.stream.replace('\n', "\r\n") } else { sent.stream.clone() };
        let pieces = cut(stream.as_bytes(), cuts);
        let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        let (streamed, _) = decode(&codec, &conversation, &pieces);
        let streamed = streamed.unwrap();
        let (at_once, _) = decode(&codec, &conversation, &[stream.as_bytes()]);
        prop_assert_eq!(&streamed, &at_once.unwrap());
        let whole = decode_whole(&codec, &conversation, &sent.whole).unwrap();
        prop_assert_eq!(&streamed.message, &whole.message);
        prop_assert_eq!((&streamed.usage, &streamed.stop, &streamed.model), (&whole.usage, &whole.stop, &whole.model));
        let next = through_log(&answered(conversation, streamed.message));
        let body = encode(&codec, &next, &[tool("Read")]);
        prop_assert_eq!(sent_back(wire, &body, &sent), sent.sent_back.clone());
    }

    #[test]
    fn interrupted_answer_holds_only_what_is_complete(
        wire in wires(),
        to in wires(),
        parts in parts(),
        end in any::<prop::sample::Index>(),
    ) {
        let (codec, conversation) = (codec(wire), asked("hello"));
        let (options, tools) = (TurnOptions::default(), [tool("Read")]);
        let request = TurnRequest { conversation: &conversation, tools: &tools, options: &options };
        let stream = answer(wire, &parts).stream;
        let whole = decode(&codec, &conversation, &[stream.as_bytes()]).0.unwrap().message;
        let (mut decoder, mut events) = (codec.decoder(&request, "m"), Vec::new());
        decoder.push(&stream.as_bytes()[..end.index(stream.len() + 1)], &mut events).unwrap();
        let partial = decoder.partial().message;
        let calls: Vec<&ToolCall> = partial.calls().collect();
        let reported = completed(&events).len();
        prop_assert!(calls.len() <= reported, "{} calls, {} reported", calls.len(), reported);
        prop_assert_eq!(calls.clone(), whole.calls().take(calls.len()).collect::<Vec<_>>());
        prop_assert!(whole.text().starts_with(&partial.text()));
        let ids: Vec<String> = calls.iter().map(|call| call.id.clone()).collect();
        let mut next = answered(conversation.clone(), partial);
        next.say("go on");
        // Each call has its result, and no answer ends with reasoning alone.
        let body = encode(&crate::fixture::codec(to), &next, &tools);
        for id in ids {
            prop_assert_eq!(body.to_string().matches(&format!("\"{id}\"")).count(), 2, "{}", body);
        }
        if let Some(message) = body["messages"].get(1).filter(|_| to == Wire::Anthropic) {
            let last = message["content"].as_array().and_then(|blocks| blocks.last()).unwrap();
            prop_assert!(last["type"] != "thinking", "{}", body);
        }
    }

    #[test]
    fn another_provider_gets_text_and_calls_only(wire in wires(), to in wires(), parts in parts()) {
        let (codec, conversation) = (codec(wire), asked("hello"));
        let sent = answer(wire, &parts);
        let message = decode_whole(&codec, &conversation, &sent.whole).unwrap().message;
        let (text, calls) = common(&message);
        let next = answered(conversation, message);
        let other = Codec { provider: "other".to_owned(), ..crate::fixture::codec(to) };
        let body = encode(&other, &next, &[tool("Read")]).to_string();
        for part in &next.messages {
            let haft_model::ChatMessage::Assistant(answer) = part else { continue };
            for part in &answer.parts {
                if let AssistantPart::Opaque { raw } | AssistantPart::Reasoning { raw: Some(raw), .. } = part {
                    prop_assert!(!body.contains(&raw.to_string()), "{}", body);
                }
            }
        }
        for private in ["encrypted_content", "\"signature\"", "reasoning_details", "\"phase\"", "\"thinking\""] {
            prop_assert!(!body.contains(private), "{} in {}", private, body);
        }
        for (id, _) in &calls {
            prop_assert_eq!(body.matches(&format!("\"{id}\"")).count(), 2, "{} in {}", id, body);
        }
        let escaped = serde_json::to_string(&text).unwrap();
        if !text.is_empty() && parts.iter().filter(|part| matches!(part, crate::answers::Part::Text(_))).count() == 1 {
            prop_assert!(body.contains(escaped.trim_matches('"')), "{} in {}", escaped, body);
        }
    }

    #[test]
    fn second_request_begins_like_the_first(wire in wires(), parts in parts()) {
        let (codec, conversation) = (codec(wire), asked("hello"));
        let first = encode(&codec, &conversation, &[tool("Read"), tool("Write")]);
        let message = decode_whole(&codec, &conversation, &answer(wire, &parts).whole).unwrap().message;
        let second = encode(&codec, &answered(conversation, message), &[tool("Read"), tool("Write")]);
        // Marks of the cache move with the end of the conversation.
        let plain = |body: &Value| {
            let marks = r#","cache_control":{"type":"ephemeral"}"#;
            body.to_string().replace(marks, "")
        };
        let (first, second) = (plain(&first), plain(&second));
        let common = first.bytes().zip(second.bytes()).take_while(|(one, two)| one == two).count();
        let end_of_user = first.find("hello").unwrap() + "hello".len();
        prop_assert!(common >= end_of_user, "{}", &first[..common]);
    }
}
