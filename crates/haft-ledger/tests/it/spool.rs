//! What a running command is about to touch, and what is kept of it.

use std::fs::{self, File};
use std::io::{Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use haft_ledger::GcPolicy;
use haft_tool::{CallEnd, Change, DirectoryEvent, FileContent, Node, ReceiptState, Record, Reversible};

use crate::fixture::{EmptyView, Fixture, ended, file, finish, hash_of, large};

/// Records the state of a file before a command changes it.
fn witness(record: &dyn Record, path: &str, bytes: &[u8]) {
    record.witness(Path::new(path), &file(bytes), FileContent::Bytes(bytes)).unwrap();
}

/// The same for a file that is read from a handle.
fn witness_open(record: &dyn Record, path: &str, bytes: &[u8]) {
    let mut open: File = tempfile::tempfile().unwrap();
    open.write_all(bytes).unwrap();
    open.rewind().unwrap();
    record.witness(Path::new(path), &file(bytes), FileContent::Reader(&mut open)).unwrap();
}

#[test]
fn only_contents_of_changed_files_are_kept_and_the_spool_is_removed() {
    let fixture = Fixture::new();
    let (record, id) = fixture.running();
    let (big, unchanged) = (large(1), large(2));
    for (path, bytes) in [("/w/small", &b"small"[..]), ("/w/empty", b""), ("/w/unchanged", b"unchanged")] {
        witness(&record, path, bytes);
    }
    witness_open(&record, "/w/big", &big);
    witness(&record, "/w/held", &large(3));
    witness_open(&record, "/w/also_unchanged", &unchanged);
    record.witness(Path::new("/w/new"), &Node::Absent, FileContent::None).unwrap();
    let mode = fs::metadata(fixture.home().join("spool").join(id.to_string())).unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    fixture.ledger.gc(&GcPolicy::default()).unwrap();

    record.witnessed(vec![
        Change::new("/w/small", file(b"small"), file(b"x")),
        Change::new("/w/empty", file(b""), file(b"x")),
        Change::new("/w/big", file(&big), Node::Absent),
        Change::new("/w/held", file(&large(3)), Node::Absent),
        Change::new("/w/new", Node::Absent, file(b"y")),
    ]);
    let receipt = finish(&record);
    assert_eq!(receipt.reversible, Reversible::Yes);
    assert_eq!(fixture.ledger.receipt(id).unwrap(), receipt);
    for bytes in [&b"small"[..], b"", &big, &large(3)] {
        assert_eq!(fixture.ledger.blob(hash_of(&file(bytes))).unwrap(), bytes);
    }
    for bytes in [&b"unchanged"[..], &unchanged] {
        assert!(!fixture.ledger.has(hash_of(&file(bytes))).unwrap());
    }
    assert_eq!((fixture.spool_files(), fixture.ledger.stats().unwrap().blobs), (0, 4));
    fixture.ledger.gc(&GcPolicy::default()).unwrap();
    assert_eq!(fixture.ledger.blob(hash_of(&file(&big))).unwrap(), big);
    fixture.ledger.check().unwrap();
}

#[test]
fn missing_content_makes_the_receipt_partly_reversible() {
    let fixture = Fixture::new();
    let (record, _) = fixture.running();
    let (huge, changing) = (file(b"too large to keep"), file(&large(1)));
    record.witness(Path::new("/w/huge"), &huge, FileContent::None).unwrap();
    // Its content changed after it was hashed.
    record.witness(Path::new("/w/log"), &changing, FileContent::Reader(&mut large(2).as_slice())).unwrap();
    record.witnessed(vec![
        Change::new("/w/huge", huge, Node::Absent),
        Change::new("/w/log", changing, Node::Absent),
    ]);
    let receipt = finish(&record);
    assert_eq!(receipt.reversible.why(), Some("the old bytes of /w/huge and 1 more file were not kept"));
}

#[test]
fn incomplete_end_of_a_spool_is_ignored() {
    let fixture = Fixture::new();
    let spool = |id: i64| fixture.home().join("spool").join(id.to_string());
    let whole = {
        let (record, id) = fixture.running();
        for n in 0..3_u8 {
            witness(&record, &format!("/w/{n}"), &[n; 100]);
        }
        let bytes = fs::read(spool(id)).unwrap();
        fs::remove_file(spool(id)).unwrap();
        bytes
    };
    let each = whole.len() / 3;
    for cut in (0..=whole.len()).step_by(7).chain([each, 2 * each, whole.len()]) {
        let (_record, id) = fixture.running();
        let mut bytes = whole[..cut].to_vec();
        // A power failure may leave zeros after what was written.
        bytes.resize(bytes.len() + cut % 3 * 100, 0);
        fs::write(spool(id), &bytes).unwrap();
        fixture.kill_running();
        let recovered = fixture.ledger.recover(&mut EmptyView).unwrap();
        let receipt = recovered.iter().map(|(receipt, _)| receipt).find(|found| found.id == id).unwrap();
        assert!(receipt.changes.len() >= cut / each, "{cut}");
        for change in &receipt.changes[..cut / each] {
            assert_eq!(fixture.ledger.blob(hash_of(&change.before)).unwrap().len(), 100);
        }
    }
}

#[test]
fn dead_call_keeps_its_contents_and_is_recovered_once() {
    let fixture = Fixture::new();
    let (record, _) = fixture.running();
    witness(&record, "/w/a", b"old");
    witness_open(&record, "/w/b", &large(1));
    assert!(fixture.ledger.recover(&mut EmptyView).unwrap().is_empty(), "its process lives");
    assert_eq!(fixture.spool_files(), 2);
    fixture.kill_running();
    let recovered = fixture.ledger.recover(&mut EmptyView).unwrap();
    let [(receipt, _)] = &recovered[..] else { panic!("{recovered:?}") };
    assert_eq!((receipt.state, &receipt.reversible), (ReceiptState::Interrupted, &Reversible::Yes));
    assert_eq!(
        receipt.changes,
        [Change::new("/w/a", file(b"old"), Node::Absent), Change::new("/w/b", file(&large(1)), Node::Absent)]
    );
    assert_eq!(fixture.ledger.blob(hash_of(&file(b"old"))).unwrap(), b"old");
    assert_eq!(fixture.ledger.blob(hash_of(&file(&large(1)))).unwrap(), large(1));
    assert_eq!(fixture.spool_files(), 0);
    assert!(fixture.ledger.recover(&mut EmptyView).unwrap().is_empty());
    assert_eq!(fixture.ledger.next_to_undo(Path::new("/w")).unwrap().as_ref(), Some(receipt));
}

#[test]
fn move_that_was_refused_or_never_made_is_ignored() {
    for refused in [true, false] {
        let fixture = Fixture::new();
        let (record, _) = fixture.running();
        witness(&record, "/w/a", b"old");
        let (from, to, node) = (Path::new("/w/d"), Path::new("/w/e"), &Node::directory(0o755));
        record.witness_directory(DirectoryEvent::Moved { from, to, node }).unwrap();
        if refused {
            record.cancel_directory().unwrap();
            witness(&record, "/w/a", b"between");
        }
        fixture.kill_running();
        let recovered = fixture.ledger.recover(&mut EmptyView).unwrap();
        assert_eq!(recovered[0].0.changes, [Change::new("/w/a", file(b"old"), Node::Absent)]);
    }
}

#[test]
fn abandoned_command_is_left_to_the_next_recovery() {
    let fixture = Fixture::new();
    let (record, _) = fixture.running();
    witness(&record, "/w/a", b"old");
    let end = CallEnd { error: Some("given up".into()), ..ended(ReceiptState::Interrupted) };
    assert_eq!(record.abandon(&end).unwrap().state, ReceiptState::Interrupted);
    let recovered = fixture.ledger.recover(&mut EmptyView).unwrap();
    assert_eq!(recovered[0].0.error.as_deref(), Some("given up"));
    assert_eq!(recovered[0].0.changes.len(), 1);
}

#[test]
fn spools_of_ended_calls_are_removed() {
    let fixture = Fixture::new();
    let receipt = fixture.read();
    fs::create_dir_all(fixture.home().join("spool/77.large")).unwrap();
    fs::write(fixture.home().join("spool").join(receipt.id.to_string()), "").unwrap();
    fixture.ledger.recover(&mut EmptyView).unwrap();
    assert_eq!(fixture.spool_files(), 0);
}

#[test]
fn many_contents_are_kept_and_removed_with_their_call() {
    let fixture = Fixture::new();
    let bytes = |n: u32| format!("content {n}").into_bytes();
    let mut receipts = Vec::new();
    for (dies, first) in [(false, 0), (true, 500)] {
        let (record, id) = fixture.running();
        for n in first..first + 300 {
            witness(&record, &format!("/w/{n}"), &bytes(n));
        }
        witness(&record, "/w/empty", b"");
        witness(&record, "/w/big", &large(9));
        if dies {
            fixture.kill_running();
            fixture.ledger.recover(&mut EmptyView).unwrap();
        } else {
            let removed = |n| Change::new(format!("/w/{n}"), file(&bytes(n)), Node::Absent);
            let mut changes: Vec<Change> = (first..first + 300).map(removed).collect();
            changes.push(Change::new("/w/empty", file(b""), Node::Absent));
            changes.push(Change::new("/w/big", file(&large(9)), Node::Absent));
            record.witnessed(changes);
            finish(&record);
        }
        let receipt = fixture.ledger.receipt(id).unwrap();
        assert_eq!((receipt.changes.len(), &receipt.reversible), (302, &Reversible::Yes));
        assert_eq!(fixture.spool_files(), 0);
        receipts.push(receipt);
    }
    fixture.ledger.gc(&GcPolicy::default()).unwrap();
    for change in receipts.iter().flat_map(|receipt| &receipt.changes) {
        let hash = hash_of(&change.before);
        assert!(fixture.ledger.has(hash).unwrap());
        fixture.ledger.blob(hash).unwrap();
    }
    fixture.read();
    let report = fixture.ledger.gc(&GcPolicy { max_bytes: Some(0), ..GcPolicy::default() }).unwrap();
    assert_eq!((report.receipts_removed, report.blobs_removed), (2, 602));
    assert!(!fixture.ledger.has(hash_of(&file(&bytes(1)))).unwrap());
}

#[test]
fn chunks_survive_garbage_collection_and_a_crash() {
    let fixture = Fixture::new();
    let mut old = vec![0; 3 << 20];
    blake3::Hasher::new().finalize_xof().fill(&mut old);
    let new = [&old[..], b"one more line"].concat();
    let (first, id) = fixture.running();
    witness_open(&first, "/w/db", &old);
    first.witnessed(vec![Change::new("/w/db", file(&old), file(&new))]);
    finish(&first);
    assert_eq!(fixture.ledger.blob(hash_of(&file(&old))).unwrap(), old);
    let bytes = fixture.ledger.stats().unwrap().bytes;

    let (second, _) = fixture.running();
    witness_open(&second, "/w/db", &new);
    // Most chunks of the second content are those of the first one.
    fixture.tamper(&format!("UPDATE receipts SET started_at = 1 WHERE id = {id}"));
    let policy = GcPolicy { older_than_ms: Some(60_000), ..GcPolicy::default() };
    assert_eq!(fixture.ledger.gc(&policy).unwrap().receipts_removed, 1);
    assert!(fixture.ledger.blob(hash_of(&file(&old))).is_err());

    fixture.kill_running();
    let recovered = fixture.ledger.recover(&mut EmptyView).unwrap();
    assert_eq!(recovered[0].0.reversible, Reversible::Yes);
    fixture.ledger.gc(&GcPolicy::default()).unwrap();
    assert_eq!(fixture.ledger.blob(hash_of(&file(&new))).unwrap(), new);
    let after = fixture.ledger.stats().unwrap().bytes;
    assert!(after < bytes + 100_000, "{after} bytes, {bytes} before");
    fixture.read();
    fixture.tamper("UPDATE receipts SET started_at = 1");
    let removed = fixture.ledger.gc(&policy).unwrap();
    assert!(removed.bytes_after < 200_000, "{removed:?}");
}
