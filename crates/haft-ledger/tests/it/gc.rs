//! Garbage collection.

use std::fs;

use haft_ledger::{GcPolicy, Ledger, ReceiptQuery};
use haft_tool::{Change, Node, Record};

use crate::fixture::{Fixture, blank_receipt, file, finish, hash_of, intent, large};

fn ids(fixture: &Fixture) -> Vec<i64> {
    let all = ReceiptQuery { limit: 10_000, ..ReceiptQuery::default() };
    fixture.ledger.receipts(&all).unwrap().iter().map(|receipt| receipt.id).collect()
}

fn fill(fixture: &Fixture, calls: u32) {
    for n in 0..calls {
        let size = if n % 10 == 0 { 60_000 } else { 2_000 };
        fixture.write("a", &n.to_le_bytes().repeat(size / 4), b"new");
    }
}

#[test]
fn ledger_shrinks_below_the_limit_and_the_oldest_go_first() {
    let fixture = Fixture::new();
    fill(&fixture, 300);
    let limit = 700_000;
    let report = fixture.ledger.gc(&GcPolicy { max_bytes: Some(limit), ..GcPolicy::default() }).unwrap();
    assert!(report.bytes_before > 2 * limit, "{report:?}");
    assert!(report.bytes_after <= limit, "{report:?}");
    assert!(report.bytes_after > limit / 2, "no more than needed goes: {report:?}");
    assert_eq!(fixture.ledger.stats().unwrap().bytes, report.bytes_after);
    let left = ids(&fixture);
    assert_eq!(left.len() as u64, 300 - report.receipts_removed);
    let newest: Vec<i64> = (1..=300).rev().take(left.len()).collect();
    assert_eq!(left, newest, "the newest stay");
    let all = ReceiptQuery { limit: 1_000, ..ReceiptQuery::default() };
    for receipt in fixture.ledger.receipts(&all).unwrap() {
        fixture.ledger.blob(hash_of(&receipt.changes[0].before)).unwrap();
    }
    assert!(fixture.ledger.receipt(1).is_err());
    fixture.ledger.check().unwrap();
    assert_eq!(fixture.write("b", b"0", b"1").id, 301);
}

#[test]
fn dry_run_reports_what_would_go_and_changes_nothing() {
    let fixture = Fixture::new();
    fill(&fixture, 200);
    let policy = GcPolicy { max_bytes: Some(500_000), dry_run: true, ..GcPolicy::default() };
    let before = (ids(&fixture), fixture.ledger.stats().unwrap());
    let planned = fixture.ledger.gc(&policy).unwrap();
    assert_eq!((ids(&fixture), fixture.ledger.stats().unwrap()), before);
    let done = fixture.ledger.gc(&GcPolicy { dry_run: false, ..policy }).unwrap();
    assert_eq!(
        (planned.receipts_removed, planned.blobs_removed),
        (done.receipts_removed, done.blobs_removed)
    );
    assert!(planned.receipts_removed > 0 && planned.bytes_after <= 500_000, "{planned:?}");
}

#[test]
fn only_receipts_older_than_the_limit_go() {
    let fixture = Fixture::new();
    fill(&fixture, 20);
    fixture.tamper("UPDATE receipts SET started_at = 1 WHERE id IN (3, 5, 20)");
    let policy = GcPolicy { older_than_ms: Some(60_000), ..GcPolicy::default() };
    let report = fixture.ledger.gc(&policy).unwrap();
    assert_eq!((report.receipts_removed, report.blobs_removed), (2, 2));
    assert_eq!(ids(&fixture), (1..=20).rev().filter(|id| ![3, 5].contains(id)).collect::<Vec<_>>());
    assert_eq!(fixture.read().id, 21, "the newest stays, so that its number is not used again");
}

#[test]
fn running_call_stays() {
    let fixture = Fixture::new();
    let (running, change) = (fixture.record(), Change::new("/w/a", file(b"before"), Node::Absent));
    running.intend(&mut [intent(&change, b"before")]).unwrap();
    fill(&fixture, 5);
    fixture
        .ledger
        .gc(&GcPolicy { max_bytes: Some(0), older_than_ms: Some(0), ..GcPolicy::default() })
        .unwrap();
    assert_eq!(ids(&fixture), [6, 1]);
    assert_eq!(fixture.ledger.blob(hash_of(&change.before)).unwrap(), b"before");
}

#[test]
fn blob_stays_while_any_receipt_needs_it() {
    let fixture = Fixture::new();
    let age = |id: i64| fixture.tamper(&format!("UPDATE receipts SET started_at = 1 WHERE id = {id}"));
    let policy = GcPolicy { older_than_ms: Some(60_000), ..GcPolicy::default() };
    for before in [&large(7)[..], b"small"] {
        let (first, second) = (fixture.write("a", before, b"x"), fixture.write("b", before, b"x"));
        let hash = hash_of(&first.changes[0].before).to_owned();
        age(first.id);
        fixture.ledger.gc(&policy).unwrap();
        assert_eq!(fixture.ledger.blob(&hash).unwrap(), before);
        age(second.id);
        fixture.read();
        fixture.ledger.gc(&policy).unwrap();
        assert!(fixture.ledger.blob(&hash).is_err());
    }
}

#[test]
fn files_without_a_row_are_removed() {
    let fixture = Fixture::new();
    let hash = hash_of(&fixture.write("a", &large(7), b"x").changes[0].before).to_owned();
    let folder = fixture.home().join("blobs").join(&hash[..2]);
    let orphans = [folder.join("new-0123456789abcdef"), folder.join("0".repeat(62))];
    for orphan in &orphans {
        fs::write(orphan, large(0)).unwrap();
    }
    fixture.ledger.gc(&GcPolicy::default()).unwrap();
    assert!(orphans.iter().all(|orphan| !orphan.exists()));
    assert_eq!(fixture.ledger.blob(&hash).unwrap().len(), 50_000);
}

#[test]
fn empty_session_goes_once_its_process_is_gone() {
    let fixture = Fixture::new();
    fixture.read();
    let other = fixture.other_session();
    finish(&haft_ledger::CallRecord::new(std::sync::Arc::clone(&other), blank_receipt()));
    let all = GcPolicy { max_bytes: Some(0), ..GcPolicy::default() };
    assert_eq!(fixture.ledger.gc(&all).unwrap().sessions_removed, 0, "this process may continue it");
    fixture.tamper("UPDATE sessions SET process = '1 1 another-boot -'");
    let report = Ledger::open(fixture.home()).unwrap().gc(&all).unwrap();
    assert_eq!(report.sessions_removed, 1);
    assert!(fixture.ledger.session(&fixture.session).is_err());
    fixture.ledger.session(other.session().unwrap()).unwrap();
}
