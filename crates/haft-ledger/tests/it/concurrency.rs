//! Many threads and processes on one ledger.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;

use haft_ledger::{CallRecord, GcPolicy, Ledger, ReceiptQuery};
use haft_tool::{CallEnd, Change, Node, ReceiptState, Record};

use crate::fixture::{Fixture, blank_receipt, ended, file, finish, handle, hash_of, intent};

#[test]
fn two_handles_of_one_directory_lose_nothing_and_use_no_number_twice() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    // Both create the ledger at the same moment, too.
    let write = || {
        let handle = handle(&home);
        let numbers = (0..500).map(|n| {
            let record = CallRecord::new(Arc::clone(&handle), blank_receipt());
            if n % 50 == 0 {
                let bytes = format!("{} {n}", handle.session().unwrap()).repeat(1 + n * 20).into_bytes();
                let change = Change::new("/w/a", file(&bytes), Node::Absent);
                record.intend(&mut [intent(&change, &bytes)]).unwrap();
                record.changed(change);
            }
            finish(&record).id
        });
        numbers.collect::<Vec<_>>()
    };
    let written: Vec<i64> = thread::scope(|scope| {
        let (a, b) = (scope.spawn(write), scope.spawn(write));
        [a.join().unwrap(), b.join().unwrap()].concat()
    });
    let numbers: BTreeSet<_> = written.iter().copied().collect();
    assert_eq!(numbers.len(), 1_000);
    let ledger = Ledger::open(&home).unwrap();
    let receipts = ledger.receipts(&ReceiptQuery { limit: 2_000, ..ReceiptQuery::default() }).unwrap();
    assert_eq!(receipts.iter().map(|receipt| receipt.id).collect::<BTreeSet<_>>(), numbers);
    for change in receipts.iter().flat_map(|receipt| &receipt.changes) {
        ledger.blob(hash_of(&change.before)).unwrap();
    }
}

#[test]
fn one_ledger_serves_many_threads() {
    let fixture = Fixture::new();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let receipt = fixture.read();
                    assert_eq!(fixture.ledger.receipt(receipt.id).unwrap(), receipt);
                }
            });
        }
    });
    assert_eq!(fixture.ledger.stats().unwrap().receipts, 200);
}

#[test]
fn gc_never_removes_what_a_running_call_needs() {
    let fixture = Fixture::new();
    let writer = fixture.other_session();
    thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let ledger = writer.ledger().unwrap();
            for n in 0..60_u32 {
                // The same few contents again and again, so that one is removed while it is written again.
                let bytes = vec![b'a' + u8::try_from(n % 3).unwrap(); if n % 2 == 0 { 40_000 } else { 100 }];
                let record = CallRecord::new(Arc::clone(&writer), blank_receipt());
                let change = Change::new("/w/a", file(&bytes), Node::Absent);
                record.intend(&mut [intent(&change, &bytes)]).unwrap();
                assert_eq!(ledger.blob(hash_of(&change.before)).unwrap(), bytes, "round {n}");
                record.changed(change);
                let full_output = Some(String::from_utf8(bytes).unwrap());
                record.finish(&CallEnd { full_output, ..ended(ReceiptState::Completed) }).unwrap();
            }
        });
        while !writing.is_finished() {
            fixture.ledger.gc(&GcPolicy { max_bytes: Some(0), ..GcPolicy::default() }).unwrap();
        }
    });
    for receipt in fixture.ledger.receipts(&ReceiptQuery::default()).unwrap() {
        fixture.ledger.blob(hash_of(&receipt.changes[0].before)).unwrap();
        fixture.ledger.blob(receipt.full_output.as_ref().unwrap()).unwrap();
    }
    fixture.ledger.check().unwrap();
}
