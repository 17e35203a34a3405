//! What hooks read.

use haft_compat::hooks::{
    BatchCall, HookContext, HookEvent, HookInput, PermissionUpdate, PermissionUpdateBehavior,
    PermissionUpdateDestination, PermissionUpdateRule,
};
use serde_json::{Value, json};

const CONTEXT: HookContext<'_> = HookContext {
    session_id: "s",
    transcript_path: "/t.jsonl",
    cwd: "/w",
    prompt_id: None,
    permission_mode: Some("default"),
    agent_id: None,
    agent_type: None,
};

/// The object without the members that all events have.
fn own(input: &HookInput) -> Value {
    let mut object = input.to_json(&CONTEXT);
    for (name, value) in [
        ("session_id", "s"),
        ("transcript_path", "/t.jsonl"),
        ("cwd", "/w"),
        ("permission_mode", "default"),
        ("hook_event_name", input.event().name()),
    ] {
        assert_eq!(object.shift_remove(name), Some(Value::from(value)), "{name}");
    }
    Value::Object(object)
}

#[test]
fn each_event_has_the_members_that_claude_code_sends() {
    let call = || ("Bash".to_owned(), json!({"command": "ls"}), "toolu_1".to_owned());
    let (tool_name, tool_input, tool_use_id) = call();
    assert_eq!(
        own(&HookInput::PreToolUse { tool_name, tool_input, tool_use_id }),
        json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "toolu_1"})
    );
    let (tool_name, tool_input, tool_use_id) = call();
    let tool_response = json!({"stdout": "a"});
    assert_eq!(
        own(&HookInput::PostToolUse {
            tool_name,
            tool_input,
            tool_response,
            tool_use_id,
            duration_ms: Some(5)
        }),
        json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_response": {"stdout": "a"},
            "tool_use_id": "toolu_1", "duration_ms": 5})
    );
    let (tool_name, tool_input, tool_use_id) = call();
    let (error, is_interrupt) = ("no".to_owned(), Some(true));
    assert_eq!(
        own(&HookInput::PostToolUseFailure {
            tool_name,
            tool_input,
            tool_use_id,
            error,
            is_interrupt,
            duration_ms: None
        }),
        json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "toolu_1", "error": "no",
            "is_interrupt": true})
    );
    let (tool_name, tool_input, _) = call();
    let rule = PermissionUpdateRule { tool_name: "Bash".to_owned(), rule_content: Some("ls *".to_owned()) };
    let update = PermissionUpdate::AddRules {
        rules: vec![rule],
        behavior: PermissionUpdateBehavior::Allow,
        destination: PermissionUpdateDestination::LocalSettings,
    };
    assert_eq!(
        own(&HookInput::PermissionRequest { tool_name, tool_input, permission_suggestions: vec![update] }),
        json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "permission_suggestions": [
            {"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "ls *"}], "behavior": "allow",
             "destination": "localSettings"}]})
    );
    let (tool_name, tool_input, tool_use_id) = call();
    assert_eq!(
        own(&HookInput::PermissionDenied { tool_name, tool_input, tool_use_id, reason: "r".to_owned() }),
        json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "toolu_1", "reason": "r"})
    );
    let (tool_name, tool_input, tool_use_id) = call();
    let tool_calls = vec![BatchCall { tool_name, tool_input, tool_use_id, tool_response: None }];
    assert_eq!(
        own(&HookInput::PostToolBatch { tool_calls }),
        json!({"tool_calls": [{"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "toolu_1"}]})
    );
    assert_eq!(
        own(&HookInput::UserPromptSubmit { prompt: "p".to_owned(), source: Some("sdk".to_owned()) }),
        json!({"prompt": "p", "source": "sdk"})
    );
    assert_eq!(
        own(&HookInput::SessionStart { source: "startup".to_owned(), model: None }),
        json!({"source": "startup"})
    );
    assert_eq!(own(&HookInput::SessionEnd { reason: "other".to_owned() }), json!({"reason": "other"}));
    assert_eq!(
        own(&HookInput::Stop { stop_hook_active: false, last_assistant_message: None }),
        json!({"stop_hook_active": false})
    );
    assert_eq!(
        own(&HookInput::PreCompact { trigger: "auto".to_owned(), custom_instructions: None }),
        json!({"trigger": "auto", "custom_instructions": null})
    );
    assert_eq!(
        own(&HookInput::PostCompact { trigger: "auto".to_owned(), compact_summary: "c".to_owned() }),
        json!({"trigger": "auto", "compact_summary": "c"})
    );
    let notification_type = "idle_prompt".to_owned();
    assert_eq!(
        own(&HookInput::Notification { message: "m".to_owned(), title: None, notification_type }),
        json!({"message": "m", "notification_type": "idle_prompt"})
    );
}

#[test]
fn a_subagents_own_id_replaces_that_of_the_context() {
    let context = HookContext { agent_id: Some("outer"), agent_type: Some("general"), ..CONTEXT };
    let input = HookInput::SubagentStop {
        stop_hook_active: true,
        agent_id: "inner".to_owned(),
        agent_type: "reviewer".to_owned(),
        agent_transcript_path: "/a.jsonl".to_owned(),
        last_assistant_message: None,
    };
    let object = input.to_json(&context);
    assert_eq!(object["agent_id"], "inner");
    assert_eq!(object["agent_type"], "reviewer");
    assert_eq!(input.subject(), Some("reviewer"));
    let text = serde_json::to_string(&object).unwrap();
    assert_eq!(text.matches("\"agent_id\"").count(), 1);
}

#[test]
fn members_come_in_claude_codes_order() {
    let input = HookInput::PreToolUse {
        tool_name: "Bash".to_owned(),
        tool_input: json!({}),
        tool_use_id: "t".to_owned(),
    };
    let names: Vec<_> = input.to_json(&CONTEXT).into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        [
            "session_id",
            "transcript_path",
            "cwd",
            "permission_mode",
            "hook_event_name",
            "tool_name",
            "tool_input",
            "tool_use_id"
        ]
    );
}

#[test]
fn names_of_events_round_trip() {
    for name in HookEvent::NAMES {
        assert_eq!(HookEvent::from_name(name).name(), name);
        assert!(!matches!(HookEvent::from_name(name), HookEvent::Other(_)), "{name}");
    }
    assert_eq!(HookEvent::from_name("Setup"), HookEvent::Other("Setup".to_owned()));
}
