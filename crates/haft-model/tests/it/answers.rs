//! Random answers with everything that a provider may want back, as each provider sends them.

use haft_model::Wire;
use haft_tool::{Value, json};
use proptest::prelude::*;
use serde_json::Map;

use crate::fixture::sse;

/// A part of an answer.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    Text(String),
    Reasoning(String, String),
    Call(Map<String, Value>),
    Opaque(String),
}

/// An answer as it is sent: as events, as a whole, and the parts that must come back.
pub(crate) struct Answer {
    pub(crate) stream: String,
    pub(crate) whole: Value,
    pub(crate) sent_back: Value,
}

fn text() -> impl Strategy<Value = String> {
    "[a-z][a-zé😀\n\r\t\"\\\\:{} ]{0,12}[a-zß]"
}

fn arguments() -> impl Strategy<Value = Map<String, Value>> {
    let value = prop_oneof![
        text().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        Just(json!({"deep": [1, null, {"é": true}]})),
    ];
    prop::collection::vec(("[a-zé]{1,4}", value), 0..3).prop_map(|pairs| pairs.into_iter().collect())
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        text().prop_map(Part::Text),
        ("[a-zé ]{0,10}", "[A-Za-z0-9+/=]{1,20}")
            .prop_map(|(text, signature)| Part::Reasoning(text, signature)),
        arguments().prop_map(Part::Call),
        "[a-z0-9]{1,8}".prop_map(Part::Opaque),
    ]
}

/// Parts of an answer; the last is text or a call.
pub(crate) fn parts() -> impl Strategy<Value = Vec<Part>> {
    let last = prop_oneof![text().prop_map(Part::Text), arguments().prop_map(Part::Call)];
    (prop::collection::vec(part(), 0..5), last).prop_map(|(mut parts, last)| {
        // A provider does not send two texts in a row.
        parts.push(last);
        parts.dedup_by(|one, two| matches!((one, two), (Part::Text(_), Part::Text(_))));
        parts
    })
}

pub(crate) fn answer(wire: Wire, parts: &[Part]) -> Answer {
    match wire {
        Wire::Anthropic => anthropic(parts),
        Wire::Gemini => gemini(parts),
        Wire::OpenaiResponses => responses(parts),
        Wire::Ollama => ollama(parts),
        _ => chat(parts),
    }
}

/// A text in two halves.
fn halves(text: &str) -> [&str; 2] {
    let middle = text.char_indices().nth(text.chars().count() / 2).map_or(text.len(), |(at, _)| at);
    [&text[..middle], &text[middle..]]
}

fn anthropic(parts: &[Part]) -> Answer {
    let usage = json!({"input_tokens": 5, "output_tokens": 1, "cache_read_input_tokens": 7});
    let mut events = vec![
        json!({"type": "message_start", "message": {"id": "msg_1", "model": "m-1", "role": "assistant",
            "content": [], "usage": usage}}),
        json!({"type": "ping"}),
    ];
    let mut blocks = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let (start, deltas, block) = match part {
            Part::Text(text) => (
                json!({"type": "text", "text": ""}),
                halves(text).map(|half| json!({"type": "text_delta", "text": half})).to_vec(),
                json!({"type": "text", "text": text}),
            ),
            Part::Reasoning(text, signature) => (
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                vec![
                    json!({"type": "thinking_delta", "thinking": text}),
                    json!({"type": "signature_delta", "signature": signature}),
                ],
                json!({"type": "thinking", "thinking": text, "signature": signature}),
            ),
            Part::Call(arguments) => {
                let id = format!("toolu_{index}");
                let input = Value::Object(arguments.clone()).to_string();
                (
                    json!({"type": "tool_use", "id": id, "name": "Read", "input": {}, "caller": {"type": "direct"}}),
                    halves(&input)
                        .map(|half| json!({"type": "input_json_delta", "partial_json": half}))
                        .to_vec(),
                    json!({"type": "tool_use", "id": id, "name": "Read", "input": arguments,
                        "caller": {"type": "direct"}}),
                )
            }
            Part::Opaque(data) => {
                let block = json!({"type": "redacted_thinking", "data": data});
                (block.clone(), Vec::new(), block)
            }
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        for delta in deltas {
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
        blocks.push(block);
    }
    events.push(
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}),
    );
    events.push(json!({"type": "message_stop"}));
    let stream: String = events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
        .collect();
    let whole = json!({"id": "msg_1", "type": "message", "model": "m-1", "role": "assistant", "content": blocks,
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 5, "output_tokens": 9, "cache_read_input_tokens": 7}});
    Answer { stream, whole, sent_back: Value::Array(blocks) }
}

fn gemini(parts: &[Part]) -> Answer {
    let mut all = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        all.push(match part {
            Part::Text(text) => json!({"text": text}),
            Part::Reasoning(text, signature) => {
                json!({"text": text, "thought": true, "thoughtSignature": signature})
            }
            Part::Call(arguments) => json!({
                "functionCall": {"id": format!("c{index}"), "name": "Read", "args": arguments},
                "thoughtSignature": "c2ln",
            }),
            Part::Opaque(code) => json!({"executableCode": {"language": "PYTHON", "code": code}}),
        });
    }
    let usage = json!({"promptTokenCount": 12, "candidatesTokenCount": 3, "thoughtsTokenCount": 4,
        "cachedContentTokenCount": 2});
    let chunk = |parts: Value, reason: Option<&str>| {
        let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
        if let Some(reason) = reason {
            candidate["finishReason"] = json!(reason);
        }
        json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m-1", "responseId": "r1"})
    };
    let mut events = Vec::new();
    for (part, sent) in parts.iter().zip(&all) {
        match part {
            Part::Text(text) => events.extend(halves(text).map(|half| chunk(json!([{"text": half}]), None))),
            _ => events.push(chunk(json!([sent]), None)),
        }
    }
    events.push(chunk(json!([]), Some("STOP")));
    let whole = chunk(Value::Array(all.clone()), Some("STOP"));
    Answer { stream: sse(&events), whole, sent_back: Value::Array(all) }
}

fn responses(parts: &[Part]) -> Answer {
    let mut events = vec![
        json!({"type": "response.created", "response": {"id": "resp_1", "model": "m-1", "status": "in_progress"}}),
    ];
    let mut items = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let item = match part {
            Part::Text(text) => json!({"type": "message", "id": format!("msg_{index}"), "role": "assistant",
                "status": "completed", "phase": "commentary",
                "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]}),
            Part::Reasoning(text, signature) => json!({"type": "reasoning", "id": format!("rs_{index}"),
                "summary": [{"type": "summary_text", "text": text}], "encrypted_content": signature}),
            Part::Call(arguments) => json!({"type": "function_call", "id": format!("fc_{index}"),
                "call_id": format!("call_{index}"), "name": "Read", "status": "completed",
                "arguments": Value::Object(arguments.clone()).to_string(), "caller": {"type": "direct"}}),
            Part::Opaque(data) => json!({"type": "compaction", "id": "cmp", "encrypted_content": data}),
        };
        let mut added = item.clone();
        if matches!(part, Part::Call(_)) {
            (added["arguments"], added["status"]) = (json!(""), json!("in_progress"));
        }
        events.push(json!({"type": "response.output_item.added", "output_index": index, "item": added}));
        match part {
            Part::Text(text) => events.extend(halves(text).map(|half| {
                json!({"type": "response.output_text.delta", "output_index": index, "content_index": 0, "delta": half})
            })),
            Part::Reasoning(text, _) => events.push(json!({
                "type": "response.reasoning_summary_text.delta", "output_index": index, "delta": text,
            })),
            _ => events.push(json!({"type": "response.something.new", "output_index": index})),
        }
        events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
        items.push(item);
    }
    let response = json!({"id": "resp_1", "model": "m-1", "status": "completed", "output": items, "error": null,
        "usage": {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 6,
            "output_tokens_details": {"reasoning_tokens": 2}}});
    events.push(json!({"type": "response.completed", "response": response}));
    Answer { stream: sse(&events), whole: response.clone(), sent_back: response["output"].clone() }
}

fn chat(parts: &[Part]) -> Answer {
    let (mut content, mut details, mut calls) = (String::new(), Vec::new(), Vec::new());
    let chunk =
        |delta: Value| json!({"id": "gen-1", "model": "m-1", "choices": [{"index": 0, "delta": delta}]});
    let mut events = vec![chunk(json!({"role": "assistant", "content": ""}))];
    for part in parts {
        match part {
            Part::Text(text) => {
                content.push_str(text);
                events.extend(halves(text).map(|half| chunk(json!({"content": half}))));
            }
            Part::Reasoning(text, signature) => {
                let index = details.len();
                let entry = |text: &str| {
                    json!({"type": "reasoning.text", "text": text, "index": index,
                    "format": "anthropic-claude-v1"})
                };
                for half in halves(text) {
                    events.push(chunk(json!({"reasoning_details": [entry(half)]})));
                }
                let end = json!({"type": "reasoning.text", "signature": signature, "index": index});
                events.push(chunk(json!({"reasoning_details": [end]})));
                let mut entry = entry(text);
                entry["signature"] = json!(signature);
                details.push(entry);
            }
            Part::Call(arguments) => {
                let (index, input) = (calls.len(), Value::Object(arguments.clone()).to_string());
                let id = format!("call_{index}");
                events.push(chunk(json!({"tool_calls": [{"index": index, "id": id, "type": "function",
                    "extra_content": {"google": {"thought_signature": "s"}},
                    "function": {"name": "Read", "arguments": ""}}]})));
                for half in halves(&input) {
                    events.push(chunk(
                        json!({"tool_calls": [{"index": index, "function": {"arguments": half}}]}),
                    ));
                }
                calls.push(
                    json!({"id": id, "type": "function", "function": {"name": "Read", "arguments": input},
                    "extra_content": {"google": {"thought_signature": "s"}}}),
                );
            }
            Part::Opaque(data) => {
                let entry = json!({"type": "reasoning.encrypted", "data": data, "index": details.len()});
                events.push(chunk(json!({"reasoning_details": [entry]})));
                details.push(entry);
            }
        }
    }
    let usage =
        json!({"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}});
    events.push(json!({"id": "gen-1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}));
    events.push(json!({"id": "gen-1", "choices": [], "usage": usage}));
    let stream = format!(": OPENROUTER PROCESSING\n\n{}data: [DONE]\n\n", sse(&events));
    let mut message = json!({"role": "assistant",
        "content": if content.is_empty() { Value::Null } else { json!(content) }});
    if !details.is_empty() {
        message["reasoning_details"] = Value::Array(details);
    }
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    let whole = json!({"id": "gen-1", "model": "m-1", "usage": usage,
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}]});
    Answer { stream, whole, sent_back: message }
}

fn ollama(parts: &[Part]) -> Answer {
    let (mut content, mut thinking, mut calls) = (String::new(), String::new(), Vec::new());
    let line = |message: Value| json!({"model": "m-1", "created_at": "t", "message": message, "done": false});
    let mut lines = Vec::new();
    for part in parts {
        match part {
            Part::Text(text) => {
                content.push_str(text);
                lines.extend(halves(text).map(|half| line(json!({"role": "assistant", "content": half}))));
            }
            Part::Reasoning(text, _) | Part::Opaque(text) => {
                thinking.push_str(text);
                lines.push(line(json!({"role": "assistant", "content": "", "thinking": text})));
            }
            Part::Call(arguments) => {
                let call = json!({"id": format!("call_{}", calls.len()),
                    "function": {"index": calls.len(), "name": "Read", "arguments": arguments}});
                lines.push(line(json!({"role": "assistant", "content": "", "tool_calls": [call]})));
                calls.push(call);
            }
        }
    }
    lines.push(json!({"model": "m-1", "message": {"role": "assistant", "content": ""}, "done": true,
        "done_reason": "stop", "prompt_eval_count": 4, "eval_count": 2}));
    let mut message = json!({"role": "assistant", "content": content});
    if !thinking.is_empty() {
        message["thinking"] = json!(thinking);
    }
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    let stream = lines.iter().map(|line| format!("{line}\n")).collect();
    let whole = json!({"model": "m-1", "message": message, "done": true, "done_reason": "stop",
        "prompt_eval_count": 4, "eval_count": 2});
    Answer { stream, whole, sent_back: message }
}
