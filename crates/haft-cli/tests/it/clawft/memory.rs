//! `memory_read` and `memory_write`.

use std::path::Path;

use haft::{ErrorKind, Mode, Settings, UndoTarget, json};
use tempfile::TempDir;

use crate::fixture::cli::CliFixture;
use crate::fixture::runtime::RuntimeFixture;

/// A runtime whose memory is a file outside its workspace.
fn remembering() -> (RuntimeFixture, TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er/MEMORY.md");
    let mut settings = Settings::default();
    settings.memory.path = Some(path.clone());
    let fixture = RuntimeFixture::of(haft::dialects::clawft::dialect(&settings));
    (fixture, folder, path.to_str().unwrap().to_owned())
}

#[tokio::test]
async fn without_a_file_the_memory_is_empty_and_says_so() {
    let (clawft, _folder, _) = remembering();
    for arguments in [json!({}), json!({"query": "x"})] {
        let read = clawft.value("memory_read", arguments).await;
        assert_eq!(read, json!({"content": "", "message": "No memory file found"}));
    }
}

#[tokio::test]
async fn what_is_appended_stands_after_a_blank_line() {
    let (clawft, _folder, path) = remembering();
    let first = "## Decision\n\nUse PostgreSQL for the primary datastore.";
    let wrote = clawft.value("memory_write", json!({"content": first})).await;
    let message = format!("Successfully wrote {} bytes to memory (mode: append)", first.len());
    assert_eq!(wrote, json!({"message": message, "path": path}));
    clawft.value("memory_write", json!({"content": "JWT tokens.\n", "mode": "append"})).await;
    clawft.value("memory_write", json!({"content": "Third."})).await;
    let all = format!("{first}\n\nJWT tokens.\n\nThird.");
    assert_eq!(clawft.value("memory_read", json!({})).await, json!({"content": all}));
    let over = clawft.value("memory_write", json!({"content": "New.", "mode": "overwrite"})).await;
    assert_eq!(over["message"], "Successfully wrote 4 bytes to memory (mode: overwrite)");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "New.");
    let wrong = clawft.fails("memory_write", json!({"content": "x", "mode": "prepend"})).await;
    assert_eq!(wrong.0.clawft_name(), "InvalidArgs");
}

#[tokio::test]
async fn a_query_gives_the_paragraphs_that_hold_it() {
    let (clawft, _folder, path) = remembering();
    std::fs::create_dir_all(Path::new(&path).parent().unwrap()).unwrap();
    std::fs::write(&path, "# Notes\n\nJWT for\nAuthentication.\n\n\nThe database schema.\n").unwrap();
    let found = clawft.value("memory_read", json!({"query": "authentication"})).await;
    assert_eq!(
        found,
        json!({"query": "authentication", "matches": ["JWT for\nAuthentication."], "count": 1})
    );
    let none = clawft.value("memory_read", json!({"query": "nothing"})).await;
    assert_eq!(none, json!({"query": "nothing", "matches": [], "count": 0}));
}

#[tokio::test]
async fn a_write_to_memory_is_recorded_and_taken_back_like_any_other() {
    let (clawft, _folder, path) = remembering();
    clawft.value("memory_write", json!({"content": "old"})).await;
    let result = clawft.call("memory_write", json!({"content": "new"})).await;
    assert_eq!(json!(result.receipt.effects), json!([{"effect": "write", "path": path}]));
    let changed: Vec<&Path> = result.receipt.changes.iter().map(|change| change.path.as_path()).collect();
    assert_eq!(changed, [Path::new(&path)]);
    let preview = clawft.haft.undo_preview(&UndoTarget::Call(result.receipt.id)).unwrap();
    clawft.haft.undo(&preview, false, haft::CallOptions::default()).await.unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
}

#[tokio::test]
async fn no_other_tool_and_no_command_reaches_the_memory() {
    let (clawft, folder, path) = remembering();
    clawft.value("memory_write", json!({"content": "mine"})).await;
    assert_eq!(clawft.fails("read_file", json!({"path": path})).await.0, ErrorKind::InvalidPath);
    assert_eq!(
        clawft.fails("write_file", json!({"path": path, "content": ""})).await.0,
        ErrorKind::InvalidPath
    );
    let command = format!("echo x >> {path}");
    assert_ne!(clawft.value("exec_shell", json!({"command": command})).await["exit_code"], 0);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn plan_mode_and_a_rule_hold_the_memory_too() {
    let (_, folder, path) = remembering();
    let mut settings = Settings::default();
    settings.memory.path = Some(path.into());
    let planning = RuntimeFixture::with(|builder| {
        builder.dialect(haft::dialects::clawft::dialect(&settings)).permission_mode(Mode::Plan)
    });
    let (kind, _) = planning.fails("memory_write", json!({"content": "x"})).await;
    assert_eq!(kind, ErrorKind::PermissionDenied);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn the_memory_lies_in_the_users_home_with_a_fallback_to_the_older_place() {
    let cli = CliFixture::new();
    let user = tempfile::tempdir().unwrap();
    let call = |tool: &str, arguments: haft::Value| {
        let mut command = cli.command(&["call", "--dialect", "clawft", tool, &arguments.to_string()]);
        let ran = command.env("HOME", user.path()).output().unwrap();
        let text = String::from_utf8(ran.stdout).unwrap();
        serde_json::from_str::<haft::Value>(&text).unwrap_or_else(|_| json!({"said": text}))
    };
    let older = user.path().join(".nanobot/workspace/memory/MEMORY.md");
    let own = user.path().join(".clawft/workspace/memory/MEMORY.md");
    std::fs::create_dir_all(older.parent().unwrap()).unwrap();
    std::fs::write(&older, "older").unwrap();
    assert_eq!(call("memory_read", json!({})), json!({"content": "older"}));
    assert_eq!(call("memory_write", json!({"content": "more"}))["path"], json!(older));
    assert_eq!(call("memory_read", json!({})), json!({"content": "older\n\nmore"}));
    std::fs::remove_file(&older).unwrap();
    assert_eq!(call("memory_write", json!({"content": "own"}))["path"], json!(own));
    std::fs::write(&older, "older").unwrap();
    assert_eq!(call("memory_read", json!({})), json!({"content": "own"}), "its own place counts first");
}
