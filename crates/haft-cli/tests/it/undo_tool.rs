//! `haft_undo`: undo as a tool that a model calls is decided like any other call.

use haft::{CallResult, Effect, ErrorKind, Mode, ReceiptState, Runtime, json};

use crate::fixture::runtime::Directories;

fn builder(directories: &Directories) -> haft::Builder {
    directories.builder().ledger_tools()
}

async fn write(runtime: &Runtime, name: &str) -> CallResult {
    let path = runtime.workspace().join(name);
    let result = runtime.call("Write", json!({"file_path": path, "content": "new"})).await;
    assert!(!result.output.is_error(), "{}", result.output.as_text());
    result
}

#[tokio::test]
async fn undo_declares_its_writes_and_restores_them() {
    let directories = Directories::new();
    let runtime = builder(&directories).build().unwrap();
    let wrote = write(&runtime, "a").await;
    let undone = runtime.call("haft_undo", json!({})).await;
    assert_eq!(undone.output.as_text(), "Restored 1 path");
    assert!(!directories.path("a").exists());
    let path = runtime.workspace().join("a");
    let effects =
        [Effect::Undo { call: wrote.receipt.id, own_session: true, partial: false }, Effect::Write { path }];
    assert_eq!(undone.receipt.effects, effects);
    assert_eq!(undone.receipt.undoes, [wrote.receipt.id]);
    assert_eq!(runtime.ledger().unwrap().undone_by(wrote.receipt.id).unwrap(), Some(undone.receipt.id));
    let again = runtime.call("haft_undo", json!({})).await;
    assert_eq!(again.output.error_kind, Some(ErrorKind::TargetNotFound), "an undo is not undone by default");
}

#[tokio::test]
async fn undo_is_denied_in_plan_mode() {
    let directories = Directories::new();
    let wrote = write(&builder(&directories).build().unwrap(), "a").await;
    let session = wrote.receipt.session;
    let runtime = builder(&directories).session(session).permission_mode(Mode::Plan).build().unwrap();
    let result = runtime.call("haft_undo", json!({"call": wrote.receipt.id})).await;
    assert_eq!(result.receipt.state, ReceiptState::Denied, "{}", result.output.as_text());
    assert!(result.output.as_text().contains("plan mode"), "{}", result.output.as_text());
    assert!(directories.path("a").exists());
}

#[tokio::test]
async fn undo_asks_in_default_mode_and_headless_means_no() {
    let directories = Directories::new();
    let session = write(&builder(&directories).build().unwrap(), "a").await.receipt.session;
    let runtime = builder(&directories).session(session).permission_mode(Mode::Default).build().unwrap();
    let result = runtime.call("haft_undo", json!({})).await;
    assert_eq!(result.receipt.state, ReceiptState::Denied, "{}", result.output.as_text());
    assert!(directories.path("a").exists());
}

#[tokio::test]
async fn undo_leaves_calls_of_other_sessions_alone() {
    let directories = Directories::new();
    let other = write(&builder(&directories).build().unwrap(), "a").await;
    let runtime = builder(&directories).build().unwrap();
    let nothing = runtime.call("haft_undo", json!({})).await;
    assert_eq!(nothing.output.error_kind, Some(ErrorKind::TargetNotFound), "{}", nothing.output.as_text());
    for mode in [Mode::Scoped, Mode::BypassPermissions] {
        let runtime = builder(&directories).permission_mode(mode).allow("haft_undo", "test").build().unwrap();
        let denied = runtime.call("haft_undo", json!({"call": other.receipt.id})).await;
        assert_eq!(denied.receipt.state, ReceiptState::Denied, "{}", denied.output.as_text());
        assert!(denied.output.as_text().contains("another session"), "{}", denied.output.as_text());
    }
    assert!(directories.path("a").exists());
    let ruled = builder(&directories).allow("haft_undo(other-sessions)", "test").build().unwrap();
    let undone = ruled.call("haft_undo", json!({"call": other.receipt.id})).await;
    assert!(!undone.output.is_error(), "{}", undone.output.as_text());
    assert!(!directories.path("a").exists());
}

#[tokio::test]
async fn undo_is_refused_where_something_else_has_changed() {
    let directories = Directories::new();
    let runtime = builder(&directories).build().unwrap();
    write(&runtime, "a").await;
    std::fs::write(directories.path("a"), "by hand").unwrap();
    let result = runtime.call("haft_undo", json!({})).await;
    assert_eq!(result.output.error_kind, Some(ErrorKind::Conflict), "{}", result.output.as_text());
    assert_eq!(std::fs::read(directories.path("a")).unwrap(), b"by hand");
}
