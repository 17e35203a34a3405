//! Ollama's `/api/chat`.

use haft_model::{CallArguments, ModelErrorKind, ModelStop, ReasoningEffort, TurnOptions, TurnRequest, Wire};
use haft_tool::{Value, json};

use crate::fixture::{answered, asked, codec, decode, encode, texts, tool};

fn lines(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn done(reason: &str) -> Value {
    json!({"model": "m", "message": {"role": "assistant", "content": ""}, "done": true, "done_reason": reason})
}

#[test]
fn old_servers_send_no_ids_and_get_none_back() {
    let call = json!({"function": {"name": "Read", "arguments": {"path": "a"}}});
    let stream = lines(&[
        json!({"model": "m", "message": {"role": "assistant", "content": "", "tool_calls": [call, call]}}),
        done("stop"),
    ]);
    let (result, _) = decode(&codec(Wire::Ollama), &asked("hello"), &[stream.as_bytes()]);
    let body = encode(&codec(Wire::Ollama), &answered(asked("hello"), result.unwrap().message), &[]);
    assert_eq!(body["messages"][2]["tool_calls"], json!([call, call]));
    assert_eq!(body["messages"][3], json!({"role": "tool", "tool_name": "Read", "content": "done"}));
}

#[test]
fn ids_of_new_servers_go_back_with_the_results() {
    let call =
        json!({"id": "call_abcd1234", "function": {"index": 0, "name": "Read", "arguments": "{\"path\":1}"}});
    let stream = lines(&[
        json!({"model": "m", "message": {"role": "assistant", "content": "", "thinking": "hm", "tool_calls": [call]}}),
        done("stop"),
    ]);
    let (result, _) = decode(&codec(Wire::Ollama), &asked("hello"), &[stream.as_bytes()]);
    let message = result.unwrap().message;
    let arguments = &message.calls().next().unwrap().arguments;
    assert_eq!(arguments, &CallArguments::Object(json!({"path": 1}).as_object().unwrap().clone()));
    let body = encode(&codec(Wire::Ollama), &answered(asked("hello"), message), &[tool("Read")]);
    assert_eq!(body["messages"][2]["thinking"], "hm");
    assert_eq!(body["messages"][3]["tool_call_id"], "call_abcd1234");
}

#[test]
fn error_line_and_missing_end_are_errors() {
    let begin = json!({"model": "m", "message": {"role": "assistant", "content": "Hel"}, "done": false});
    let (result, events) =
        decode(&codec(Wire::Ollama), &asked("hello"), &[lines(std::slice::from_ref(&begin)).as_bytes()]);
    assert_eq!((result.unwrap_err().kind, texts(&events).as_str()), (ModelErrorKind::Protocol, "Hel"));
    let stream = lines(&[begin, json!({"error": "model runner has unexpectedly stopped"})]);
    let (result, _) = decode(&codec(Wire::Ollama), &asked("hello"), &[stream.as_bytes()]);
    let error = result.unwrap_err();
    assert_eq!(error.message, "model runner has unexpectedly stopped");
    assert_eq!(error.kind, ModelErrorKind::Overloaded);
}

#[test]
fn options_have_ollamas_names() {
    let options = TurnOptions {
        max_tokens: Some(7),
        effort: Some(ReasoningEffort::None),
        stream: false,
        ..TurnOptions::default()
    };
    let (conversation, tools) = (asked("hello"), [tool("Read")]);
    let request = TurnRequest { conversation: &conversation, tools: &tools, options: &options };
    let body = codec(Wire::Ollama).encode(&request, "m");
    assert_eq!((&body["options"]["num_predict"], &body["think"]), (&json!(7), &json!(false)));
    assert_eq!(body["stream"], false, "its default would be true");
}

#[test]
fn length_is_a_stop() {
    let (result, _) = decode(&codec(Wire::Ollama), &asked("hello"), &[lines(&[done("length")]).as_bytes()]);
    assert_eq!(result.unwrap().stop, ModelStop::Length);
}
