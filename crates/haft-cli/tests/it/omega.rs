//! Omega's document (000, with 001): its fifteen tests under their own names, and what else it says.

use std::path::Path;

use haft::formats::{ProviderFormat, definitions};
use haft::{BLOCKLIST, ErrorKind, Mode, Preset, Registry, Text, Value, json};
use haft_tool::Scope;

use crate::fixture::runtime::{RuntimeFixture, fields};

fn omega() -> RuntimeFixture {
    RuntimeFixture::of(haft::omega())
}

/// The notice that says what is missing.
fn notice(total: usize, shown: usize) -> String {
    format!("... (output truncated: {total} total chars, showing first {shown})")
}

/// `truncate_output` is [`dialects::omega::limit`](haft::dialects::omega::limit).
fn truncated(text: &str, max_chars: usize) -> String {
    haft::dialects::omega::limit(max_chars).apply(Text::from(text), None).0
}

/// What `is_write_blocked` asks: the scope of Omega's `Sandbox`.
fn is_write_blocked(path: &str) -> bool {
    let scope =
        Scope { protected: vec!["/home/u/.omega/data".into()], ..Scope::of("/home/u/.omega/workspace") };
    Preset::Sandbox.apply(scope).is_write_blocked(Path::new(path))
}

#[test]
fn test_builtin_tool_defs_count() {
    let all = Registry::of(&haft::omega()).definitions();
    let names: Vec<&str> = all.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["bash", "read", "write", "edit"]);
}

#[test]
fn test_tool_def_serialization() {
    let all = definitions(ProviderFormat::Openai, &Registry::of(&haft::omega()).definitions());
    for tool in all.as_array().unwrap() {
        let tool = &tool["function"];
        assert_eq!(fields(tool), ["name", "description", "parameters"]);
        assert!(!tool["description"].as_str().unwrap().is_empty());
        assert_eq!(tool["parameters"]["type"], "object");
    }
}

#[test]
fn test_truncate_output_short() {
    assert_eq!(truncated("short", 100), "short");
}

#[test]
fn test_truncate_output_exact() {
    assert_eq!(truncated("12345", 5), "12345");
}

#[test]
fn test_truncate_output_long() {
    assert_eq!(truncated(&"a".repeat(200), 50), format!("{}\n{}", "a".repeat(50), notice(200, 50)));
}

#[tokio::test]
async fn test_is_write_blocked_allows_workspace() {
    let temporary = tempfile::tempdir_in("/tmp").unwrap();
    for preset in [Preset::Workspace, Preset::Sandbox, Preset::Rx, Preset::Rwx] {
        let omega = RuntimeFixture::with(|builder| builder.dialect(haft::omega()).sandbox(preset));
        omega.text("write", json!({"file_path": omega.path("a.txt"), "content": "x"})).await;
        omega.text("bash", json!({"command": "echo y >> a.txt"})).await;
        assert_eq!(omega.read("a.txt"), "xy\n", "{preset}");
        let path = temporary.path().join(preset.to_string());
        omega.text("write", json!({"file_path": path, "content": "x"})).await;
        omega.text("bash", json!({"command": format!("echo y >> {}", path.display())})).await;
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "xy\n", "{preset}");
    }
    let omega = RuntimeFixture::with(|builder| builder.dialect(haft::omega()));
    let private = omega.text("bash", json!({"command": "dirname \"$TMPDIR\""})).await;
    let path = Path::new(private.trim()).join("planted");
    let output = omega.call("write", json!({"file_path": path, "content": "x"})).await.output;
    assert!(output.is_error() && !path.exists(), "{}", output.as_text());
    let moved = json!({"command": format!("mv {} /tmp/haft-moved", private.trim())});
    assert!(omega.call("bash", moved).await.output.is_error());

    let read_only = RuntimeFixture::with(|builder| builder.dialect(haft::omega()).sandbox(Preset::ReadOnly));
    let path = temporary.path().join("read-only");
    let output = read_only.call("write", json!({"file_path": path, "content": "x"})).await.output;
    assert!(output.is_error() && !path.exists(), "{}", output.as_text());
    for path in
        ["/home/u/.omega/workspace/a", "/home/u/.omega/skills/b", "/tmp/c", "/usr/local/d", "/binaries"]
    {
        assert!(!is_write_blocked(path), "{path}");
    }
}

#[test]
fn test_is_write_blocked_denies_system() {
    for path in ["/etc/passwd", "/bin/ls", "/usr/lib/x", "/System/Library/x", "/home/u/.omega/data/memory.db"]
    {
        assert!(is_write_blocked(path), "{path}");
    }
    assert!(BLOCKLIST.iter().all(|path| is_write_blocked(path)));
}

#[tokio::test]
async fn test_exec_bash_empty_command() {
    let (kind, said) = omega().fails("bash", json!({})).await;
    assert_eq!(
        (kind, said.as_str()),
        (ErrorKind::InvalidArguments, "bash: command: required but missing (string)")
    );
}

#[tokio::test]
async fn test_exec_bash_echo() {
    assert_eq!(omega().text("bash", json!({"command": "echo hello"})).await, "hello\n");
}

#[tokio::test]
async fn test_exec_read_nonexistent() {
    let (kind, said) = omega().fails("read", json!({"file_path": "/nonexistent/file"})).await;
    assert_eq!((kind, said.as_str()), (ErrorKind::FileNotFound, "/nonexistent/file does not exist"));
}

#[tokio::test]
async fn test_exec_write_and_read() {
    let omega = omega();
    let path = omega.path("deep/er/test.txt");
    let said = omega.text("write", json!({"file_path": path, "content": "hello wörld"})).await;
    assert_eq!(said, format!("Wrote 12 bytes to {path}"));
    assert_eq!(omega.text("read", json!({"file_path": path})).await, "hello wörld");
}

#[tokio::test]
async fn test_exec_edit() {
    let omega = omega();
    let path = omega.file("a.txt", "one two one");
    let arguments = json!({"file_path": path, "old_string": "one", "new_string": "1"});
    let said = omega.text("edit", arguments).await;
    assert_eq!(said, format!("Edited {path}: replaced the first of 2 occurrences"));
    assert_eq!(omega.read("a.txt"), "1 two one");
}

#[tokio::test]
async fn test_exec_write_denied_sandbox() {
    let omega = RuntimeFixture::with(|builder| builder.dialect(haft::omega()).sandbox(Preset::Sandbox));
    let (kind, said) = omega.fails("write", json!({"file_path": "/etc/test", "content": "x"})).await;
    assert_eq!(kind, ErrorKind::PermissionDenied);
    assert!(said.contains("denied"), "{said}");
}

#[test]
fn test_tool_executor_mcp_tool_map_routing() {
    let names = omega().haft.registry().names();
    assert!(names.iter().all(|name| !name.starts_with("mcp__")), "no server is connected yet: {names:?}");
    assert_eq!(names.len(), 4);
}

#[tokio::test]
async fn test_execute_unknown_tool() {
    let (kind, said) = omega().fails("launch_rocket", json!({})).await;
    assert_eq!(kind, ErrorKind::NotFound);
    assert!(said.contains("Unknown tool"), "{said}");
}

#[tokio::test]
async fn names_are_found_in_any_case() {
    let omega = omega();
    for name in ["bash", "Bash", "BASH"] {
        assert_eq!(omega.text(name, json!({"command": "echo x"})).await, "x\n");
    }
    assert_eq!(omega.call("rEAD", json!({"file_path": omega.file("f", "x")})).await.receipt.tool, "read");
}

#[tokio::test]
async fn bash_gives_output_then_errors_and_the_code_only_if_both_are_empty() {
    let omega = omega();
    let both = json!({"command": "echo err >&2; echo out; pwd"});
    let said = omega.text("bash", both).await;
    assert_eq!(said, format!("out\n{}\nerr\n", omega.haft.workspace().display()));
    let failed = omega.call("bash", json!({"command": "echo out; exit 3"})).await.output;
    assert_eq!((failed.as_text().as_str(), failed.is_error()), ("out\n", true));
    let silent = omega.call("bash", json!({"command": "exit 4"})).await.output;
    assert_eq!((silent.as_text().as_str(), silent.is_error()), ("(exit code: 4)", true));
    assert_eq!(omega.text("bash", json!({"command": "true"})).await, "(exit code: 0)");
}

#[tokio::test]
async fn bash_shows_30000_characters_and_the_ledger_keeps_the_rest() {
    let omega = omega();
    let result = omega.call("bash", json!({"command": "seq 1 100000; echo end >&2"})).await;
    let all: String = (1..=100_000).map(|n| format!("{n}\n")).chain(["end\n".to_owned()]).collect();
    let first = &all[..30_000];
    assert_eq!(result.output.as_text(), format!("{first}\n{}", notice(all.len(), 30_000)));
    assert!(result.receipt.full_output.is_some());
}

#[tokio::test]
async fn read_shows_50000_characters_cut_between_two_of_them() {
    let omega = omega();
    let path = omega.file("long", "ä".repeat(50_001));
    let said = omega.text("read", json!({"file_path": path})).await;
    assert_eq!(said, format!("{}\n{}", "ä".repeat(50_000), notice(50_001, 50_000)));
    omega.file("fits", "ä".repeat(50_000));
    assert_eq!(omega.text("read", json!({"file_path": "fits"})).await, "ä".repeat(50_000));
}

#[tokio::test]
async fn relative_paths_start_in_the_workspace_and_reads_go_anywhere() {
    let omega = omega();
    omega.text("write", json!({"file_path": "sub/../a.txt", "content": ""})).await;
    assert_eq!(omega.read("a.txt"), "");
    let elsewhere = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(elsewhere.path(), "outside").unwrap();
    assert_eq!(omega.text("read", json!({"file_path": elsewhere.path()})).await, "outside");
}

#[tokio::test]
async fn edit_needs_the_file_and_the_text() {
    let omega = omega();
    let edit = |path: &str, old: &str| json!({"file_path": path, "old_string": old, "new_string": "x"});
    assert_eq!(omega.fails("edit", edit("missing", "a")).await.0, ErrorKind::FileNotFound);
    omega.file("a.txt", "text");
    assert_eq!(omega.fails("edit", edit("a.txt", "other")).await.0, ErrorKind::TargetNotFound);
    assert_eq!(omega.fails("edit", edit("a.txt", "")).await.0, ErrorKind::InvalidArguments);
    assert_eq!(omega.read("a.txt"), "text");
    let said = omega.text("edit", edit("a.txt", "text")).await;
    assert!(said.ends_with("replaced 1 occurrence"), "{said}");
}

#[tokio::test]
async fn the_blocklist_holds_in_every_mode_and_through_links() {
    for preset in [Preset::Workspace, Preset::Rx, Preset::Rwx] {
        let omega = RuntimeFixture::with(|builder| {
            builder.dialect(haft::omega()).sandbox(preset).permission_mode(Mode::BypassPermissions)
        });
        std::os::unix::fs::symlink("/etc", omega.root().join("link")).unwrap();
        for (tool, path) in
            [("write", "/etc/haft-test"), ("edit", "/etc/hostname"), ("write", "link/haft-test")]
        {
            let mut arguments = json!({"file_path": path, "content": "x"});
            if tool == "edit" {
                arguments = json!({"file_path": path, "old_string": "a", "new_string": "b"});
            }
            let output = omega.call(tool, arguments).await.output;
            assert!(output.is_error(), "{preset} {tool} {path}: {}", output.as_text());
        }
        assert!(!Path::new("/etc/haft-test").exists());
    }
}

#[tokio::test]
async fn rwx_writes_anywhere_off_the_blocklist_and_the_others_do_not() {
    let elsewhere = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = elsewhere.path().join("new/a.txt");
    for (preset, works) in [(Preset::Sandbox, false), (Preset::Rx, false), (Preset::Rwx, true)] {
        let omega = RuntimeFixture::with(|builder| builder.dialect(haft::omega()).sandbox(preset));
        let output = omega.call("write", json!({"file_path": path, "content": "x"})).await.output;
        assert_eq!((output.is_error(), path.exists()), (!works, works), "{preset}: {}", output.as_text());
        let old = elsewhere.path().join("old.txt");
        std::fs::write(&old, "x").unwrap();
        let edit = json!({"file_path": old, "old_string": "x", "new_string": "y"});
        let output = omega.call("edit", edit).await.output;
        let left = std::fs::read_to_string(&old).unwrap();
        assert_eq!(
            (output.is_error(), left.as_str()),
            (!works, if works { "y" } else { "x" }),
            "{preset}: {}",
            output.as_text()
        );
    }
}

#[tokio::test]
async fn the_ledger_is_neither_read_nor_written() {
    let omega = omega();
    omega.text("write", json!({"file_path": "a.txt", "content": "x"})).await;
    let ledger =
        std::fs::read_dir(omega.home()).unwrap().flatten().find(|entry| entry.path().is_file()).unwrap();
    let read = omega.fails("read", json!({"file_path": ledger.path()})).await;
    let write = omega.fails("write", json!({"file_path": omega.home().join("new"), "content": "x"})).await;
    for (kind, said) in [read, write] {
        assert_eq!(kind, ErrorKind::PermissionDenied);
        assert!(said.contains("is protected"), "{said}");
    }
}

#[tokio::test]
async fn no_tools_are_enabled_where_the_list_of_allowed_ones_is_empty() {
    let none = RuntimeFixture::with(|builder| builder.dialect(haft::omega()).only([]));
    assert!(none.haft.definitions().is_empty());
    assert_eq!(none.fails("bash", json!({"command": "true"})).await.0, ErrorKind::PermissionDenied);
    assert!(!omega().haft.definitions().is_empty(), "no list means all");
}

#[test]
fn all_definitions_cost_less_than_one_and_a_half_kilobytes() {
    let all: Value = definitions(ProviderFormat::Openai, &Registry::of(&haft::omega()).definitions());
    assert!(all.to_string().len() < 1_500, "{}", all.to_string().len());
}
