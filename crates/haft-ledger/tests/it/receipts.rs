//! What is written of a call, and when.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_ledger::{CallRecord, GcPolicy, Ledger, ReceiptQuery};
use haft_tool::{
    CallEnd, Change, Effect, ErrorKind, FileContent, Intent, Node, Receipt, ReceiptState, Record, json,
};

use crate::fixture::{EmptyView, Fixture, blank_receipt, ended, file, finish, hash_of, intent};

#[test]
fn call_that_only_reads_is_numbered_and_stored() {
    let fixture = Fixture::new();
    let (first, second) = (fixture.read(), fixture.read());
    assert_eq!((first.id, second.id), (1, 2));
    assert_eq!(first.session, fixture.session);
    assert_eq!(fixture.ledger.receipt(1).unwrap(), first);
    assert_eq!(fixture.ledger.receipt(3).unwrap_err().kind, ErrorKind::NotFound);
}

#[test]
fn running_call_is_visible_to_others_until_it_is_finished() {
    let fixture = Fixture::new();
    let other = Ledger::open(fixture.home()).unwrap();
    let (record, id) = fixture.running();
    assert_eq!(record.begin().unwrap(), id, "it begins once");
    assert_eq!(other.receipt(id).unwrap().state, ReceiptState::Running);
    assert!(other.recover(&mut EmptyView).unwrap().is_empty(), "its process lives");
    let failed = CallEnd { error_kind: Some(ErrorKind::Timeout), ..ended(ReceiptState::Failed) };
    let receipt = record.finish(&failed).unwrap();
    assert_eq!((receipt.id, receipt.error_kind), (id, Some(ErrorKind::Timeout)));
    assert_eq!(other.receipt(id).unwrap(), receipt);
}

#[test]
fn intent_and_previous_content_are_stored_before_the_change() {
    let fixture = Fixture::new();
    let other = Ledger::open(fixture.home()).unwrap();
    for size in [0, 10, 32 * 1024, 32 * 1024 + 1, 300_000] {
        let before = vec![b'x'; size];
        let (record, change) = (fixture.record(), Change::new("/w/a", file(&before), file(b"new")));
        record.intend(&mut [intent(&change, &before)]).unwrap();
        let seen = other.receipt(record.receipt_id()).unwrap();
        assert_eq!((seen.state, &seen.changes[..]), (ReceiptState::Running, std::slice::from_ref(&change)));
        assert_eq!(other.blob(hash_of(&change.before)).unwrap(), before);
    }
}

#[test]
fn only_changes_that_were_made_are_on_the_receipt() {
    let fixture = Fixture::new();
    let (record, id) = fixture.running();
    for name in ["a", "b", "c"] {
        let change = Change::new(format!("/w/{name}"), file(name.as_bytes()), Node::Absent);
        record.intend(&mut [intent(&change, name.as_bytes())]).unwrap();
        if name != "b" {
            record.changed(change);
        }
    }
    let made = Change::new("/w/d", Node::Absent, Node::directory(0o755));
    record.intend(&mut [Intent { change: made.clone(), previous: FileContent::None, temp: None }]).unwrap();
    record.changed(made);
    finish(&record);
    let receipt = fixture.ledger.receipt(id).unwrap();
    let paths: Vec<_> = receipt.changes.iter().map(|change| change.path.clone()).collect();
    assert_eq!(paths, [PathBuf::from("/w/a"), "/w/c".into(), "/w/d".into()]);
    fixture.ledger.gc(&GcPolicy::default()).unwrap();
    assert!(fixture.ledger.blob(hash_of(&file(b"b"))).is_err(), "nothing needs it any more");
    assert_eq!(fixture.ledger.blob(hash_of(&file(b"a"))).unwrap(), b"a");
}

#[test]
fn content_with_another_hash_is_refused_and_nothing_is_written() {
    let fixture = Fixture::new();
    let (record, change) = (fixture.record(), Change::new("/w/a", file(b"one"), Node::Absent));
    let error = record.intend(&mut [intent(&change, b"two")]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert_eq!((record.receipt_id(), fixture.ledger.stats().unwrap().receipts), (0, 0));
}

#[test]
fn ended_call_changes_nothing_and_has_one_receipt() {
    let fixture = Fixture::new();
    let record = fixture.record();
    finish(&record);
    let change = Change::new("/w/a", Node::Absent, Node::directory(0o755));
    let late = record.intend(&mut [Intent { change, previous: FileContent::None, temp: None }]);
    assert_eq!(late.unwrap_err().kind, ErrorKind::Interrupted);
    assert!(record.finish(&ended(ReceiptState::Completed)).is_err());
    assert!(record.abandon(&ended(ReceiptState::Interrupted)).is_none());
    assert_eq!(fixture.ledger.stats().unwrap().receipts, 1);
}

#[test]
fn call_cannot_end_as_running() {
    let fixture = Fixture::new();
    assert!(fixture.record().finish(&ended(ReceiptState::Running)).is_err());
    assert_eq!(fixture.ledger.stats().unwrap().receipts, 0);
}

#[test]
fn lists_are_newest_first_and_can_be_filtered_and_continued() {
    let fixture = Fixture::new();
    let other = fixture.other_session();
    for n in 1..=10 {
        if n % 2 == 0 {
            fixture.write("a", b"old", b"new");
        } else {
            let mut receipt = blank_receipt();
            receipt.workspace = "/v".into();
            finish(&CallRecord::new(Arc::clone(&other), receipt));
        }
    }
    let ids = |query: ReceiptQuery| -> Vec<i64> {
        let summaries = fixture.ledger.summaries(&query).unwrap();
        let receipts = fixture.ledger.receipts(&query).unwrap();
        assert!(summaries.iter().map(|summary| &summary.receipt).eq(&receipts));
        receipts.iter().map(|receipt| receipt.id).collect()
    };
    let all = ReceiptQuery::default();
    assert_eq!(ids(all.clone()), [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(ids(ReceiptQuery { limit: 2, before: Some(7), ..all.clone() }), [6, 5]);
    assert_eq!(ids(ReceiptQuery { only_changes: true, before: Some(8), ..all.clone() }), [6, 4, 2]);
    let here = ReceiptQuery { workspace: Some("/w".into()), ..all.clone() };
    assert_eq!(ids(ReceiptQuery { limit: 3, ..here.clone() }), [10, 8, 6]);
    assert_eq!(ids(ReceiptQuery { only_changes: true, before: Some(5), ..here.clone() }), [4, 2]);
    let in_other = ReceiptQuery { session: Some(other.session().unwrap().to_owned()), ..all.clone() };
    assert_eq!(ids(ReceiptQuery { before: Some(6), ..in_other.clone() }), [5, 3, 1]);
    assert!(ids(ReceiptQuery { workspace: here.workspace, ..in_other.clone() }).is_empty());
    assert!(ids(ReceiptQuery { only_changes: true, ..in_other }).is_empty());
    assert!(ids(ReceiptQuery { workspace: Some("/w/".into()), limit: 0, ..all }).is_empty());
}

#[test]
fn long_list_of_changes_is_read_whole_but_left_out_of_summaries() {
    let fixture = Fixture::new();
    let (record, id) = fixture.running();
    let created = |n: u32| Change::new(format!("/w/{n}"), Node::Absent, file(&n.to_le_bytes()));
    record.witnessed((0..1_000).map(created).collect());
    let receipt = finish(&record);
    assert_eq!(receipt.changes.len(), 1_000);
    assert_eq!(fixture.ledger.receipt(id).unwrap(), receipt);
    assert_eq!(fixture.ledger.receipts(&ReceiptQuery::default()).unwrap(), [receipt]);
    let summary = fixture.ledger.summaries(&ReceiptQuery::default()).unwrap().remove(0);
    assert_eq!((summary.change_count, summary.receipt.changes.len()), (1_000, 0));
}

#[test]
fn paths_that_are_not_utf8_are_read_back_unchanged() {
    let fixture = Fixture::new();
    let path = |name: &[u8]| PathBuf::from(OsStr::from_bytes(name));
    let mut receipt = blank_receipt();
    receipt.workspace = path(b"/w-\xff\xfe");
    receipt.effects = vec![Effect::Write { path: path(b"/w-\xff/\x80a") }];
    let record = fixture.record_of(receipt);
    let change = Change::new(path(b"/w-\xff\xfe/caf\xe9"), Node::link(path(b"\xc3")), Node::Absent);
    let temp = Some(path(b"/w-\xff\xfe/.\xe9"));
    record.intend(&mut [Intent { change: change.clone(), previous: FileContent::None, temp }]).unwrap();
    let running = fixture.ledger.receipt(record.receipt_id()).unwrap();
    assert_eq!(running.changes, std::slice::from_ref(&change));
    record.changed(change);
    let receipt = finish(&record);
    assert_eq!(fixture.ledger.receipt(receipt.id).unwrap(), receipt);
    assert_eq!(fixture.ledger.next_to_undo(&receipt.workspace).unwrap().unwrap(), receipt);
}

#[test]
fn undo_goes_back_call_by_call_and_redo_forward_again() {
    let fixture = Fixture::new();
    let here = Path::new("/w");
    let undone_by = |receipt: &Receipt| fixture.ledger.undone_by(receipt.id).unwrap();
    let next = || {
        let undo = fixture.ledger.next_to_undo(here).unwrap().map(|receipt| receipt.id);
        (undo, fixture.ledger.next_to_redo(here).unwrap().map(|receipt| receipt.id))
    };
    assert_eq!(next(), (None, None));
    let (one, two) = (fixture.write("a", b"0", b"1"), fixture.write("a", b"1", b"2"));
    fixture.read();
    assert_eq!(next(), (Some(two.id), None));
    let undo_two = fixture.undo(&[&two]);
    assert_eq!(next(), (Some(one.id), Some(undo_two.id)));
    let undo_one = fixture.undo(&[&one]);
    assert_eq!(next(), (None, Some(undo_one.id)));
    assert_eq!(undone_by(&one), Some(undo_one.id));

    let redo_one = fixture.undo(&[&undo_one]);
    assert_eq!(undone_by(&one), None, "it is effective again");
    assert_eq!(undone_by(&undo_one), Some(redo_one.id));
    assert_eq!(next(), (Some(one.id), Some(undo_two.id)), "a redo is no undo to redo");
    let undo_redo = fixture.undo(&[&redo_one]);
    assert_eq!(undone_by(&one), Some(undo_one.id), "the first undo is effective again");
    fixture.undo(&[&undo_redo]);
    fixture.undo(&[&undo_two]);
    assert_eq!(next(), (Some(two.id), None));

    fixture.undo(&[&two]);
    let three = fixture.write("b", b"", b"x");
    assert_eq!(next(), (Some(three.id), None), "after a new change there is nothing to redo");
}

#[test]
fn only_a_completed_undo_counts() {
    let fixture = Fixture::new();
    let wrote = fixture.write("a", b"0", b"1");
    let mut receipt = blank_receipt();
    receipt.undoes = vec![wrote.id, 99];
    let failed = fixture.record_of(receipt);
    failed.finish(&ended(ReceiptState::Failed)).unwrap();
    assert_eq!(fixture.ledger.undone_by(wrote.id).unwrap(), None);
    assert_eq!(fixture.ledger.next_to_undo(Path::new("/w")).unwrap().unwrap().id, wrote.id);
    assert!(fixture.ledger.next_to_redo(Path::new("/w")).unwrap().is_none());
}

#[test]
fn session_has_the_newest_note_of_a_completed_call() {
    let fixture = Fixture::new();
    let set = |state: ReceiptState, note: &str| {
        let record = fixture.record();
        record.set_note("todos", json!(note));
        assert_eq!(record.note("todos").unwrap(), Some(json!(note)), "the call itself sees it at once");
        record.finish(&ended(state)).unwrap();
    };
    assert_eq!(fixture.record().note("todos").unwrap(), None);
    set(ReceiptState::Completed, "one");
    set(ReceiptState::Completed, "two");
    set(ReceiptState::Failed, "three");
    fixture.read();
    assert_eq!(fixture.record().note("todos").unwrap(), Some(json!("two")));
    let other = CallRecord::new(fixture.other_session(), blank_receipt());
    assert_eq!(other.note("todos").unwrap(), None);
}

#[test]
fn task_has_a_running_receipt_of_its_own() {
    let fixture = Fixture::new();
    let call = fixture.record();
    let task = call.open_task().unwrap();
    let receipt = fixture.ledger.receipt(task.receipt_id()).unwrap();
    assert_eq!((receipt.state, receipt.call_id.as_str()), (ReceiptState::Running, "call-1/task"));
    let started = finish(&call);
    assert_ne!(started.id, receipt.id);
    task.witnessed(vec![Change::new("/w/a", Node::Absent, file(b"a"))]);
    task.finish_task(CallEnd { full_output: Some("printed".into()), ..ended(ReceiptState::Completed) })
        .unwrap();
    let receipt = fixture.ledger.receipt(receipt.id).unwrap();
    assert_eq!((receipt.state, receipt.changes.len()), (ReceiptState::Completed, 1));
    assert_eq!(fixture.ledger.blob(&receipt.full_output.unwrap()).unwrap(), b"printed");
    assert!(call.open_task().is_err(), "the call has ended");
}
