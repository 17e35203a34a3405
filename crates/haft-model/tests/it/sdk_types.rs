//! Bodies of requests against the types of the vendors' own SDKs.
//!
//! `$HAFT_SDK_PYTHON` is a Python that has the SDKs; `cargo xtask peers` installs it and prints it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use haft_model::wire::{ChatVariant, Codec, OLD_ANTHROPIC_VERSION};
use haft_model::{
    AssistantMessage, AssistantPart, CallArguments, ChatMessage, ContentPart, Conversation, OutputSchema,
    ReasoningEffort, ToolChoice, ToolResult, TurnOptions, TurnRequest, Wire,
};
use haft_tool::{Definition, Value, json};

use crate::answers::{Part, answer};
use crate::fixture::{answered, asked, codec, decode_whole, tool};

const EFFORTS: [ReasoningEffort; 7] = [
    ReasoningEffort::None,
    ReasoningEffort::Minimal,
    ReasoningEffort::Low,
    ReasoningEffort::Medium,
    ReasoningEffort::High,
    ReasoningEffort::XHigh,
    ReasoningEffort::Max,
];

/// A server, and whose types its requests must have.
struct Server {
    name: &'static str,
    sdk: &'static str,
    codec: Codec,
}

fn servers() -> Vec<Server> {
    let server = |name, sdk, wire, change: fn(&mut Codec)| {
        let mut codec = codec(wire);
        change(&mut codec);
        Server { name, sdk, codec }
    };
    vec![
        server("Responses", "openai-responses", Wire::OpenaiResponses, |_| {}),
        server("Responses, strict", "openai-responses", Wire::OpenaiResponses, |codec| {
            codec.options.strict_tools = true;
        }),
        server("Chat", "openai-chat", Wire::OpenaiChat, |codec| codec.options.chat = ChatVariant::Openai),
        server("Chat, strict", "openai-chat", Wire::OpenaiChat, |codec| {
            (codec.options.chat, codec.options.strict_tools) = (ChatVariant::Openai, true);
        }),
        server("compatible", "compatible", Wire::OpenaiChat, |_| {}),
        server("OpenRouter", "openrouter", Wire::OpenaiChat, |codec| {
            codec.options.chat = ChatVariant::Openrouter;
        }),
        server("LiteLLM", "litellm", Wire::OpenaiChat, |codec| codec.options.chat = ChatVariant::Litellm),
        server("Messages", "anthropic", Wire::Anthropic, |_| {}),
        server("Messages, old", "anthropic", Wire::Anthropic, |codec| {
            OLD_ANTHROPIC_VERSION.clone_into(&mut codec.options.anthropic_version);
        }),
        server("generateContent", "gemini", Wire::Gemini, |_| {}),
        server("generateContent, OpenAPI", "gemini", Wire::Gemini, |codec| {
            codec.options.gemini_openapi = true;
        }),
        server("Ollama", "ollama", Wire::Ollama, |_| {}),
    ]
}

fn text() -> Part {
    Part::Text("Hi.".to_owned())
}

fn reasoning() -> Part {
    Part::Reasoning("Let me think.".to_owned(), "c2ln".to_owned())
}

fn call(path: &str) -> Part {
    Part::Call(json!({"path": path}).as_object().unwrap().clone())
}

fn image() -> ContentPart {
    ContentPart::Image { media_type: "image/png".to_owned(), data: "iVBORw0KGgo=".to_owned() }
}

/// An answer as this server sends it.
fn reply(server: &Server, conversation: &Conversation, parts: &[Part]) -> AssistantMessage {
    let mut whole = answer(server.codec.wire, parts).whole;
    if server.codec.wire == Wire::OpenaiChat {
        let message = whole["choices"][0]["message"].as_object_mut().unwrap();
        let variant = server.codec.options.chat;
        if variant != ChatVariant::Compatible {
            for call in message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
                call.as_object_mut().unwrap().remove("extra_content");
            }
        }
        if variant != ChatVariant::Openrouter {
            message.remove("reasoning_details");
        }
        if variant == ChatVariant::Openai {
            message.extend([("refusal".to_owned(), Value::Null), ("annotations".to_owned(), json!([]))]);
        }
        if variant == ChatVariant::Litellm && parts.iter().any(|part| matches!(part, Part::Reasoning(..))) {
            let block = json!({"type": "thinking", "thinking": "Let me think.", "signature": "c2ln"});
            message.insert("reasoning_content".to_owned(), json!("Let me think."));
            message.insert("thinking_blocks".to_owned(), json!([block]));
        }
    }
    decode_whole(&server.codec, conversation, &whole).unwrap().message
}

/// A conversation with these answers of the server, with a result for each call.
fn dialogue(server: &Server, answers: &[&[Part]]) -> Conversation {
    let mut conversation = asked("hello");
    for parts in answers {
        let message = reply(server, &conversation, parts);
        let is_last_word = message.calls().next().is_none();
        conversation = answered(conversation, message);
        if is_last_word {
            conversation.say("Go on.");
        }
    }
    conversation
}

/// The conversation after a change of the last results and of what the user said with them.
fn with_results(
    mut conversation: Conversation,
    change: impl Fn(&mut Vec<ToolResult>, &mut Vec<ContentPart>),
) -> Conversation {
    if let Some(ChatMessage::ToolResults { results, content }) = conversation.messages.last_mut() {
        change(results, content);
    }
    conversation
}

fn conversations(server: &Server) -> Vec<(String, Conversation)> {
    let (one, two) = ([call("a")], [call("a"), call("b")]);
    let plain = || asked("hello");
    let mut list: Vec<(String, Conversation)> = Vec::new();
    let mut add = |name: &str, conversation| list.push((name.to_owned(), conversation));
    add("question", plain());
    add("no system prompt", Conversation { system: Vec::new(), ..plain() });
    let sections = ["Be brief.", " ", "It is Monday."].map(str::to_owned).to_vec();
    add("system prompt in sections", Conversation { system: sections, ..plain() });
    let mut pictured = plain();
    let content = vec![ContentPart::text("What is it?"), image(), image()];
    pictured.messages.push(ChatMessage::User { content });
    add("images of the user", pictured);
    add("text", dialogue(server, &[&[text()]]));
    add("one call", dialogue(server, &[&one]));
    add("text before a call", dialogue(server, &[&[text(), call("a")]]));
    add("parallel calls", dialogue(server, &[&two]));
    add("sequential calls", dialogue(server, &[&one, &two, &one, &[text()], &one]));
    let failed = |results: &mut Vec<ToolResult>, _: &mut Vec<ContentPart>| results[0].is_error = true;
    add("failed call", with_results(dialogue(server, &[&two]), failed));
    let pictured = |results: &mut Vec<ToolResult>, _: &mut Vec<ContentPart>| results[1].content.push(image());
    add("image of a tool", with_results(dialogue(server, &[&two]), pictured));
    let both = |results: &mut Vec<ToolResult>, content: &mut Vec<ContentPart>| {
        results[0].content = vec![image()];
        results[0].is_error = true;
        content.extend([ContentPart::text("and?"), image()]);
    };
    add("image of a failed call, and the user's words", with_results(dialogue(server, &[&two]), both));
    add("empty result", with_results(dialogue(server, &[&one]), |results, _| results[0].content.clear()));
    add("reasoning before text", dialogue(server, &[&[reasoning(), text()]]));
    add(
        "reasoning before calls",
        dialogue(server, &[&[reasoning(), text(), call("a"), call("b")], &[reasoning(), call("c")]]),
    );
    add(
        "what only the provider understands",
        dialogue(server, &[&[Part::Opaque("eHh4".to_owned()), text()]]),
    );
    if let Some((field, value)) = message_field(server) {
        let mut conversation = dialogue(server, &[&[text()]]);
        if let ChatMessage::Assistant(message) = &mut conversation.messages[1] {
            message.raw.insert(field.to_owned(), value);
        }
        add("field of the whole answer", conversation);
    }
    let mut invalid = dialogue(server, &[&one]);
    if let ChatMessage::Assistant(message) = &mut invalid.messages[1] {
        for part in &mut message.parts {
            if let AssistantPart::ToolCall(call) = part {
                (call.arguments, call.raw) = (CallArguments::Invalid("{\"path\":".to_owned()), None);
            }
        }
    }
    add("invalid arguments", invalid);
    for other in servers() {
        let other = Server { codec: Codec { provider: "other".to_owned(), ..other.codec }, ..other };
        let turns: [&[Part]; 2] = [&[reasoning(), text(), call("a"), call("b")], &[reasoning(), text()]];
        add(&format!("answers of {}", other.name), dialogue(&other, &turns));
    }
    list
}

/// A field of a whole answer that goes back to this server.
fn message_field(server: &Server) -> Option<(&'static str, Value)> {
    match (server.codec.wire, server.codec.options.chat) {
        (Wire::Anthropic, _) => {
            Some(("container", json!({"id": "container_1", "expires_at": "2026-01-01T00:00:00Z"})))
        }
        (Wire::OpenaiChat, ChatVariant::Openai | ChatVariant::Openrouter) => Some(("refusal", json!("No."))),
        _ => None,
    }
}

/// Tools with a name that no provider accepts and a schema of everything that tools use.
fn tools() -> Vec<Definition> {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "A path.", "minLength": 1},
            "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
            "lines": {"type": "array", "items": {"type": "integer", "minimum": 0}},
            "edit": {"type": "object", "properties": {"all": {"type": "boolean"}}, "required": ["all"]},
            "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "kind": {"const": "x"},
        },
        "required": ["path"],
        "additionalProperties": false,
    });
    vec![tool("Read"), Definition::new("mcp.server/edit", "Edits.", schema, &[])]
}

fn options() -> Vec<(String, TurnOptions)> {
    let default = TurnOptions::default;
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
    let mut list = vec![
        ("at most 100 tokens".to_owned(), TurnOptions { max_tokens: Some(100), ..default() }),
        ("cache key".to_owned(), TurnOptions { cache_key: Some("k".to_owned()), ..default() }),
        (
            "form of the answer".to_owned(),
            TurnOptions {
                output_schema: Some(OutputSchema { name: "out.put".to_owned(), schema }),
                ..default()
            },
        ),
    ];
    for effort in EFFORTS {
        let name = format!("effort {}", effort.name());
        list.push((name, TurnOptions { effort: Some(effort), ..default() }));
    }
    let named = ToolChoice::Tool("mcp.server/edit".to_owned());
    for choice in [ToolChoice::Auto, ToolChoice::None, ToolChoice::Required, named] {
        for parallel_calls in [None, Some(true), Some(false)] {
            let name = format!("choice {choice:?}, parallel {parallel_calls:?}");
            list.push((name, TurnOptions { tool_choice: choice.clone(), parallel_calls, ..default() }));
        }
    }
    list
}

/// A line for the script.
fn line(server: &Server, name: &str, body: &Value) -> Value {
    json!({"name": format!("{}: {name}", server.name), "sdk": server.sdk, "body": body})
}

/// The bodies of all scenarios.
fn bodies() -> Vec<Value> {
    let (tools, mut lines) = (tools(), Vec::new());
    for server in servers() {
        for (name, conversation) in conversations(&server) {
            for (tools, stream) in [(&tools[..], true), (&tools[..], false), (&[], true), (&[], false)] {
                let options = TurnOptions { stream, ..TurnOptions::default() };
                let request = TurnRequest { conversation: &conversation, tools, options: &options };
                let name = format!("{name}, {} tools, stream {stream}", tools.len());
                lines.push(line(&server, &name, &server.codec.encode(&request, "m")));
            }
        }
        let conversation = dialogue(&server, &[&[reasoning(), call("a")]]);
        for (name, options) in options() {
            let request = TurnRequest { conversation: &conversation, tools: &tools, options: &options };
            lines.push(line(&server, &name, &server.codec.encode(&request, "m")));
        }
    }
    lines
}

/// What the script says of these bodies.
fn check(lines: &[Value]) -> Value {
    let python = std::env::var("HAFT_SDK_PYTHON").map(PathBuf::from);
    let missing = |_| "HAFT_SDK_PYTHON is not set; `cargo xtask peers` installs it and prints it";
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/sdk_types.py");
    let mut child = Command::new(python.map_err(missing).unwrap())
        // Nothing of the user's environment takes the place of the SDKs.
        .arg("-I")
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let writer = thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "sdk_types.py failed; its output is above");
    writer.join().unwrap().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_body_has_the_types_of_the_vendors_sdk() {
    let lines = bodies();
    let answer = check(&lines);
    let refused = answer["refused"].as_array().unwrap();
    let list: Vec<String> = refused
        .iter()
        .map(|entry| format!("{}\n{}", entry[0].as_str().unwrap(), entry[1].as_str().unwrap()))
        .collect();
    assert!(list.is_empty(), "{} of {} bodies are refused:\n{}", list.len(), lines.len(), list.join("\n\n"));
    assert_eq!(answer["unused_keys"], json!({}), "sdk_types.py allows keys that no body has");
}

/// Where a body of each SDK has objects whose keys are known.
fn objects(sdk: &str) -> &'static [&'static str] {
    match sdk {
        "openai-responses" => &["", "/tools/0", "/input/1", "/input/2", "/input/3", "/reasoning"],
        "anthropic" => &[
            "",
            "/tools/0",
            "/system/0",
            "/system/0/cache_control",
            "/messages/1",
            "/messages/1/content/0",
            "/messages/1/content/1",
            "/messages/2/content/0",
            "/thinking",
            "/output_config",
        ],
        "gemini" => &[
            "",
            "/systemInstruction",
            "/tools/0/functionDeclarations/0",
            "/contents/1",
            "/contents/1/parts/0",
            "/contents/1/parts/1/functionCall",
            "/contents/2/parts/0/functionResponse",
            "/generationConfig",
            "/generationConfig/thinkingConfig",
        ],
        _ => &[
            "",
            "/tools/0",
            "/tools/0/function",
            "/messages/0",
            "/messages/1",
            "/messages/2",
            "/messages/2/tool_calls/0",
            "/messages/2/tool_calls/0/function",
            "/messages/3",
        ],
    }
}

#[test]
fn keys_and_values_that_no_sdk_knows_are_refused() {
    let tools = tools();
    let options = TurnOptions { effort: Some(ReasoningEffort::Low), ..TurnOptions::default() };
    let mut lines = Vec::new();
    for server in servers() {
        let conversation = dialogue(&server, &[&[reasoning(), call("a")]]);
        let request = TurnRequest { conversation: &conversation, tools: &tools, options: &options };
        let body = server.codec.encode(&request, "m");
        for pointer in objects(server.sdk) {
            let mut changed = body.clone();
            let object = changed.pointer_mut(pointer).and_then(Value::as_object_mut).unwrap();
            object.insert("unknown_key".to_owned(), json!("x"));
            lines.push(line(&server, &format!("unknown key in {pointer:?}"), &changed));
        }
        for key in ["messages", "input", "contents", "tools"] {
            if body.get(key).is_some() {
                let mut changed = body.clone();
                changed[key] = json!({"no": "list"});
                lines.push(line(&server, &format!("{key} is no list"), &changed));
            }
        }
    }
    let answer = check(&lines);
    let refused: Vec<&Value> = answer["refused"].as_array().unwrap().iter().map(|entry| &entry[0]).collect();
    let accepted: Vec<&Value> =
        lines.iter().map(|line| &line["name"]).filter(|name| !refused.contains(name)).collect();
    assert!(accepted.is_empty(), "{accepted:#?}");
}
