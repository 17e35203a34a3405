//! E6, E31 and the tools that needed no permission in any mode.

use haft::{Mode, UndoTarget, json};

use super::{call, denied};
use crate::fixture::cli::pipe;
use crate::fixture::http_server::{Server, page};
use crate::fixture::runtime::Directories;
use crate::fixture::settings::SettingsFixture;

#[test]
fn e6_bypass_mode_stays_inside_the_scope() {
    let directories = Directories::new();
    std::fs::create_dir_all(directories.path(".git/hooks")).unwrap();
    let server = Server::start(|_| page("text/plain", "inside"));
    let haft = directories.builder().permission_mode(Mode::BypassPermissions).build().unwrap();
    for path in [
        "/etc/cron.d/haft-test".into(),
        directories.path(".git/hooks/pre-commit"),
        directories.path(".mcp.json"),
    ] {
        denied(&haft, "Write", json!({"file_path": path, "content": "x"}));
        assert!(!path.exists());
    }
    for url in
        [server.url("/"), "http://169.254.169.254/latest/meta-data".to_owned(), "http://[::1]:80/".to_owned()]
    {
        denied(&haft, "WebFetch", json!({"url": url, "prompt": "x"}));
    }
    assert!(server.asked.try_recv().is_err(), "a request was sent");
    denied(&haft, "Bash", json!({"command": "true", "dangerouslyDisableSandbox": true}));
}

#[test]
fn e31_undo_tool_is_a_call_like_others() {
    let directories = Directories::new();
    let first = directories.builder().ledger_tools().build().unwrap();
    let path = directories.path("a");
    let write = call(&first, "Write", json!({"file_path": path, "content": "new\n"}));
    let other =
        directories.builder().ledger_tools().permission_mode(Mode::BypassPermissions).build().unwrap();
    denied(&other, "haft_undo", json!({"call": write.receipt.id}));
    assert!(path.exists());
    let session = write.receipt.session.clone();
    let plan =
        directories.builder().ledger_tools().session(session).permission_mode(Mode::Plan).build().unwrap();
    let said = denied(&plan, "haft_undo", json!({"call": write.receipt.id}));
    assert!(said.contains("plan mode") && path.exists(), "{said}");
    assert!(first.undo_preview(&UndoTarget::Call(write.receipt.id)).is_ok());
}

#[test]
fn e31_undo_tool_does_not_write_what_a_rule_denies() {
    let directories = Directories::new();
    let path = directories.path("p/a");
    let first = directories.builder().ledger_tools().build().unwrap();
    let write = call(&first, "Write", json!({"file_path": path, "content": "new\n"}));
    let session = write.receipt.session.clone();
    let builder = directories.builder().ledger_tools().session(session);
    let ruled = builder.rule(haft::Behavior::Deny, "Edit(p/**)", "test").build().unwrap();
    denied(&ruled, "haft_undo", json!({"call": write.receipt.id}));
    assert!(path.exists());
}

#[test]
fn memory_is_not_written_in_plan_mode_and_asked_about_like_other_edits() {
    let fixture = SettingsFixture::new();
    let arguments = json!({"content": "x"}).to_string();
    let memory = fixture.at_home(".clawft/workspace/memory/MEMORY.md");
    // Over MCP, because `haft call` counts as the user's own request for the tool.
    for (mode, written) in [("plan", false), ("dontAsk", false), ("default", false), ("scoped", true)] {
        let input = [
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
                "params": {"name": "memory_write", "arguments": {"content": "x"}}}),
        ];
        let input: String = input.iter().map(|message| format!("{message}\n")).collect();
        let command = fixture.command(&["mcp", "--dialect", "clawft", "--permission-mode", mode]);
        let said = pipe(command, input.as_bytes());
        assert_eq!(memory.exists(), written, "{mode}: {}", said.stdout);
    }
    std::fs::remove_file(&memory).unwrap();
    let args = ["call", "memory_write", &arguments, "--dialect", "clawft", "--permission-mode", "plan"];
    assert_eq!((fixture.haft(&args).code, memory.exists()), (3, false));
}

#[test]
fn loom_does_not_reach_its_default_server_without_a_decision() {
    let directories = Directories::new();
    for mode in Mode::ALL {
        let haft = directories.builder().dialect(haft::loom()).permission_mode(mode).build().unwrap();
        for tool in ["oracle", "web_search"] {
            let said = denied(&haft, tool, json!({"query": "x"}));
            assert!(said.contains("127.0.0.1:8080"), "{mode}: {said}");
        }
    }
    let named = directories
        .builder()
        .dialect(haft::loom())
        .allow("oracle(domain:127.0.0.1)", "test")
        .build()
        .unwrap();
    let answer = call(&named, "oracle", json!({"query": "x"})).output;
    assert_ne!(answer.error_kind, Some(haft::ErrorKind::PermissionDenied), "{}", answer.as_text());
}
