//! Mutated input of every parser: it is read or refused, within bounds.

use haft_compat::hooks::{HookEnd, HookEvent, HookExit, HookMatcher, HookOutcome, MAX_HOOK_TEXT_CHARS};
use haft_compat::settings::{ClaudeSettings, Located};
use haft_compat::stream::{ControlRequest, HostLine, MAX_LINE_BYTES, PermissionReply, fit_line};
use haft_compat::transcripts::{
    ClaudeTranscriptHead, EntryBody, MessageRole, Transcript, read_claude_transcript, read_codex_transcript,
    write_claude_transcript,
};

/// Whether a place is in the text.
fn assert_in<T>(text: &[u8], place: &Located<T>) {
    let lines = text.split(|byte| *byte == b'\n').count();
    assert!((1..=lines).contains(&place.line) && place.column >= 1, "{}:{}", place.line, place.column);
}

#[test]
fn mutated_settings_are_read_or_refused() {
    let seeds: [&[u8]; 4] = [
        br#"{"permissions": {"allow": ["Bash(git log:*)"], "deny": [{"rule": "Read", "match": ["a"]}], "defaultMode": "plan"}}"#,
        b"{\n // c\n \"sandbox\": {\"network\": {\"deniedDomains\": [\"a\",],}, \"credentials\": {\"files\": [{\"path\": \"/a\", \"mode\": \"mask\"}]}}}",
        br#"{"hooks": {"PreToolUse": [{"matcher": "^B.*", "hooks": [{"type": "command", "command": "x", "timeout": 1e3}]}]}}"#,
        br#"{"env": {"A": "\u00e9"}, "allowedMcpServers": [{"serverCommand": ["a"]}], "skillOverrides": {"a": "off"}, "bashOutputMaxChars": 5}"#,
    ];
    haft_fuzz::check(&seeds, |bytes| match ClaudeSettings::parse(bytes) {
        Ok(settings) => {
            for rule in settings.permissions.deny.iter().chain(&settings.permissions.allow) {
                assert_in(bytes, rule);
            }
            for hooks in &settings.hooks.events {
                assert_in(bytes, &hooks.event);
            }
        }
        Err(error) => {
            assert!(error.line >= 1 && error.column >= 1);
            let holds = bytes.windows(4).any(|part| part == b"deny");
            assert!(error.may_hold_deny_rules || !holds);
        }
    });
}

#[test]
fn mutated_hook_output_decides_within_bounds_and_never_by_accident() {
    let seeds: [&[u8]; 4] = [
        br#"{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "updatedInput": {}}}"#,
        br#"{"continue": false, "stopReason": "s", "decision": "block", "reason": "r", "systemMessage": "m"}"#,
        br#"{"hookSpecificOutput": {"decision": {"behavior": "allow", "updatedPermissions": [{"type": "setMode", "mode": "plan", "destination": "session"}]}}}"#,
        b"text",
    ];
    haft_fuzz::check(&seeds, |stdout| {
        for name in HookEvent::NAMES {
            let event = HookEvent::from_name(name);
            let exit = HookExit { end: HookEnd::Code(0), stdout, stderr: stdout };
            let outcome = HookOutcome::read(&event, &exit, None);
            assert!(outcome.failures.is_empty() || outcome.denies() == (event == HookEvent::PreToolUse));
            for text in
                outcome.additional_context.iter().chain(&outcome.texts).chain(&outcome.system_messages)
            {
                assert!(text.chars().count() <= MAX_HOOK_TEXT_CHARS + 100);
            }
            let failed =
                HookOutcome::read(&HookEvent::PreToolUse, &HookExit { end: HookEnd::Code(3), ..exit }, None);
            assert!(failed.denies());
        }
    });
}

#[test]
fn mutated_matchers_are_read() {
    let seeds: [&[u8]; 4] = [b"Edit|Write, Read", br"^(mcp__\w+__[a-z]+|Bash)$", b"(?!x)a{2,9}*", b"*"];
    haft_fuzz::check(&seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        for event in [HookEvent::PreToolUse, HookEvent::StopFailure] {
            let matcher = HookMatcher::new(&text, &event);
            let matched = matcher.matches(&["mcp__files__read"]);
            assert!(matched || matcher.unreadable().is_none(), "{text}");
        }
    });
}

/// The conversation can be sent to a model: roles alternate, and each call has exactly one result in the message after it.
fn assert_can_be_sent(transcript: &Transcript) {
    let messages = transcript.messages();
    let ids = |at: usize, calls: bool| -> Vec<String> {
        let parts = messages.get(at).map(|message| message.parts.as_slice()).unwrap_or_default();
        let id = |part: &EntryBody| match part {
            EntryBody::Call { id, .. } if calls => Some(id.clone()),
            EntryBody::Result { call_id, .. } if !calls => Some(call_id.clone()),
            _ => None,
        };
        let mut ids: Vec<String> = parts.iter().filter_map(|part| id(part)).collect();
        ids.sort_unstable();
        ids
    };
    for (at, message) in messages.iter().enumerate() {
        let expected = if at % 2 == 0 { MessageRole::User } else { MessageRole::Assistant };
        assert_eq!(message.role, expected);
        assert!(!message.parts.is_empty());
        if message.role == MessageRole::Assistant {
            assert_eq!(ids(at, true), ids(at + 1, false));
        }
    }
}

#[test]
fn mutated_transcripts_are_read_and_can_be_sent_and_written() {
    let claude = br#"{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","cwd":"/w","timestamp":"2026-11-18T09:30:05.120Z","message":{"role":"user","content":[{"type":"text","text":"Go."},{"type":"image","source":{"media_type":"image/png","data":"aGk="}}]}}
{"type":"assistant","uuid":"a1","parentUuid":"u1","isSidechain":false,"message":{"id":"m1","model":"x","content":[{"type":"thinking","thinking":"t"},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"true"}}]}}
{"type":"user","uuid":"r1","parentUuid":"a1","message":{"content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":"no"}]}}
{"type":"assistant","uuid":"a2","parentUuid":"r1","message":{"id":"m2","content":"Done."}}
{"type":"summary","summary":"Tea","leafUuid":"a2"}
"#;
    let codex = br#"{"timestamp":"2026-11-18T09:30:05Z","type":"session_meta","payload":{"id":"s","cwd":"/w","timestamp":"2026-11-18T09:30:05+01:00"}}
{"type":"turn_context","payload":{"model":"m"}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Go."},{"type":"input_image","image_url":"data:image/png;base64,aGk="}]}}
{"type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{"command":["ls"]}","call_id":"c1"}}
{"type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"{"output":"x","metadata":{"exit_code":1}}"}}
{"type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","input":"x","call_id":"c2"}}
{"type":"compacted","payload":{"message":"short"}}
"#;
    haft_fuzz::check(&[claude, codex], |bytes| {
        for transcript in [read_claude_transcript(bytes), read_codex_transcript(bytes)] {
            assert_can_be_sent(&transcript);
            let head = ClaudeTranscriptHead { session: "0193a1b2-c3d4-4e5f-8a9b-0c1d2e3f4a5b", cwd: "/w" };
            let again = read_claude_transcript(write_claude_transcript(&transcript, head).as_bytes());
            assert_eq!(again.invalid_lines + again.skipped_lines, 0);
            assert_can_be_sent(&again);
            let count = |transcript: &Transcript| transcript.messages().len();
            assert!(count(&again) <= count(&transcript));
        }
    });
}

#[test]
fn mutated_lines_of_a_host_are_read_or_refused_and_never_allow_by_accident() {
    let seeds: [&[u8]; 4] = [
        br#"{"type":"control_request","request_id":"r","request":{"subtype":"initialize","hooks":{"PreToolUse":[{"matcher":"B","hookCallbackIds":["h"],"timeout":1.5,"onFailure":"block"}]},"systemPrompt":[""],"agents":{"a":{"description":"d","prompt":"p"}}}}"#,
        br#"{"type":"control_response","response":{"subtype":"success","request_id":"r","response":{"behavior":"allow","updatedInput":{"a":1},"updatedPermissions":[{"type":"setMode","mode":"plan","destination":"session"}]}}}"#,
        br#"{"type":"user","uuid":"u","message":{"role":"user","content":[{"type":"text","text":"x"}]}}"#,
        br#"{"type":"control_request","request_id":"r","request":{"subtype":"rewind_files","user_message_id":"u","dry_run":true}}"#,
    ];
    haft_fuzz::check(&seeds, |line| match HostLine::read(line) {
        Ok(HostLine::Request { request, .. }) => drop(ControlRequest::read(&request)),
        Ok(HostLine::Reply(reply)) => {
            if let Ok(answer) = &reply.result {
                let is_allowed = matches!(PermissionReply::read(answer), PermissionReply::Allow { .. });
                assert!(!is_allowed || answer["behavior"] == "allow");
                assert!(fit_line(answer).len() <= MAX_LINE_BYTES);
            }
        }
        Ok(_) => {}
        Err(why) => assert!(!why.is_empty()),
    });
}
