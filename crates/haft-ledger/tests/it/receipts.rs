//! What is written down of a call, and when.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use haft_ledger::{Ledger, Query};
use haft_tool::{Effect, ErrorKind, FileContent, Intent, Node, State, Value, json};

use crate::setting::{Blind, change, file, hash_of, new_session, setting};

#[test]
fn a_call_that_only_reads_is_numbered_and_kept_as_it_is() {
    let set = setting();
    let (first, second) = (set.read(), set.read());
    assert_eq!((first.id, second.id), (1, 2));
    assert_eq!(set.ledger.receipt(1).unwrap(), first);
    assert_eq!(set.ledger.receipt(3).unwrap_err().kind, ErrorKind::NotFound);
}

#[test]
fn a_begun_call_is_seen_as_running_by_others_until_it_is_finished() {
    let set = setting();
    let other = Ledger::open(set.home()).unwrap();
    let mut receipt = set.call();
    set.ledger.begin(&mut receipt).unwrap();
    assert_eq!(receipt.state, State::Running);
    assert_eq!(other.receipt(receipt.id).unwrap(), receipt);
    assert!(other.recover(&mut Blind).unwrap().is_empty(), "its process lives");
    receipt.state = State::Failed;
    receipt.error_kind = Some(ErrorKind::Timeout);
    set.ledger.finish(&mut receipt).unwrap();
    assert_eq!(other.receipt(receipt.id).unwrap(), receipt);
}

#[test]
fn a_change_and_its_before_image_are_there_before_the_change_is_made() {
    let set = setting();
    let other = Ledger::open(set.home()).unwrap();
    for size in [0, 10, 32 * 1024, 32 * 1024 + 1, 300_000] {
        let before = vec![b'x'; size];
        let mut receipt = set.call();
        let change = change("/w/a", file(&before), file(b"new"));
        set.ledger
            .before_changes(
                &mut receipt,
                &mut [Intent {
                    change: change.clone(),
                    previous: FileContent::Bytes(&before),
                    temp: Some("/w/.a.tmp".into()),
                }],
            )
            .unwrap();
        assert_eq!(receipt.changes, std::slice::from_ref(&change));
        let seen = other.receipt(receipt.id).unwrap();
        assert_eq!((seen.state, &seen.changes), (State::Running, &receipt.changes));
        assert_eq!(other.blob(hash_of(&change.before)).unwrap(), before);
    }
}

#[test]
fn only_the_changes_that_were_made_are_kept_in_the_end() {
    let set = setting();
    let mut receipt = set.call();
    set.ledger.begin(&mut receipt).unwrap();
    for name in ["a", "b", "c"] {
        let change = change(&format!("/w/{name}"), file(name.as_bytes()), Node::Absent);
        set.ledger
            .before_changes(
                &mut receipt,
                &mut [Intent {
                    change: change.clone(),
                    previous: FileContent::Bytes(name.as_bytes()),
                    temp: None,
                }],
            )
            .unwrap();
    }
    let dropped = receipt.changes.remove(1);
    set.ledger
        .before_changes(
            &mut receipt,
            &mut [Intent {
                change: change("/w/d", Node::Absent, Node::Dir { mode: 0o755 }),
                previous: FileContent::None,
                temp: None,
            }],
        )
        .unwrap();
    receipt.state = State::Completed;
    set.ledger.finish(&mut receipt).unwrap();
    let names: Vec<_> =
        set.ledger.receipt(receipt.id).unwrap().changes.into_iter().map(|change| change.path).collect();
    assert_eq!(names, [PathBuf::from("/w/a"), "/w/c".into(), "/w/d".into()]);
    set.ledger.gc(&haft_ledger::GcPolicy::default()).unwrap();
    assert!(set.ledger.blob(hash_of(&dropped.before)).is_err(), "nobody needs it any more");
    assert_eq!(set.ledger.blob(hash_of(&receipt.changes[0].before)).unwrap(), b"a");
}

#[test]
fn a_before_image_that_is_not_what_the_change_says_is_refused_and_nothing_is_written() {
    let set = setting();
    let mut receipt = set.call();
    let change = change("/w/a", file(b"one"), Node::Absent);
    let error = set
        .ledger
        .before_changes(
            &mut receipt,
            &mut [Intent { change: change.clone(), previous: FileContent::Bytes(b"two"), temp: None }],
        )
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Internal);
    assert_eq!((receipt.id, receipt.changes.len()), (0, 0));
    assert_eq!(set.ledger.stats().unwrap().receipts, 0);
}

#[test]
fn a_call_cannot_begin_twice_nor_finish_while_running() {
    let set = setting();
    let mut receipt = set.call();
    set.ledger.begin(&mut receipt).unwrap();
    assert!(set.ledger.begin(&mut receipt).is_err());
    assert!(set.ledger.finish(&mut receipt).is_err());
    let mut never = set.call();
    never.state = State::Running;
    assert!(set.ledger.finish(&mut never).is_err());
    assert_eq!(never.id, 0, "a number is given only with a record");
}

#[test]
fn lists_are_newest_first_and_can_be_narrowed_and_continued() {
    let set = setting();
    let other_session = set.ledger.start_session(&new_session("/v")).unwrap();
    for n in 1..=10 {
        if n % 2 == 0 {
            set.wrote("a", b"old", b"new");
        } else {
            let mut receipt = set.call();
            receipt.session.clone_from(&other_session);
            receipt.workspace = "/v".into();
            set.ledger.finish(&mut receipt).unwrap();
        }
    }
    let ids = |query: Query| -> Vec<i64> {
        set.ledger.receipts(&query).unwrap().iter().map(|receipt| receipt.id).collect()
    };
    let all = Query::default();
    assert_eq!(ids(all.clone()), [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(ids(Query { limit: 2, before: Some(7), ..all.clone() }), [6, 5]);
    assert_eq!(ids(Query { only_changes: true, before: Some(8), ..all.clone() }), [6, 4, 2]);
    let here = Query { workspace: Some("/w".into()), ..all.clone() };
    assert_eq!(ids(Query { limit: 3, ..here.clone() }), [10, 8, 6]);
    assert_eq!(ids(Query { only_changes: true, before: Some(5), ..here.clone() }), [4, 2]);
    assert_eq!(
        ids(Query { session: Some(other_session.clone()), before: Some(6), ..all.clone() }),
        [5, 3, 1]
    );
    assert!(ids(Query { session: Some(other_session.clone()), ..here.clone() }).is_empty());
    assert!(ids(Query { session: Some(other_session), only_changes: true, ..all.clone() }).is_empty());
    assert!(ids(Query { workspace: Some("/w/".into()), limit: 0, ..all }).is_empty());
}

#[test]
fn paths_that_are_no_text_come_back_byte_for_byte() {
    let set = setting();
    let odd = |name: &[u8]| PathBuf::from(OsStr::from_bytes(name));
    let mut receipt = set.call();
    receipt.workspace = odd(b"/w-\xff\xfe");
    receipt.effects = vec![Effect::Write { path: odd(b"/w-\xff/\x80a") }];
    let mut change = change("/w", Node::Link { target: odd(b"\xc3") }, Node::Absent);
    change.path = odd(b"/w-\xff\xfe/caf\xe9");
    set.ledger
        .before_changes(
            &mut receipt,
            &mut [Intent {
                change: change.clone(),
                previous: FileContent::None,
                temp: Some(odd(b"/w-\xff\xfe/.\xe9")),
            }],
        )
        .unwrap();
    assert_eq!(set.ledger.receipt(receipt.id).unwrap(), receipt);
    receipt.state = State::Completed;
    set.ledger.finish(&mut receipt).unwrap();
    assert_eq!(set.ledger.receipt(receipt.id).unwrap(), receipt);
    assert_eq!(set.ledger.next_to_undo(&receipt.workspace).unwrap().unwrap(), receipt);
}

#[test]
fn arguments_nested_as_deep_as_json_allows_can_be_read_again() {
    let set = setting();
    let mut receipt = set.call();
    receipt.input = (0..127).fold(json!(1), |inner, _| json!([inner]));
    let text = receipt.input.to_string();
    set.ledger.finish(&mut receipt).unwrap();
    assert_eq!(set.ledger.receipt(receipt.id).unwrap().input, Value::String(text));
}

#[test]
fn undo_goes_back_call_by_call_and_redo_forward_again() {
    let set = setting();
    let here = Path::new("/w");
    let next = || {
        let undo = set.ledger.next_to_undo(here).unwrap().map(|receipt| receipt.id);
        (undo, set.ledger.next_to_redo(here).unwrap().map(|receipt| receipt.id))
    };
    assert_eq!(next(), (None, None));
    let (one, two) = (set.wrote("a", b"0", b"1"), set.wrote("a", b"1", b"2"));
    set.read();
    assert_eq!(next(), (Some(two.id), None));
    let undo_two = set.undid(&[&two]);
    assert_eq!(next(), (Some(one.id), Some(undo_two.id)));
    let undo_one = set.undid(&[&one]);
    assert_eq!(next(), (None, Some(undo_one.id)));
    assert_eq!(set.ledger.undone_by(one.id).unwrap(), Some(undo_one.id));

    let redo_one = set.undid(&[&undo_one]);
    assert_eq!(set.ledger.undone_by(one.id).unwrap(), None, "it holds again");
    assert_eq!(set.ledger.undone_by(undo_one.id).unwrap(), Some(redo_one.id));
    assert_eq!(next(), (Some(one.id), Some(undo_two.id)), "a redo is no undo to redo");
    let undo_redo = set.undid(&[&redo_one]);
    assert_eq!(set.ledger.undone_by(one.id).unwrap(), Some(undo_one.id), "the first undo holds again");
    set.undid(&[&undo_redo]);
    set.undid(&[&undo_two]);
    assert_eq!(next(), (Some(two.id), None));

    set.undid(&[&two]);
    let three = set.wrote("b", b"", b"x");
    assert_eq!(next(), (Some(three.id), None), "after a new change there is nothing to redo");
}

#[test]
fn only_a_completed_undo_counts() {
    let set = setting();
    let wrote = set.wrote("a", b"0", b"1");
    let mut failed = set.call();
    failed.state = State::Failed;
    failed.undoes = vec![wrote.id, 99];
    set.ledger.finish(&mut failed).unwrap();
    assert_eq!(set.ledger.undone_by(wrote.id).unwrap(), None);
    assert_eq!(set.ledger.next_to_undo(Path::new("/w")).unwrap().unwrap().id, wrote.id);
    assert!(set.ledger.next_to_redo(Path::new("/w")).unwrap().is_none());
}

#[test]
fn a_session_finds_the_newest_note_of_a_call_that_ended_well() {
    let set = setting();
    let noted = |state: State, note: &str| {
        let mut receipt = set.call();
        receipt.state = state;
        receipt.notes.insert("todos".into(), json!(note));
        set.ledger.finish(&mut receipt).unwrap();
    };
    let note = |session: &str| set.ledger.note(session, "todos").unwrap();
    assert_eq!(note(&set.session), None);
    noted(State::Completed, "one");
    noted(State::Completed, "two");
    noted(State::Failed, "three");
    set.read();
    assert_eq!(note(&set.session), Some(json!("two")));
    let other = set.ledger.start_session(&new_session("/w")).unwrap();
    assert_eq!(note(&other), None);
}
