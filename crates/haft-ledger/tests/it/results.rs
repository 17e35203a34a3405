//! The result of every call is stored.

use haft_ledger::GcPolicy;
use haft_tool::{CallEnd, ErrorKind, ReceiptState};

use crate::fixture::{Fixture, ended};

fn with_result(fixture: &Fixture, result: &str) -> i64 {
    let end = CallEnd { result: Some(result.to_owned()), ..ended(ReceiptState::Completed) };
    fixture.record().finish(&end).unwrap().id
}

#[test]
fn result_of_every_size_is_stored() {
    let fixture = Fixture::new();
    for text in ["", "short", &"é".repeat(16 * 1024), &"long\n".repeat(50_000)] {
        let id = with_result(&fixture, text);
        assert_eq!(fixture.ledger.result(id).unwrap().as_deref(), Some(text));
    }
    assert_eq!(fixture.ledger.stats().unwrap().blobs, 1, "only the long one is a blob");
}

#[test]
fn call_without_a_result_has_none_and_unknown_call_is_an_error() {
    let fixture = Fixture::new();
    let receipt = fixture.read();
    assert_eq!(fixture.ledger.result(receipt.id).unwrap(), None);
    assert_eq!(fixture.ledger.result(99).unwrap_err().kind, ErrorKind::NotFound);
}

#[test]
fn result_of_a_call_that_was_running_is_stored() {
    let fixture = Fixture::new();
    let (record, id) = fixture.running();
    assert_eq!(fixture.ledger.result(id).unwrap(), None);
    let end = CallEnd { result: Some("shown".to_owned()), ..ended(ReceiptState::Failed) };
    record.finish(&end).unwrap();
    assert_eq!(fixture.ledger.result(id).unwrap().as_deref(), Some("shown"));
}

#[test]
fn full_output_is_stored_beside_the_result() {
    let fixture = Fixture::new();
    for full in ["all of it".to_owned(), "all of it\n".repeat(10_000)] {
        let end = CallEnd {
            result: Some("a part".to_owned()),
            full_output: Some(full.clone()),
            ..ended(ReceiptState::Completed)
        };
        let receipt = fixture.record().finish(&end).unwrap();
        assert_eq!(fixture.ledger.blob(receipt.full_output.as_ref().unwrap()).unwrap(), full.as_bytes());
        assert_eq!(fixture.ledger.result(receipt.id).unwrap().as_deref(), Some("a part"));
        assert_eq!(fixture.ledger.receipt(receipt.id).unwrap(), receipt);
    }
}

#[test]
fn gc_removes_results_with_their_calls_and_keeps_the_others() {
    let fixture = Fixture::new();
    let (old, new) = ("old\n".repeat(20_000), "new\n".repeat(20_000));
    let (old_id, new_id) = (with_result(&fixture, &old), with_result(&fixture, &new));
    fixture.ledger.gc(&GcPolicy::default()).unwrap();
    assert_eq!(fixture.ledger.result(old_id).unwrap(), Some(old));
    let report = fixture.ledger.gc(&GcPolicy { max_bytes: Some(0), ..GcPolicy::default() }).unwrap();
    assert_eq!((report.receipts_removed, report.blobs_removed), (1, 1));
    assert!(fixture.ledger.result(old_id).is_err());
    assert_eq!(fixture.ledger.result(new_id).unwrap(), Some(new));
}
