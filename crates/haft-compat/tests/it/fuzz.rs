//! Mutated input of every parser: it is read or refused, within bounds.

use haft_compat::hooks::{HookEnd, HookEvent, HookExit, HookMatcher, HookOutcome, MAX_HOOK_TEXT_CHARS};
use haft_compat::settings::{ClaudeSettings, Located};
use haft_compat::stream::{ControlRequest, HostLine, MAX_LINE_BYTES, PermissionReply, fit_line};

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
