//! A task in the ledger: its own receipt, its changes, what it was refused.

use haft::{CallOptions, ReceiptState, Reversible, UndoTarget, json};

use crate::fixture::tasks::{TaskFixture, id, structured};

#[tokio::test]
async fn a_task_has_a_receipt_of_its_own_and_its_changes_are_taken_back() {
    let fixture = TaskFixture::new();
    fixture.cli.write("old", "old");
    let started = fixture.started("echo new > old; mkdir made; echo x > made/x; rm -f go; echo said").await;
    let number = structured(&started)["receipt"].as_i64().unwrap();
    let ended = fixture.end(&id(&started)).await;
    assert_eq!(structured(&ended)["task"]["status"], "completed", "{}", ended.output.as_text());

    let ledger = fixture.haft.ledger().unwrap();
    let own = ledger.receipt(started.receipt.id).unwrap();
    assert_eq!(
        (own.state, own.changes.len(), &own.reversible),
        (ReceiptState::Completed, 0, &Reversible::Yes)
    );
    let receipt = ledger.receipt(number).unwrap();
    assert_eq!(receipt.call_id, format!("{}/task", own.call_id));
    assert_eq!((receipt.tool.as_str(), receipt.state), ("Bash", ReceiptState::Completed));
    assert_eq!((receipt.changes.len(), &receipt.reversible), (3, &Reversible::Yes), "{:?}", receipt.changes);
    assert!(receipt.enforcement.unwrap().contains("witness"));
    assert_eq!(receipt.decision, own.decision);
    assert_eq!(ledger.blob(&receipt.full_output.unwrap()).unwrap(), b"said\n", "what it said stays readable");

    let preview = fixture.haft.undo_preview(&UndoTarget::Last).unwrap();
    assert_eq!(preview.receipts.first().unwrap().id, number);
    fixture.haft.undo(&preview, false, CallOptions::default()).await.unwrap();
    assert_eq!(fixture.cli.read("old"), "old");
    assert!(!fixture.cli.path("made").exists());
}

#[tokio::test]
async fn a_running_task_is_running_in_the_ledger_and_is_not_taken_back_yet() {
    let fixture = TaskFixture::new();
    let started = fixture.started("echo x > made; echo up; wait_for go").await;
    let (id, number) = (id(&started), structured(&started)["receipt"].as_i64().unwrap());
    fixture.until(&id, 3).await;
    assert_eq!(fixture.haft.ledger().unwrap().receipt(number).unwrap().state, ReceiptState::Running);
    let preview = fixture.haft.undo_preview(&UndoTarget::Call(number)).unwrap();
    assert_eq!(preview.blocked, [(number, "it is still running".to_owned())]);
    fixture.haft.call("TaskStop", json!({"task_id": id})).await;
    let receipt = fixture.haft.ledger().unwrap().receipt(number).unwrap();
    assert_eq!((receipt.state, receipt.changes.len()), (ReceiptState::Interrupted, 1));
}

#[tokio::test]
async fn what_a_task_is_refused_is_told_with_its_end() {
    let fixture = TaskFixture::new();
    let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let id = fixture.start(&format!("echo x > {}/x", outside.path().display())).await;
    let ended = fixture.end(&id).await;
    assert!(ended.output.as_text().contains("Refused: write"), "{}", ended.output.as_text());
    assert_eq!(structured(&ended)["denials"].as_array().unwrap().len(), 1);
    assert!(!outside.path().join("x").exists());
}
