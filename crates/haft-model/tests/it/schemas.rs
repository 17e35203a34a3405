//! Definitions of tools as each provider gets them.

use haft_model::schema::{ollama_schema, openapi_schema, strict_schema, wire_name};
use haft_model::wire::{WireOptions, definitions, result};
use haft_model::{TurnOptions, TurnRequest, Wire};
use haft_tool::{Definition, ErrorKind, Output, json};
use proptest::prelude::*;

use crate::fixture::{asked, codec, decode, sse, tool};

#[test]
fn names_that_fit_are_kept() {
    for name in ["Read", "mcp__git__log", "a-b_9"] {
        assert_eq!(wire_name(name), name);
    }
}

proptest! {
    #[test]
    fn every_name_becomes_one_that_fits(name in ".{0,100}") {
        let sent = wire_name(&name);
        prop_assert!((1..=64).contains(&sent.len()), "{}", sent);
        prop_assert!(sent.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)));
        prop_assert_eq!(&wire_name(&name), &sent);
        prop_assert_eq!(wire_name(&sent), sent.clone());
    }
}

#[test]
fn changed_name_is_mapped_back() {
    let name = "über.tool";
    let (conversation, options) = (asked("hello"), TurnOptions::default());
    let tools = [tool(name)];
    let codec = codec(Wire::OpenaiChat);
    let request = TurnRequest { conversation: &conversation, tools: &tools, options: &options };
    let sent = codec.encode(&request, "m")["tools"][0]["function"]["name"].as_str().unwrap().to_owned();
    assert_ne!(sent, name);
    let stream = sse(&[json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "a",
        "function": {"name": sent, "arguments": "{}"}}]}, "finish_reason": "tool_calls"}]})]);
    let (mut decoder, mut events) = (codec.decoder(&request, "m"), Vec::new());
    decoder.push(stream.as_bytes(), &mut events).unwrap();
    let message = decoder.finish(&mut events).unwrap().message;
    assert_eq!(message.calls().next().unwrap().name, name);
    // A name that was never sent is passed on, so that the loop can say which tools there are.
    let other = stream.replace(&sent, "Unknown");
    let (result, _) = decode(&codec, &conversation, &[other.as_bytes()]);
    assert_eq!(result.unwrap().message.calls().next().unwrap().name, "Unknown");
}

#[test]
fn strict_mode_is_used_only_where_everything_is_required() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object",
        "properties": {"b": {"type": "string"}}, "required": ["b"]}}}, "required": ["a"]});
    let strict = strict_schema(&schema).unwrap();
    assert_eq!(strict["additionalProperties"], false);
    assert_eq!(strict["properties"]["a"]["items"]["additionalProperties"], false);
    for refused in [
        json!({"type": "object", "properties": {"a": {"type": "string"}}}),
        json!({"type": "object", "properties": {}, "additionalProperties": {"type": "string"}}),
        json!({"type": "object", "properties": {"a": {"type": "string", "oneOf": []}}, "required": ["a"]}),
    ] {
        assert_eq!(strict_schema(&refused), None);
    }
    let options = WireOptions { strict_tools: true, ..WireOptions::default() };
    let optional = Definition::new("T", "d", json!({"type": "object", "properties": {"a": {}}}), &[]);
    let sent = definitions(Wire::OpenaiChat, &[tool("Read"), optional], &options);
    assert_eq!((&sent[0]["function"]["strict"], sent[1]["function"].get("strict")), (&json!(true), None));
}

#[test]
fn schemas_keep_what_each_server_understands() {
    let schema = json!({"$schema": "x", "type": "object", "additionalProperties": false, "properties": {
        "kind": {"const": "file"},
        "count": {"type": ["integer", "null"], "exclusiveMinimum": 1, "format": "int32"},
        "either": {"oneOf": [{"type": "string", "pattern": "^a"}, {"type": ["integer", "boolean"]}]},
    }, "required": ["kind"]});
    assert_eq!(
        openapi_schema(&schema),
        json!({"type": "object", "properties": {
            "kind": {"enum": ["file"]},
            "count": {"type": "integer", "minimum": 1, "format": "int32", "nullable": true},
            "either": {"anyOf": [{"type": "string", "pattern": "^a"},
                {"anyOf": [{"type": "integer"}, {"type": "boolean"}]}]},
        }, "required": ["kind"]})
    );
    assert_eq!(
        ollama_schema(&schema),
        json!({"type": "object", "properties": {
            "kind": {"enum": ["file"]},
            "count": {"type": ["integer", "null"]},
            "either": {"anyOf": [{"type": "string"}, {"type": ["integer", "boolean"]}]},
        }, "required": ["kind"]})
    );
}

#[test]
fn failure_is_a_flag_where_the_format_has_one_and_text_elsewhere() {
    let failed = Output::text("no such file").failed(ErrorKind::FileNotFound);
    let sent = |wire| result(wire, "id", "Read", &failed);
    assert_eq!(sent(Wire::Anthropic)["is_error"], true);
    assert_eq!(sent(Wire::Anthropic)["content"][0]["text"], "no such file");
    assert_eq!(sent(Wire::Gemini)["functionResponse"]["response"], json!({"error": "no such file"}));
    assert_eq!(sent(Wire::OpenaiChat)["content"], "Error: no such file");
    assert_eq!(sent(Wire::OpenaiResponses)["output"], "Error: no such file");
    assert_eq!(sent(Wire::Ollama)["content"], "Error: no such file");
}
