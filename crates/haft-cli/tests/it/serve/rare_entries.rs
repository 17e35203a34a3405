//! Rare entries of the ledger, which the tests write or damage themselves because calls seldom leave them.

use std::sync::Arc;

use haft_ledger::{CallRecord, Ledger, LedgerHandle, NewSession, SessionChoice};
use haft_tool::{CallEnd, Change, FileNode, Node, Receipt, ReceiptState, Record as _, now_ms};
use serde_json::{Value, json};

use super::content::all;
use crate::fixture::serve::{ACT, ServeFixture};

/// More calls than the server reads at a time.
const MANY_CALLS: usize = 600;

fn new_session(fixture: &ServeFixture, entry_point: &str) -> NewSession {
    NewSession {
        workspace: fixture.workspace().into(),
        dialect: "claude".to_owned(),
        entry_point: entry_point.to_owned(),
    }
}

/// A session in which calls are recorded without being made.
fn recorded_session(fixture: &ServeFixture) -> Arc<LedgerHandle> {
    let new = new_session(fixture, "test");
    Arc::new(LedgerHandle::new(fixture.cli.home().to_owned(), new, SessionChoice::New))
}

fn receipt(handle: &Arc<LedgerHandle>, tool: &str, input: Value) -> CallRecord {
    let workspace = handle.ledger().unwrap().session(handle.session().unwrap()).unwrap().workspace;
    let mut receipt = Receipt::new("call", tool, &workspace, now_ms());
    receipt.input = input;
    CallRecord::new(Arc::clone(handle), receipt)
}

fn end(record: &CallRecord, result: Option<String>) -> i64 {
    let end = CallEnd { state: ReceiptState::Completed, result, ..CallEnd::default() };
    record.finish(&end).unwrap().id
}

#[test]
fn a_session_is_found_by_its_id_whatever_others_are_called() {
    let fixture = ServeFixture::new();
    let ledger = Ledger::open(fixture.cli.home()).unwrap();
    let first = ledger.start_session(&new_session(&fixture, "first")).unwrap();
    let second = ledger.conversation(&first, &new_session(&fixture, "second")).unwrap();
    let server = fixture.serve();
    for (id, entry_point) in [(&first, "first"), (&second, "second")] {
        let session = server.get(&format!("/sessions/{id}"))["session"].clone();
        assert_eq!((&session["id"], &session["entry_point"]), (&json!(id), &json!(entry_point)));
    }
}

#[test]
fn a_subagent_names_the_call_that_started_it_however_many_followed() {
    let fixture = ServeFixture::new();
    let session = recorded_session(&fixture);
    let ledger = session.ledger().unwrap();
    // A subagent whose run says nothing about it has an empty description.
    let call = end(&receipt(&session, "Agent", json!({"description": "", "prompt": "Do it."})), None);
    let parent = session.session().unwrap();
    ledger.start_session(&new_session(&fixture, &haft_agent::agent_entry_point(parent))).unwrap();
    for _ in 0..MANY_CALLS {
        end(&receipt(&session, "Read", json!({})), None);
    }
    let server = fixture.serve();
    assert_eq!(all(&server.get(&format!("/sessions/{parent}"))["agents"], "call"), [call]);
}

/// A file that could not be read before it changed existed nonetheless.
#[test]
fn a_content_that_is_not_known_has_no_hash() {
    let fixture = ServeFixture::new();
    let session = recorded_session(&fixture);
    let file = |hash: String| {
        let (size, mode) = (1, 0o644);
        Node::File(FileNode {
            hash,
            size,
            mode,
            owner: None,
            xattrs: Vec::new(),
            linked: None,
            modified: None,
        })
    };
    let change = Change::new(format!("{}/a", fixture.workspace()), file(String::new()), file("0".repeat(64)));
    let changing = receipt(&session, "Bash", json!({"command": "x"}));
    changing.changed(change);
    let call = end(&changing, None);
    let server = fixture.serve();
    let before = server.get(&format!("/calls/{call}"))["changes"]["changes"][0]["before"].clone();
    assert_eq!((&before["kind"], before.get("hash")), (&json!("file"), Some(&Value::Null)));
    let path = format!("/sessions/{}/export", session.session().unwrap());
    let export = server.api(ACT, "GET", &path, None);
    assert_eq!(export.status, 200);
    assert!(!export.text().contains("/api/v1/diff?"), "an export shows the file as added");
}

#[test]
fn an_export_leaves_out_what_cannot_be_read() {
    let fixture = ServeFixture::new();
    let session = recorded_session(&fixture);
    let result = |bytes: usize| end(&receipt(&session, "Read", json!({})), Some("x".repeat(bytes)));
    let (read, unread) = (result(100), result(1 << 20));
    // A result of this length is stored as a file.
    std::fs::remove_dir_all(fixture.cli.home().join("blobs")).unwrap();
    let server = fixture.serve();
    assert_ne!(server.api(ACT, "GET", &format!("/calls/{unread}"), None).status, 200);
    let session = session.session().unwrap();
    let export = server.api(ACT, "GET", &format!("/sessions/{session}/export"), None);
    assert_eq!(export.status, 200, "{}", export.text());
    let html = export.text();
    let has = |call: i64| html.contains(&format!("\"/api/v1/calls/{call}\""));
    assert_eq!((has(read), has(unread)), (true, false));
    assert_eq!(server.api(ACT, "GET", "/sessions/nowhere/export", None).status, 404);
}
