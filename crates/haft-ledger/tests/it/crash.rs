//! kill -9 at any moment: what was acknowledged is there, and the rest is interrupted.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use haft_ledger::{CallRecord, Ledger};
use haft_tool::{Change, ErrorKind, Intent, Node, ReceiptState, Record};

use crate::fixture::{EmptyView, Fixture, blank_receipt, file, finish, handle, hash_of, intent};

const HOME: &str = "HAFT_TEST_CRASH_HOME";
const SEED: &str = "HAFT_TEST_CRASH_SEED";

/// A pseudo-random number, so that a failing round can be repeated.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// Writes calls until it is killed, and prints each step that the ledger has acknowledged. The test below starts it; by
/// itself it does nothing.
#[test]
fn victim() {
    let Some(home) = std::env::var_os(HOME) else { return };
    let handle = handle(Path::new(&home));
    let mut random: u64 = std::env::var(SEED).unwrap().parse().unwrap();
    let mut out = std::io::stdout();
    loop {
        let record = CallRecord::new(Arc::clone(&handle), blank_receipt());
        for n in 0..next(&mut random) % 3 {
            let size = usize::try_from(next(&mut random) % 60_000).unwrap();
            let before = next(&mut random).to_le_bytes().repeat(size / 8 + 1);
            let change = Change::new(format!("/w/{n}"), file(&before), Node::Absent);
            let temp = Some(PathBuf::from(format!("/w/.{n}.tmp")));
            record.intend(&mut [Intent { temp, ..intent(&change, &before) }]).unwrap();
            writeln!(out, "\nchange {} {}", record.receipt_id(), hash_of(&change.before)).unwrap();
            record.changed(change);
        }
        writeln!(out, "\nfinish {}", finish(&record).id).unwrap();
    }
}

#[test]
fn acknowledged_calls_survive_a_kill_and_the_rest_is_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    let mut random = 7;
    let mut interrupted_in_all = 0;
    for round in 0..50 {
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::victim", "--nocapture", "--test-threads=1"])
            .env(HOME, &home)
            .env(SEED, round.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(victim.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut changes: BTreeMap<i64, Vec<String>> = BTreeMap::new();
        let mut finished = BTreeSet::new();
        let mut note = |line: &str| {
            let words: Vec<_> = line.split(' ').collect();
            match words[..] {
                ["change", id, hash] => changes.entry(id.parse().unwrap()).or_default().push(hash.to_owned()),
                ["finish", id] => drop(finished.insert(id.parse::<i64>().unwrap())),
                _ => return false,
            }
            true
        };
        let mut acknowledged = next(&mut random) % 25;
        while acknowledged > 0 {
            let line = lines.next().expect("the victim writes until it is killed");
            acknowledged -= u64::from(note(&line));
        }
        for n in 0..next(&mut random) % 200_000 {
            std::hint::black_box(n);
        }
        victim.kill().unwrap();
        for line in lines {
            note(&line);
        }
        victim.wait().unwrap();
        if !home.join("ledger.db").exists() {
            continue;
        }

        let ledger = Ledger::open(&home).unwrap();
        let recovered = ledger.recover(&mut EmptyView).unwrap();
        assert!(recovered.len() <= 1, "round {round}: the victim made one call at a time");
        for (id, hashes) in &changes {
            let receipt = ledger.receipt(*id).unwrap();
            let kept: Vec<_> = receipt.changes.iter().map(|change| hash_of(&change.before)).collect();
            assert!(
                kept.len() >= hashes.len() && kept[..hashes.len()] == hashes[..],
                "round {round}, call {id}"
            );
            for hash in kept {
                ledger.blob(hash).unwrap();
            }
        }
        for id in &finished {
            assert_eq!(
                ledger.receipt(*id).unwrap().state,
                ReceiptState::Completed,
                "round {round}, call {id}"
            );
        }
        for (receipt, temps) in &recovered {
            assert_eq!(receipt.state, ReceiptState::Interrupted);
            assert!(!finished.contains(&receipt.id));
            assert_eq!(temps.len(), receipt.changes.len());
            assert_eq!(&ledger.receipt(receipt.id).unwrap(), receipt);
        }
        interrupted_in_all += recovered.len();
        assert!(ledger.recover(&mut EmptyView).unwrap().is_empty(), "each is returned once");
        ledger.check().unwrap();
    }
    assert!(interrupted_in_all > 0, "no kill ever hit a running call");
}

#[test]
fn interrupted_call_can_be_undone_and_names_its_temporary_files() {
    let fixture = Fixture::new();
    let (record, change) = (fixture.record(), Change::new("/w/a", file(b"before"), file(b"after")));
    let temp = PathBuf::from("/w/.a.tmp");
    record.intend(&mut [Intent { temp: Some(temp.clone()), ..intent(&change, b"before") }]).unwrap();
    fixture.kill_running();
    let recovered = fixture.ledger.recover(&mut EmptyView).unwrap();
    let [(receipt, temps)] = &recovered[..] else { panic!("{recovered:?}") };
    assert_eq!(
        (receipt.state, receipt.error_kind),
        (ReceiptState::Interrupted, Some(ErrorKind::Interrupted))
    );
    assert_eq!(temps, &[temp]);
    assert_eq!(fixture.ledger.next_to_undo(Path::new("/w")).unwrap().as_ref(), Some(receipt));
    assert_eq!(fixture.ledger.blob(hash_of(&change.before)).unwrap(), b"before");
    assert!(fixture.ledger.recover(&mut EmptyView).unwrap().is_empty());
}
