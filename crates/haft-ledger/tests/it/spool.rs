//! What a command that runs is about to touch, and what stays of it.

use std::fs::{self, File};
use std::io::{Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use haft_ledger::{GcPolicy, Query};
use haft_tool::{Change, FileContent, Node, Receipt, Reversible, State};

use crate::setting::{Blind, Setting, change, file, hash_of, large, setting};

fn begun(set: &Setting) -> Receipt {
    let mut receipt = set.call();
    set.ledger.begin(&mut receipt).unwrap();
    receipt
}

fn die(set: &Setting) {
    set.meddle("UPDATE running SET owner = '1 1 another-boot -'");
}

fn spooled(set: &Setting) -> usize {
    fs::read_dir(set.home().join("spool")).map_or(0, Iterator::count)
}

fn temp_with(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    file
}

#[test]
fn only_the_images_of_what_changed_are_kept_and_the_spool_is_gone() {
    let set = setting();
    let mut receipt = begun(&set);
    let mut spool = set.ledger.spool(receipt.id).unwrap();
    let (big, idle) = (large(1), large(2));
    for (path, bytes) in [("/w/small", &b"small"[..]), ("/w/empty", b""), ("/w/unchanged", b"unchanged")] {
        spool.keep(Path::new(path), &file(bytes), FileContent::Bytes(bytes)).unwrap();
    }
    spool.keep(Path::new("/w/big"), &file(&big), FileContent::Reader(&mut temp_with(&big))).unwrap();
    spool.keep(Path::new("/w/held"), &file(&large(3)), FileContent::Bytes(&large(3))).unwrap();
    spool.keep(Path::new("/w/idle"), &file(&idle), FileContent::Reader(&mut temp_with(&idle))).unwrap();
    spool.keep(Path::new("/w/new"), &Node::Absent, FileContent::None).unwrap();
    let mode = fs::metadata(set.home().join("spool").join(receipt.id.to_string())).unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    set.ledger.gc(&GcPolicy::default()).unwrap();

    receipt.changes = vec![
        change("/w/small", file(b"small"), file(b"x")),
        change("/w/empty", file(b""), file(b"x")),
        change("/w/big", file(&big), Node::Absent),
        change("/w/held", file(&large(3)), Node::Absent),
        change("/w/new", Node::Absent, file(b"y")),
    ];
    receipt.state = State::Completed;
    set.ledger.finish_witnessed(&mut receipt, &spool).unwrap();
    assert_eq!(receipt.reversible, Reversible::Yes);
    assert_eq!(set.ledger.receipt(receipt.id).unwrap(), receipt);
    for bytes in [&b"small"[..], b"", &big, &large(3)] {
        assert_eq!(set.ledger.blob(hash_of(&file(bytes))).unwrap(), bytes);
    }
    for bytes in [&b"unchanged"[..], &idle] {
        assert!(!set.ledger.has(hash_of(&file(bytes))).unwrap());
    }
    assert_eq!((spooled(&set), set.ledger.stats().unwrap().blobs), (0, 4));
    set.ledger.gc(&GcPolicy::default()).unwrap();
    assert_eq!(set.ledger.blob(hash_of(&file(&big))).unwrap(), big);
    set.ledger.check().unwrap();
}

#[test]
fn a_blob_can_be_read_as_a_stream() {
    let set = setting();
    let mut bytes = vec![0; 3 << 20];
    bytes[1 << 20] = 7;
    bytes.extend_from_slice(b"end");
    for bytes in [&b"small"[..], b"", &bytes] {
        let hash = set.ledger.keep(bytes).unwrap();
        let mut read = Vec::new();
        set.ledger.open_blob(&hash).unwrap().read_to_end(&mut read).unwrap();
        assert!(read == bytes);
    }
}

#[test]
fn bytes_that_were_not_kept_are_told() {
    let set = setting();
    let mut receipt = begun(&set);
    let mut spool = set.ledger.spool(receipt.id).unwrap();
    spool.keep(Path::new("/w/huge"), &file(b"huge"), FileContent::None).unwrap();
    receipt.changes = vec![change("/w/huge", file(b"huge"), Node::Absent)];
    receipt.state = State::Completed;
    set.ledger.finish_witnessed(&mut receipt, &spool).unwrap();
    assert_eq!(receipt.reversible.why(), Some("the old bytes of /w/huge were not kept"));
}

#[test]
fn a_torn_end_is_left_out_and_all_before_it_is_there() {
    let set = setting();
    let whole = {
        let receipt = begun(&set);
        let mut spool = set.ledger.spool(receipt.id).unwrap();
        for n in 0..3_u8 {
            let bytes = vec![n; 100];
            spool.keep(Path::new(&format!("/w/{n}")), &file(&bytes), FileContent::Bytes(&bytes)).unwrap();
        }
        let path = set.home().join("spool").join(receipt.id.to_string());
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(path).unwrap();
        bytes
    };
    let each = whole.len() / 3;
    for cut in (0..=whole.len()).step_by(7).chain([each, 2 * each, whole.len()]) {
        let receipt = begun(&set);
        drop(set.ledger.spool(receipt.id).unwrap());
        let mut bytes = whole[..cut].to_vec();
        // What a loss of power may leave behind what was written.
        bytes.resize(bytes.len() + cut % 3 * 100, 0);
        fs::write(set.home().join("spool").join(receipt.id.to_string()), &bytes).unwrap();
        die(&set);
        let recovered = set.ledger.recover(&mut Blind).unwrap();
        let receipt =
            recovered.iter().map(|(receipt, _)| receipt).find(|found| found.id == receipt.id).unwrap();
        assert!(receipt.changes.len() >= cut / each, "{cut}");
        for change in &receipt.changes[..cut / each] {
            assert_eq!(set.ledger.blob(hash_of(&change.before)).unwrap().len(), 100);
        }
    }
}

#[test]
fn a_dead_call_keeps_its_images_and_is_told_once() {
    let set = setting();
    let receipt = begun(&set);
    let mut spool = set.ledger.spool(receipt.id).unwrap();
    spool.keep(Path::new("/w/a"), &file(b"old"), FileContent::Bytes(b"old")).unwrap();
    spool.keep(Path::new("/w/b"), &file(&large(1)), FileContent::Reader(&mut temp_with(&large(1)))).unwrap();
    drop(spool);
    assert!(set.ledger.recover(&mut Blind).unwrap().is_empty(), "it lives");
    assert_eq!(spooled(&set), 2);
    die(&set);
    let recovered = set.ledger.recover(&mut Blind).unwrap();
    let [(receipt, _)] = &recovered[..] else { panic!("{recovered:?}") };
    assert_eq!((receipt.state, &receipt.reversible), (State::Interrupted, &Reversible::Yes));
    assert_eq!(
        receipt.changes,
        [change("/w/a", file(b"old"), Node::Absent), change("/w/b", file(&large(1)), Node::Absent)]
    );
    assert_eq!(set.ledger.blob(hash_of(&file(b"old"))).unwrap(), b"old");
    assert_eq!(set.ledger.blob(hash_of(&file(&large(1)))).unwrap(), large(1));
    assert_eq!(spooled(&set), 0);
    assert!(set.ledger.recover(&mut Blind).unwrap().is_empty());
    assert_eq!(set.ledger.next_to_undo(Path::new("/w")).unwrap().as_ref(), Some(receipt));
}

#[test]
fn a_move_that_was_refused_or_never_made_is_no_move() {
    for refused in [true, false] {
        let set = setting();
        let receipt = begun(&set);
        let mut spool = set.ledger.spool(receipt.id).unwrap();
        spool.keep(Path::new("/w/a"), &file(b"old"), FileContent::Bytes(b"old")).unwrap();
        spool.moving(Path::new("/w/d"), Path::new("/w/e")).unwrap();
        if refused {
            spool.stayed().unwrap();
            spool.keep(Path::new("/w/a"), &file(b"between"), FileContent::Bytes(b"between")).unwrap();
        }
        die(&set);
        let recovered = set.ledger.recover(&mut Blind).unwrap();
        assert_eq!(recovered[0].0.changes, [change("/w/a", file(b"old"), Node::Absent)]);
    }
}

#[test]
fn a_call_that_was_given_up_is_left_to_the_next_recovery() {
    let set = setting();
    let mut receipt = begun(&set);
    let mut spool = set.ledger.spool(receipt.id).unwrap();
    spool.keep(Path::new("/w/a"), &file(b"old"), FileContent::Bytes(b"old")).unwrap();
    receipt.state = State::Interrupted;
    receipt.error = Some("given up".into());
    set.ledger.abandon(&mut receipt).unwrap();
    assert_eq!(receipt.state, State::Interrupted);
    let recovered = set.ledger.recover(&mut Blind).unwrap();
    assert_eq!(recovered[0].0.error.as_deref(), Some("given up"));
    assert_eq!(recovered[0].0.changes.len(), 1);
}

#[test]
fn leftovers_of_finished_calls_are_swept_up() {
    let set = setting();
    let receipt = set.read();
    drop(set.ledger.spool(receipt.id).unwrap());
    fs::create_dir(set.home().join("spool/77.large")).unwrap();
    set.ledger.recover(&mut Blind).unwrap();
    assert_eq!(spooled(&set), 0);
}

#[test]
fn a_long_list_of_changes_comes_back_whole_and_the_log_does_without_it() {
    let set = setting();
    let mut receipt = begun(&set);
    let path = |n: u32| format!("/w/{n}");
    receipt.changes =
        (0..1_000).map(|n| Change::new(path(n), Node::Absent, file(&n.to_le_bytes()))).collect();
    receipt.state = State::Completed;
    set.ledger.finish(&mut receipt).unwrap();
    assert_eq!(set.ledger.receipt(receipt.id).unwrap(), receipt);
    assert_eq!(set.ledger.receipts(&Query::default()).unwrap(), std::slice::from_ref(&receipt));
    let events = haft_ledger::EventLog::read(&set.ledger, &set.session, 0, 10).unwrap();
    assert_eq!(events[1].event.receipt(), &receipt);
    let entry = set.ledger.entries(&Query::default()).unwrap().remove(0);
    assert_eq!((entry.changes, entry.receipt.changes.len(), entry.undone_by), (1_000, 0, None));
    set.ledger.gc(&GcPolicy::default()).unwrap();
    assert_eq!(set.ledger.receipt(receipt.id).unwrap(), receipt, "the list is not taken for a stray");
    set.read();
    set.ledger.gc(&GcPolicy { max_bytes: Some(0), ..GcPolicy::default() }).unwrap();
    assert_eq!(set.ledger.stats().unwrap().blobs, 0, "and goes with its call");
}

#[test]
fn many_images_stay_together_and_go_with_their_call() {
    let set = setting();
    let bytes = |n: u32| format!("image {n}").into_bytes();
    let path = |n: u32| format!("/w/{n}");
    let mut receipts = Vec::new();
    for (dies, first) in [(false, 0), (true, 500)] {
        let mut receipt = begun(&set);
        let mut spool = set.ledger.spool(receipt.id).unwrap();
        for n in first..first + 300 {
            spool.keep(Path::new(&path(n)), &file(&bytes(n)), FileContent::Bytes(&bytes(n))).unwrap();
        }
        spool.keep(Path::new("/w/empty"), &file(b""), FileContent::Bytes(b"")).unwrap();
        spool.keep(Path::new("/w/big"), &file(&large(9)), FileContent::Bytes(&large(9))).unwrap();
        if dies {
            drop(spool);
            die(&set);
            set.ledger.recover(&mut Blind).unwrap();
        } else {
            receipt.changes =
                (first..first + 300).map(|n| Change::new(path(n), file(&bytes(n)), Node::Absent)).collect();
            receipt.changes.push(change("/w/empty", file(b""), Node::Absent));
            receipt.changes.push(change("/w/big", file(&large(9)), Node::Absent));
            receipt.state = State::Completed;
            set.ledger.finish_witnessed(&mut receipt, &spool).unwrap();
        }
        let kept = set.ledger.receipt(receipt.id).unwrap();
        assert_eq!((kept.changes.len(), &kept.reversible), (302, &Reversible::Yes));
        assert_eq!(spooled(&set), 0);
        receipts.push(kept);
    }
    assert_eq!(fs::read_dir(set.home().join("packs")).unwrap().count(), 2);
    set.ledger.gc(&GcPolicy::default()).unwrap();
    let other = haft_ledger::Ledger::open(set.home()).unwrap();
    for change in receipts.iter().flat_map(|receipt| &receipt.changes) {
        let hash = hash_of(&change.before);
        assert!(other.has(hash).unwrap());
        assert_eq!(blake3::hash(&other.blob(hash).unwrap()).to_hex().as_str(), hash);
    }
    other.check().unwrap();
    set.read();
    let before = other.stats().unwrap().bytes;
    let report = other.gc(&GcPolicy { max_bytes: Some(0), ..GcPolicy::default() }).unwrap();
    assert_eq!((report.receipts_removed, report.bytes_before), (2, before));
    assert_eq!(fs::read_dir(set.home().join("packs")).unwrap().count(), 0);
    let fresh = haft_ledger::Ledger::open(set.home()).unwrap();
    assert!(!fresh.has(hash_of(&file(&bytes(1)))).unwrap());
}

#[test]
fn images_that_are_few_among_many_are_taken_out_of_the_spool() {
    let set = setting();
    let mut receipt = begun(&set);
    let mut spool = set.ledger.spool(receipt.id).unwrap();
    let bytes = |n: u32| format!("image {n}").into_bytes();
    for n in 0..1_000 {
        spool.keep(Path::new(&format!("/w/{n}")), &file(&bytes(n)), FileContent::Bytes(&bytes(n))).unwrap();
    }
    receipt.changes = (0..100).map(|n| change(&format!("/w/{n}"), file(&bytes(n)), Node::Absent)).collect();
    receipt.state = State::Completed;
    set.ledger.finish_witnessed(&mut receipt, &spool).unwrap();
    assert!(!set.home().join("packs").exists());
    assert_eq!(set.ledger.stats().unwrap().blobs, 100);
}
