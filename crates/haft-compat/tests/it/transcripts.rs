//! Transcripts of Claude Code and Codex: what is read, what is skipped, and what is written.

use haft_compat::transcripts::{
    ClaudeTranscriptHead, EntryBody, MessageRole, Transcript, TranscriptMessage, claude_project_name,
    read_claude_transcript, read_codex_transcript, write_claude_transcript,
};
use serde_json::{Value, json};

const SESSION: &str = "0193a1b2-c3d4-4e5f-8a9b-0c1d2e3f4a5b";

fn lines(lines: &[Value]) -> Vec<u8> {
    lines.iter().map(|line| format!("{line}\n")).collect::<String>().into_bytes()
}

/// A line of Claude Code's with its parent.
fn line(uuid: &str, parent: Option<&str>, kind: &str, message: &Value) -> Value {
    json!({
        "type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": SESSION, "cwd": "/home/me/tea", "isSidechain": false,
        "timestamp": "2026-11-18T09:30:05.120Z", "version": "2.1.325", "userType": "external", "gitBranch": "main",
        "message": message,
    })
}

fn user(uuid: &str, parent: Option<&str>, text: &str) -> Value {
    line(uuid, parent, "user", &json!({"role": "user", "content": text}))
}

fn assistant(uuid: &str, parent: &str, id: &str, block: &Value) -> Value {
    let message = json!({"role": "assistant", "id": id, "model": "claude-x", "content": [block]});
    line(uuid, Some(parent), "assistant", &message)
}

fn call(id: &str, command: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}})
}

fn result(uuid: &str, parent: &str, id: &str, text: &str) -> Value {
    let block =
        json!({"type": "tool_result", "tool_use_id": id, "content": [{"type": "text", "text": text}]});
    line(uuid, Some(parent), "user", &json!({"role": "user", "content": [block]}))
}

/// The parts of the conversation on one line each.
fn spoken(transcript: &Transcript) -> Vec<String> {
    let part = |message: &TranscriptMessage<'_>, body: &EntryBody| {
        let who = if message.role == MessageRole::User { "user" } else { "model" };
        match body {
            EntryBody::Call { id, name, arguments } => format!("{who}: {name} {id} {arguments}"),
            EntryBody::Result { call_id, text, is_error, .. } => {
                format!("{who}: {call_id} {is_error} {text}")
            }
            EntryBody::User { text, images } => format!("{who}: {text}{}", " [image]".repeat(images.len())),
            EntryBody::Assistant { text } | EntryBody::Notice { text } | EntryBody::Reasoning { text } => {
                format!("{who}: {text}")
            }
        }
    };
    let messages = transcript.messages();
    messages
        .iter()
        .flat_map(|message| message.parts.iter().map(|body| part(message, body)).collect::<Vec<_>>())
        .collect()
}

#[test]
fn a_conversation_of_claude_code_is_read_with_the_results_of_parallel_calls() {
    let transcript = read_claude_transcript(&lines(&[
        json!({"type": "file-history-snapshot", "messageId": "m"}),
        user("u1", None, "Make tea."),
        assistant("a1", "u1", "msg_1", &json!({"type": "thinking", "thinking": "Hm.", "signature": "s"})),
        assistant("a2", "a1", "msg_1", &call("t1", "boil")),
        assistant("a3", "a2", "msg_1", &call("t2", "pour")),
        result("r1", "a2", "t1", "hot"),
        result("r2", "a3", "t2", "full"),
        assistant("a4", "r2", "msg_2", &json!({"type": "text", "text": "Done."})),
        json!({"type": "custom-title", "customTitle": "Tea", "sessionId": SESSION}),
    ]));
    assert_eq!(
        spoken(&transcript),
        [
            "user: Make tea.",
            "model: Bash t1 {\"command\":\"boil\"}",
            "model: Bash t2 {\"command\":\"pour\"}",
            "user: t1 false hot",
            "user: t2 false full",
            "model: Done.",
        ]
    );
    assert_eq!((transcript.session.as_str(), transcript.name.as_deref()), (SESSION, Some("Tea")));
    assert_eq!(
        (transcript.workspace.as_deref(), transcript.model.as_deref()),
        (Some("/home/me/tea"), Some("claude-x"))
    );
    assert_eq!((transcript.started_at, transcript.entries[0].position), (Some(1_794_994_205_120), 2));
    assert_eq!((transcript.skipped_lines, transcript.invalid_lines), (1, 0));
    assert_eq!(transcript.tool_names().get("t2"), Some(&"Bash"));
}

#[test]
fn what_was_taken_back_or_said_to_a_subagent_is_read_but_not_part_of_the_conversation() {
    let mut aside = user("s1", None, "You are an explorer.");
    aside["isSidechain"] = json!(true);
    let transcript = read_claude_transcript(&lines(&[
        user("u1", None, "First."),
        assistant("a1", "u1", "msg_1", &json!({"type": "text", "text": "One."})),
        user("u2", Some("a1"), "Wrong."),
        assistant("a2", "u2", "msg_2", &json!({"type": "text", "text": "Two."})),
        aside,
        user("u3", Some("a1"), "Right."),
    ]));
    assert_eq!(spoken(&transcript), ["user: First.", "model: One.", "user: Right."]);
    assert_eq!(transcript.entries.len(), 6);
}

#[test]
fn words_of_the_program_are_not_those_of_the_user_and_unclear_calls_are_reported() {
    let mut meta = user("u1", None, "Caveat: the messages below were generated.");
    meta["isMeta"] = json!(true);
    let transcript = read_claude_transcript(&lines(&[
        meta,
        user("u2", Some("u1"), "<command-name>/clear</command-name>"),
        user("u3", Some("u2"), "Go."),
        assistant("a1", "u3", "msg_1", &call("t1", "true")),
        assistant("a2", "a1", "msg_2", &call("t1", "again")),
        user("u4", Some("a2"), "Stop."),
        result("r9", "u4", "unknown", "x"),
    ]));
    assert_eq!(transcript.first_words(), Some("Go."));
    let spoken = spoken(&transcript);
    assert_eq!((spoken.len(), spoken[5].as_str()), (6, "user: Stop."));
    assert!(spoken[4].starts_with("user: t1 true interrupted"), "{spoken:?}");
}

#[test]
fn a_rollout_of_codex_is_read_in_its_new_and_in_its_old_form() {
    let item = |payload: Value| json!({"timestamp": "2026-11-18T09:30:06.000Z", "type": "response_item", "payload": payload});
    let said = |role: &str, kind: &str, text: &str| json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]});
    let items = [
        said("user", "input_text", "<environment_context>\n</environment_context>"),
        said("user", "input_text", "Make tea."),
        json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "x"}),
        json!({"type": "function_call", "name": "shell", "arguments": "{\"command\":[\"boil\"]}", "call_id": "c1"}),
        json!({"type": "function_call_output", "call_id": "c1", "output": "{\"output\":\"dry\",\"metadata\":{\"exit_code\":1}}"}),
        json!({"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin Patch", "call_id": "c2"}),
        json!({"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "ok"}]}),
        said("assistant", "output_text", "Done."),
    ];
    let head = json!({"id": SESSION, "timestamp": "2026-11-18T09:30:05.120Z", "cwd": "/home/me/tea"});
    let new = [
        json!({"timestamp": "2026-11-18T09:30:05.120Z", "type": "session_meta", "payload": head}),
        json!({"timestamp": "2026-11-18T09:30:05.120Z", "type": "turn_context", "payload": {"model": "gpt-x", "cwd": "/home/me/tea"}}),
        json!({"timestamp": "2026-11-18T09:30:05.120Z", "type": "event_msg", "payload": {"type": "user_message", "message": "Make tea."}}),
    ];
    let new: Vec<Value> = new.into_iter().chain(items.iter().cloned().map(item)).collect();
    let old: Vec<Value> = [head].into_iter().chain(items).collect();
    let expected = [
        "user: <environment_context>\n</environment_context>",
        "user: Make tea.",
        "model: shell c1 {\"command\":[\"boil\"]}",
        "user: c1 true dry",
        "model: apply_patch c2 \"*** Begin Patch\"",
        "user: c2 false ok",
        "model: Done.",
    ];
    for (lines_of, skipped) in [(new, 1), (old, 0)] {
        let transcript = read_codex_transcript(&lines(&lines_of));
        assert_eq!(spoken(&transcript), expected);
        assert_eq!((transcript.session.as_str(), transcript.first_words()), (SESSION, Some("Make tea.")));
        assert_eq!(transcript.workspace.as_deref(), Some("/home/me/tea"));
        assert_eq!((transcript.skipped_lines, transcript.invalid_lines), (skipped, 0));
    }
}

#[test]
fn lines_that_cannot_be_read_are_counted_and_the_others_kept() {
    let good = user("u1", None, "Go.").to_string();
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let bytes = [
        good.as_bytes(),
        b"{\"type\": \"user\"",
        b"[1]",
        b"\xff\xfe",
        deep.as_bytes(),
        b"",
        b"{\"type\":\"user\"}",
    ]
    .join(&b'\n');
    let transcript = read_claude_transcript(&bytes);
    assert_eq!((spoken(&transcript), transcript.invalid_lines), (vec!["user: Go.".to_owned()], 5));
    assert_eq!(read_codex_transcript(&bytes).invalid_lines, 4);
}

#[test]
fn what_is_written_for_claude_code_is_read_as_the_same_conversation() {
    let image =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}});
    let both = json!({"role": "user", "content": [{"type": "text", "text": "Look."}, image]});
    let transcript = read_claude_transcript(&lines(&[
        line("u1", None, "user", &both),
        assistant("a1", "u1", "msg_1", &json!({"type": "text", "text": "I look."})),
        assistant("a2", "a1", "msg_1", &call("t1", "true")),
        result("r1", "a2", "t1", "fine"),
        assistant("a3", "r1", "msg_2", &json!({"type": "text", "text": "Done."})),
    ]));
    let head = ClaudeTranscriptHead { session: SESSION, cwd: "/home/me/tea" };
    let written = write_claude_transcript(&transcript, head);
    let again = read_claude_transcript(written.as_bytes());
    assert_eq!(spoken(&again), spoken(&transcript));
    assert_eq!((again.session.as_str(), again.invalid_lines), (SESSION, 0));
    let first: Value = serde_json::from_str(written.lines().next().unwrap()).unwrap();
    for field in [
        "type",
        "uuid",
        "parentUuid",
        "sessionId",
        "cwd",
        "timestamp",
        "version",
        "userType",
        "gitBranch",
        "isSidechain",
        "message",
    ] {
        assert!(first.get(field).is_some(), "{field}");
    }
}

#[test]
fn the_folder_of_a_project_is_its_path_with_dashes() {
    assert_eq!(claude_project_name("/home/me/tea.d/a_b").as_deref(), Some("-home-me-tea-d-a-b"));
    assert_eq!(claude_project_name(&"x".repeat(201)), None);
}
