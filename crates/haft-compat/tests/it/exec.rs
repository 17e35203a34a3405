//! Codex's events and settings.

use haft_compat::exec::{
    ChangedPath, ExecConfig, ExecSandbox, ItemStatus, PathChangeKind, ThreadEvent, ThreadItem, ThreadItemBody,
};
use serde_json::json;

#[test]
fn events_have_the_form_of_codex() {
    let item = |body: ThreadItemBody| ThreadItem { id: "item_1".to_owned(), body };
    let command = ThreadItemBody::CommandExecution {
        command: "ls".to_owned(),
        aggregated_output: String::new(),
        exit_code: None,
        status: ItemStatus::InProgress,
    };
    let change = ChangedPath { path: "/a".to_owned(), kind: PathChangeKind::Add };
    let change = ThreadItemBody::FileChange { changes: vec![change], status: ItemStatus::Completed };
    for (event, expected) in [
        (
            ThreadEvent::ThreadStarted { thread_id: "t".to_owned() },
            json!({"type": "thread.started", "thread_id": "t"}),
        ),
        (ThreadEvent::TurnStarted, json!({"type": "turn.started"})),
        (
            ThreadEvent::ItemStarted { item: item(command) },
            json!({"type": "item.started", "item": {
                "id": "item_1", "type": "command_execution", "command": "ls", "aggregated_output": "", "exit_code": null,
                "status": "in_progress",
            }}),
        ),
        (
            ThreadEvent::ItemCompleted { item: item(change) },
            json!({"type": "item.completed", "item": {
                "id": "item_1", "type": "file_change", "changes": [{"path": "/a", "kind": "add"}], "status": "completed",
            }}),
        ),
    ] {
        assert_eq!(serde_json::to_value(event).unwrap(), expected);
    }
}

#[test]
fn settings_are_read_as_toml_or_as_text() {
    let mut config = ExecConfig::default();
    for word in [
        "openai_base_url=\"http://127.0.0.1:1/v1\"",
        "model=gpt-x",
        "model_reasoning_effort = \"high\"",
        "sandbox_workspace_write={network_access = true, writable_roots = [\"/a\"]}",
        "sandbox_mode=\"read-only\"",
        "web_search=\"disabled\"",
        "approval_policy=\"never\"",
        "mcp_servers.x.command=\"y\"",
    ] {
        config.set(word).unwrap();
    }
    let expected = ExecConfig {
        model: Some("gpt-x".to_owned()),
        base_url: Some("http://127.0.0.1:1/v1".to_owned()),
        effort: Some("high".to_owned()),
        sandbox: Some(ExecSandbox::ReadOnly),
        network_access: Some(true),
        writable_roots: vec!["/a".into()],
        web_search: Some(false),
        instructions: None,
        unknown: vec!["mcp_servers.x.command".to_owned()],
    };
    assert_eq!(config, expected);
    for word in [
        "model",
        "sandbox_mode=none",
        "sandbox_workspace_write.network_access=perhaps",
        "model=1",
        "sandbox_workspace_write=1",
    ] {
        assert!(config.set(word).is_err(), "{word}");
    }
}

#[test]
fn mutated_settings_words_are_taken_or_refused() {
    let seeds: [&[u8]; 3] = [
        b"sandbox_workspace_write={network_access = true}",
        b"openai_base_url=\"x\"",
        b"a.b=[1, {c = 'd'}]\nvalue = 2",
    ];
    haft_fuzz::check(&seeds, |bytes| {
        let mut config = ExecConfig::default();
        let _ = config.set(&String::from_utf8_lossy(bytes));
    });
}
