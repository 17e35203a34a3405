//! Forgetting.

use std::fs;

use haft_ledger::{GcPolicy, Ledger, Query};
use haft_tool::{FileContent, Intent, Node, now_ms};

use crate::setting::{Setting, change, file, hash_of, large, new_session, setting};

fn ids(set: &Setting) -> Vec<i64> {
    let all = Query { limit: 10_000, ..Query::default() };
    set.ledger.receipts(&all).unwrap().iter().map(|receipt| receipt.id).collect()
}

fn fill(set: &Setting, calls: u32) {
    for n in 0..calls {
        let size = if n % 10 == 0 { 60_000 } else { 2_000 };
        set.wrote("a", &n.to_le_bytes().repeat(size / 4), b"new");
    }
}

#[test]
fn the_ledger_shrinks_below_the_bound_and_forgets_the_oldest_first() {
    let set = setting();
    fill(&set, 300);
    let bound = 700_000;
    let report = set.ledger.gc(&GcPolicy { max_bytes: Some(bound), ..GcPolicy::default() }).unwrap();
    assert!(report.bytes_before > 2 * bound, "{report:?}");
    assert!(report.bytes_after <= bound, "{report:?}");
    assert!(report.bytes_after > bound / 2, "no more than needed goes: {report:?}");
    assert_eq!(set.ledger.stats().unwrap().bytes, report.bytes_after);
    let left = ids(&set);
    assert_eq!(left.len() as u64, 300 - report.receipts_removed);
    let newest: Vec<i64> = (1..=300).rev().take(left.len()).collect();
    assert_eq!(left, newest, "the newest stay");
    for receipt in set.ledger.receipts(&Query { limit: 1_000, ..Query::default() }).unwrap() {
        set.ledger.blob(hash_of(&receipt.changes[0].before)).unwrap();
    }
    assert!(set.ledger.receipt(1).is_err());
    set.ledger.check().unwrap();
    assert_eq!(set.wrote("b", b"0", b"1").id, 301);
}

#[test]
fn a_dry_run_tells_what_would_go_and_changes_nothing() {
    let set = setting();
    fill(&set, 200);
    let policy = GcPolicy { max_bytes: Some(500_000), older_than_ms: None, dry_run: true };
    let before = (ids(&set), set.ledger.stats().unwrap());
    let told = set.ledger.gc(&policy).unwrap();
    assert_eq!((ids(&set), set.ledger.stats().unwrap()), before);
    let done = set.ledger.gc(&GcPolicy { dry_run: false, ..policy }).unwrap();
    assert_eq!((told.receipts_removed, told.blobs_removed), (done.receipts_removed, done.blobs_removed));
    assert!(told.receipts_removed > 0 && told.bytes_after <= 500_000, "{told:?}");
}

#[test]
fn what_is_older_than_asked_is_forgotten_and_nothing_else() {
    let set = setting();
    fill(&set, 20);
    set.meddle("UPDATE receipts SET started_at = 1 WHERE id IN (3, 5, 20)");
    let policy = GcPolicy { older_than_ms: Some(60_000), ..GcPolicy::default() };
    let report = set.ledger.gc(&policy).unwrap();
    assert_eq!((report.receipts_removed, report.blobs_removed), (2, 2));
    assert_eq!(ids(&set), (1..=20).rev().filter(|id| ![3, 5].contains(id)).collect::<Vec<_>>());
    assert_eq!(set.read().id, 21, "the newest stays, so that its number is not given again");
}

#[test]
fn a_running_call_is_never_forgotten() {
    let set = setting();
    let mut running = set.call();
    let change = change("/w/a", file(b"before"), Node::Absent);
    set.ledger
        .before_changes(
            &mut running,
            &mut [Intent { change: change.clone(), previous: FileContent::Bytes(b"before"), temp: None }],
        )
        .unwrap();
    fill(&set, 5);
    set.ledger.gc(&GcPolicy { max_bytes: Some(0), older_than_ms: Some(0), dry_run: false }).unwrap();
    assert_eq!(ids(&set), [6, 1]);
    assert_eq!(set.ledger.blob(hash_of(&change.before)).unwrap(), b"before");
}

#[test]
fn a_blob_stays_while_any_receipt_needs_it() {
    let set = setting();
    for before in [&large(7)[..], b"small"] {
        let (first, second) = (set.wrote("a", before, b"x"), set.wrote("b", before, b"x"));
        let hash = hash_of(&first.changes[0].before).to_owned();
        set.meddle(&format!("UPDATE receipts SET started_at = 1 WHERE id = {}", first.id));
        set.ledger.gc(&GcPolicy { older_than_ms: Some(60_000), ..GcPolicy::default() }).unwrap();
        assert_eq!(set.ledger.blob(&hash).unwrap(), before);
        set.meddle(&format!("UPDATE receipts SET started_at = 1 WHERE id = {}", second.id));
        set.read();
        set.ledger.gc(&GcPolicy { older_than_ms: Some(60_000), ..GcPolicy::default() }).unwrap();
        assert!(set.ledger.blob(&hash).is_err());
    }
}

#[test]
fn kept_bytes_that_no_receipt_names_yet_stay_for_a_day() {
    let set = setting();
    let hash = set.ledger.keep(b"long output").unwrap();
    set.ledger.gc(&GcPolicy { max_bytes: Some(0), ..GcPolicy::default() }).unwrap();
    assert_eq!(set.ledger.blob(&hash).unwrap(), b"long output");
    set.meddle(&format!("UPDATE blobs SET pinned_at = {}", now_ms() - 25 * 60 * 60 * 1_000));
    assert_eq!(set.ledger.gc(&GcPolicy::default()).unwrap().blobs_removed, 1);
    assert!(set.ledger.blob(&hash).is_err());
}

#[test]
fn files_that_a_crash_left_without_a_row_are_swept_up() {
    let set = setting();
    let hash = set.ledger.keep(&large(7)).unwrap();
    let folder = set.home().join("blobs").join(&hash[..2]);
    let strays = [folder.join("new-0123456789abcdef"), folder.join("0".repeat(62))];
    for stray in &strays {
        fs::write(stray, large(0)).unwrap();
    }
    set.ledger.gc(&GcPolicy::default()).unwrap();
    assert!(strays.iter().all(|stray| !stray.exists()));
    assert_eq!(set.ledger.blob(&hash).unwrap().len(), 50_000);
}

#[test]
fn a_session_with_nothing_left_goes_unless_its_process_may_use_it() {
    let set = setting();
    set.read();
    let other = set.ledger.start_session(&new_session("/v")).unwrap();
    let mut last = set.call();
    last.session.clone_from(&other);
    set.ledger.finish(&mut last).unwrap();
    let all = GcPolicy { max_bytes: Some(0), ..GcPolicy::default() };
    assert_eq!(set.ledger.gc(&all).unwrap().sessions_removed, 0, "this process may go on with it");
    set.meddle("UPDATE sessions SET owner = '1 1 another-boot -'");
    let report = Ledger::open(set.home()).unwrap().gc(&all).unwrap();
    assert_eq!(report.sessions_removed, 1);
    assert!(set.ledger.session(&set.session).is_err());
    set.ledger.session(&other).unwrap();
}
