//! Many at once on one ledger.

use std::collections::BTreeSet;
use std::thread;

use haft_ledger::{GcPolicy, Ledger, Query};
use haft_tool::{FileContent, Intent, Node, State};

use crate::setting::{call, change, file, hash_of, new_session, setting};

#[test]
fn two_openings_of_one_home_lose_nothing_and_number_nothing_twice() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    // Both make the ledger at the same moment, too.
    let write = || {
        let ledger = Ledger::open(&home).unwrap();
        let session = ledger.start_session(&new_session("/w")).unwrap();
        let numbers = (0..500).map(|n| {
            let mut receipt = call(&session);
            if n % 50 == 0 {
                let bytes = format!("{session} {n}").repeat(1 + n * 20).into_bytes();
                let change = change("/w/a", file(&bytes), Node::Absent);
                ledger
                    .before_changes(
                        &mut receipt,
                        &mut [Intent {
                            change: change.clone(),
                            previous: FileContent::Bytes(&bytes),
                            temp: None,
                        }],
                    )
                    .unwrap();
                receipt.state = State::Completed;
            }
            ledger.finish(&mut receipt).unwrap();
            receipt.id
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
    let kept = ledger.receipts(&Query { limit: 2_000, ..Query::default() }).unwrap();
    assert_eq!(kept.iter().map(|receipt| receipt.id).collect::<BTreeSet<_>>(), numbers);
    for change in kept.iter().flat_map(|receipt| &receipt.changes) {
        ledger.blob(hash_of(&change.before)).unwrap();
    }
}

#[test]
fn one_ledger_serves_many_threads() {
    let set = setting();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let receipt = set.read();
                    assert_eq!(set.ledger.receipt(receipt.id).unwrap(), receipt);
                }
            });
        }
    });
    assert_eq!(set.ledger.stats().unwrap().receipts, 200);
}

#[test]
fn garbage_collection_never_takes_what_somebody_is_about_to_need() {
    let set = setting();
    let writer = Ledger::open(set.home()).unwrap();
    thread::scope(|scope| {
        let writing = scope.spawn(|| {
            for n in 0..60_u32 {
                // The same few bytes again and again, so that one is forgotten while the other is written.
                let bytes = vec![u8::try_from(n % 3).unwrap(); if n % 2 == 0 { 40_000 } else { 100 }];
                let mut receipt = call(&set.session);
                let change = change("/w/a", file(&bytes), Node::Absent);
                writer
                    .before_changes(
                        &mut receipt,
                        &mut [Intent {
                            change: change.clone(),
                            previous: FileContent::Bytes(&bytes),
                            temp: None,
                        }],
                    )
                    .unwrap();
                assert_eq!(writer.blob(hash_of(&change.before)).unwrap(), bytes, "round {n}");
                receipt.state = State::Completed;
                let output = writer.keep(&bytes).unwrap();
                assert_eq!(writer.blob(&output).unwrap(), bytes, "kept in round {n}");
                receipt.full_output = Some(output);
                writer.finish(&mut receipt).unwrap();
            }
        });
        while !writing.is_finished() {
            set.ledger.gc(&GcPolicy { max_bytes: Some(0), ..GcPolicy::default() }).unwrap();
        }
    });
    for receipt in set.ledger.receipts(&Query::default()).unwrap() {
        set.ledger.blob(hash_of(&receipt.changes[0].before)).unwrap();
        set.ledger.blob(receipt.full_output.as_ref().unwrap()).unwrap();
    }
    set.ledger.check().unwrap();
}
