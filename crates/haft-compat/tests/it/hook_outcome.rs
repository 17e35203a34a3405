//! What the exit code and the output of a hook mean.

use haft_compat::hooks::{
    HookBehavior, HookEnd, HookEvent, HookExit, HookOutcome, HookPermissionAnswer, MAX_HOOK_OUTPUT_BYTES,
    MAX_HOOK_TEXT_CHARS, OnFailure, PermissionUpdate,
};
use serde_json::json;

fn read(event: &HookEvent, end: HookEnd, stdout: &str, stderr: &str) -> HookOutcome {
    let exit = HookExit { end, stdout: stdout.as_bytes(), stderr: stderr.as_bytes() };
    HookOutcome::read(event, &exit, None)
}

fn printed(event: &HookEvent, stdout: &str) -> HookOutcome {
    read(event, HookEnd::Code(0), stdout, "")
}

fn behavior(outcome: &HookOutcome) -> Option<HookBehavior> {
    outcome.decision.as_ref().map(|decision| decision.behavior)
}

#[test]
fn success_without_output_decides_nothing() {
    assert_eq!(printed(&HookEvent::PreToolUse, " \n"), HookOutcome::default());
}

#[test]
fn each_decision_is_read_with_its_reason_input_and_context() {
    for (word, expected) in [
        ("allow", HookBehavior::Allow),
        ("ask", HookBehavior::Ask),
        ("defer", HookBehavior::Defer),
        ("deny", HookBehavior::Deny),
    ] {
        let outcome = printed(
            &HookEvent::PreToolUse,
            &json!({"systemMessage": "m", "suppressOutput": true, "hookSpecificOutput": {
                "hookEventName": "PreToolUse", "permissionDecision": word, "permissionDecisionReason": "r",
                "updatedInput": {"command": "true"}, "additionalContext": "c"}})
            .to_string(),
        );
        assert_eq!(behavior(&outcome), Some(expected));
        assert_eq!(outcome.decision.as_ref().unwrap().reason.as_deref(), Some("r"));
        assert_eq!(outcome.updated_input.unwrap()["command"], "true");
        assert_eq!(outcome.additional_context, ["c"]);
        assert_eq!(outcome.system_messages, ["m"]);
        assert!(outcome.suppress_output && outcome.failures.is_empty());
    }
}

#[test]
fn the_older_form_of_decisions_is_read() {
    let outcome = printed(&HookEvent::PreToolUse, r#"{"decision": "approve"}"#);
    assert_eq!(behavior(&outcome), Some(HookBehavior::Allow));
    let outcome = printed(&HookEvent::UserPromptSubmit, r#"{"decision": "block", "reason": "r"}"#);
    assert!(outcome.denies() && outcome.decision.unwrap().reason.as_deref() == Some("r"));
    let both = r#"{"decision": "block", "hookSpecificOutput": {"permissionDecision": "allow"}}"#;
    assert!(printed(&HookEvent::PreToolUse, both).denies(), "the stricter one holds");
    let outcome = printed(&HookEvent::SessionStart, r#"{"decision": "block"}"#);
    assert_eq!(outcome.decision, None, "a session cannot be kept from starting");
}

#[test]
fn exit_code_2_blocks_with_stderr_as_the_reason() {
    for event in [HookEvent::PreToolUse, HookEvent::UserPromptSubmit, HookEvent::Stop, HookEvent::PostToolUse]
    {
        let outcome = read(&event, HookEnd::Code(2), r#"{"decision": "approve"}"#, " no \n");
        assert!(outcome.denies() && outcome.failures.is_empty(), "{event:?}");
        assert_eq!(outcome.decision.unwrap().reason.as_deref(), Some("no"));
    }
    let outcome = read(&HookEvent::PreToolUse, HookEnd::Code(2), "", "");
    assert!(outcome.decision.unwrap().reason.is_some_and(|reason| !reason.is_empty()));
    let outcome = read(&HookEvent::Notification, HookEnd::Code(2), "", "no");
    assert!(!outcome.denies() && outcome.failures.len() == 1, "nothing is there to block");
}

#[test]
fn any_failure_of_a_guard_before_a_call_blocks_it() {
    let ends = [
        HookEnd::Code(1),
        HookEnd::Code(127),
        HookEnd::Code(-1),
        HookEnd::Signal(9),
        HookEnd::TimedOut,
        HookEnd::NotStarted,
    ];
    for end in ends {
        let outcome = read(&HookEvent::PreToolUse, end, "", "detail");
        assert!(outcome.denies(), "{end:?}");
        assert!(outcome.failures[0].ends_with(": detail"), "{}", outcome.failures[0]);
        assert!(!read(&HookEvent::PostToolUse, end, "", "").denies(), "{end:?}");
    }
    for stdout in [
        "{",
        "{\"decision\": \"maybe\"}",
        "{\"hookSpecificOutput\": 5}",
        "{\"hookSpecificOutput\": {\"permissionDecision\": \"Deny\"}}",
        "{\"hookSpecificOutput\": {\"hookEventName\": \"Stop\", \"permissionDecision\": \"allow\"}}",
        "{\"hookSpecificOutput\": {\"permissionDecision\": \"allow\", \"updatedInput\": []}}",
        "{} trailing",
        "{\"continue\": true, \"continue\": false}",
    ] {
        let outcome = printed(&HookEvent::PreToolUse, stdout);
        assert!(outcome.denies() && outcome.failures.len() == 1, "{stdout}");
        assert!(!printed(&HookEvent::PostToolUse, stdout).denies(), "{stdout}");
    }
}

#[test]
fn on_failure_chooses() {
    let exit = HookExit { end: HookEnd::TimedOut, stdout: b"", stderr: b"" };
    let denies = |event, on_failure| HookOutcome::read(&event, &exit, Some(on_failure)).denies();
    assert!(!denies(HookEvent::PreToolUse, OnFailure::Continue));
    assert!(denies(HookEvent::UserPromptSubmit, OnFailure::Block));
    assert!(denies(HookEvent::PermissionRequest, OnFailure::Block));
    assert!(!denies(HookEvent::Stop, OnFailure::Block), "the agent would run for ever");
    assert!(!denies(HookEvent::SessionEnd, OnFailure::Block));
}

#[test]
fn text_is_context_where_claude_code_takes_it_as_such() {
    assert_eq!(printed(&HookEvent::UserPromptSubmit, "today\n").additional_context, ["today"]);
    assert_eq!(printed(&HookEvent::SessionStart, "[1]").additional_context, ["[1]"]);
    let outcome = printed(&HookEvent::PreToolUse, "checked");
    assert_eq!((outcome.texts.len(), outcome.additional_context.len()), (1, 0));
    assert_eq!(outcome.decision, None);
}

#[test]
fn a_permission_request_is_answered() {
    let outcome = printed(
        &HookEvent::PermissionRequest,
        r#"{"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow",
            "updatedInput": {"a": 1}, "updatedPermissions": [{"type": "setMode", "mode": "plan", "destination": "session"}]}}}"#,
    );
    let Some(HookPermissionAnswer::Allow { updated_input, updated_permissions }) = outcome.permission_answer
    else {
        panic!("{outcome:?}")
    };
    assert_eq!(updated_input.unwrap()["a"], 1);
    assert!(matches!(&updated_permissions[0], PermissionUpdate::SetMode { mode, .. } if mode == "plan"));
    let outcome = printed(
        &HookEvent::PermissionRequest,
        r#"{"hookSpecificOutput": {"decision": {"behavior": "deny", "message": "no", "interrupt": true}}}"#,
    );
    let expected = HookPermissionAnswer::Deny { message: Some("no".to_owned()), interrupt: true };
    assert_eq!(outcome.permission_answer, Some(expected));
    assert!(read(&HookEvent::PermissionRequest, HookEnd::Code(2), "", "no").denies());
    assert!(printed(&HookEvent::PermissionRequest, r#"{"decision": "block", "reason": "r"}"#).denies());
    let elsewhere =
        printed(&HookEvent::PreToolUse, r#"{"hookSpecificOutput": {"decision": {"behavior": "allow"}}}"#);
    assert_eq!(elsewhere.permission_answer, None);
}

#[test]
fn output_stop_retry_and_detaching_are_read() {
    let outcome =
        printed(&HookEvent::PostToolUse, r#"{"hookSpecificOutput": {"updatedToolOutput": {"x": 1}}}"#);
    assert_eq!(outcome.updated_tool_output, Some(json!({"x": 1})));
    let outcome =
        printed(&HookEvent::PostToolUse, r#"{"hookSpecificOutput": {"updatedMCPToolOutput": "y"}}"#);
    assert_eq!(outcome.updated_tool_output, Some(json!("y")));
    let outcome = printed(&HookEvent::Stop, r#"{"continue": false, "stopReason": "done"}"#);
    assert_eq!(outcome.stop.unwrap().reason.as_deref(), Some("done"));
    assert!(printed(&HookEvent::PermissionDenied, r#"{"hookSpecificOutput": {"retry": true}}"#).retry);
    let outcome = printed(&HookEvent::PreToolUse, r#"{"async": true, "decision": "approve"}"#);
    assert!(outcome.is_detached && outcome.decision.is_none());
}

#[test]
fn input_and_output_of_other_events_are_ignored() {
    let text = r#"{"hookSpecificOutput": {"updatedInput": {}, "updatedToolOutput": 1, "permissionDecision": "allow", "retry": true}}"#;
    let outcome = printed(&HookEvent::UserPromptSubmit, text);
    assert_eq!(outcome, HookOutcome::default());
}

#[test]
fn sizes_are_bounded() {
    let long = "é".repeat(MAX_HOOK_TEXT_CHARS + 5);
    let limit = MAX_HOOK_TEXT_CHARS + 100;
    let reason = read(&HookEvent::PreToolUse, HookEnd::Code(2), "", &long).decision.unwrap().reason.unwrap();
    assert!(reason.chars().count() <= limit && reason.contains("10005 characters"), "{}", reason.len());
    let outcome = printed(&HookEvent::SessionStart, &json!({"systemMessage": long}).to_string());
    assert!(outcome.system_messages[0].chars().count() <= limit);
    assert!(printed(&HookEvent::SessionStart, &long).additional_context[0].chars().count() <= limit);
    let huge = " ".repeat(MAX_HOOK_OUTPUT_BYTES + 1);
    assert!(printed(&HookEvent::PreToolUse, &huge).denies());
    let deep = format!("{{\"a\": {}", "[".repeat(100_000));
    assert!(printed(&HookEvent::PreToolUse, &deep).denies());
}
