//! Searching receipts, and what the ledger keeps of the files that calls left.

use haft_ledger::{GcPolicy, ReceiptFilter, ReceiptQuery};
use haft_tool::{CallEnd, ReceiptState, Record, json};

use crate::fixture::{Fixture, blank_receipt};

fn found(fixture: &Fixture, filter: &ReceiptFilter) -> Vec<i64> {
    let query = ReceiptQuery::default();
    let found = fixture.ledger.search(&query, filter).unwrap();
    found.into_iter().map(|summary| summary.receipt.id).collect()
}

#[test]
fn text_is_found_in_arguments_errors_and_results_of_any_length() {
    let fixture = Fixture::new();
    let finish = |command: &str, result: String| {
        let mut receipt = blank_receipt();
        receipt.tool = "Bash".into();
        receipt.input = json!({"command": command});
        let end = CallEnd { state: ReceiptState::Completed, result: Some(result), ..CallEnd::default() };
        fixture.record_of(receipt).finish(&end).unwrap()
    };
    finish("echo \"quoted\"\nnext line", "short".into());
    finish("true", format!("{}needle", "x".repeat(100_000)));
    finish("ünïcode", "\u{1b}[2J".into());
    let text = |text: &str| {
        found(&fixture, &ReceiptFilter { text: Some(text.to_owned()), ..ReceiptFilter::default() })
    };
    assert_eq!(text("\"quoted\"\nnext"), [1]);
    assert_eq!(text("nnext"), [] as [i64; 0], "an escaped newline is no n");
    assert_eq!(text("NEEDLE"), [2], "a long result is a blob");
    assert_eq!(text("ÜNÏCODE"), [3]);
    assert_eq!(text("\u{1b}[2J"), [3]);
    assert_eq!(text("bash"), [3, 2, 1]);
    assert_eq!(text("started_at"), [] as [i64; 0], "a field's name is no text");
}

#[test]
fn failed_calls_include_commands_with_another_exit_code_than_zero() {
    let fixture = Fixture::new();
    for code in [0, 1] {
        let record = fixture.record();
        record.exited(haft_tool::Exit::Code(code));
        record.finish(&CallEnd { state: ReceiptState::Completed, ..CallEnd::default() }).unwrap();
    }
    fixture.record().finish(&CallEnd { state: ReceiptState::Denied, ..CallEnd::default() }).unwrap();
    let mut hostile = blank_receipt();
    hostile.input = json!({"a": 1, "exit_code": 7});
    fixture
        .record_of(hostile)
        .finish(&CallEnd { state: ReceiptState::Completed, ..CallEnd::default() })
        .unwrap();
    assert_eq!(found(&fixture, &ReceiptFilter { failed: true, ..ReceiptFilter::default() }), [3, 2]);
}

#[test]
fn calls_are_found_oldest_first_or_one_of_each_session() {
    let fixture = Fixture::new();
    for _ in 0..4 {
        fixture.read();
    }
    let query = ReceiptQuery { limit: 2, ..ReceiptQuery::default() };
    let ids = |after: i64, filter: &ReceiptFilter| -> Vec<i64> {
        let found = fixture.ledger.search_oldest_first(&query, filter, after).unwrap();
        found.into_iter().map(|summary| summary.receipt.id).collect()
    };
    assert_eq!(ids(0, &ReceiptFilter::default()), [1, 2]);
    assert_eq!(ids(3, &ReceiptFilter::default()), [4]);
    // That a call is too old says nothing about those after it.
    fixture.tamper("UPDATE receipts SET started_at = id * 1000000000000");
    let late = ReceiptFilter { since_ms: Some(3_000_000_000_000), ..ReceiptFilter::default() };
    assert_eq!(ids(0, &late), [3, 4]);
    let one = ReceiptFilter { one_per_session: true, ..ReceiptFilter::default() };
    assert_eq!(found(&fixture, &one), [4]);
}

#[test]
fn search_by_time_stops_at_the_first_call_that_had_ended_by_then() {
    let fixture = Fixture::new();
    for _ in 0..3 {
        fixture.read();
    }
    fixture.tamper("UPDATE receipts SET started_at = id * 1000000");
    let since =
        |since_ms| found(&fixture, &ReceiptFilter { since_ms: Some(since_ms), ..ReceiptFilter::default() });
    assert_eq!(since(2_000_000), [3, 2]);
    assert_eq!(since(3_000_001), [] as [i64; 0]);
}

#[test]
fn history_of_a_file_follows_its_names() {
    let fixture = Fixture::new();
    fixture.write("old", b"1", b"2");
    let renamed = fixture.record();
    let (gone, new) = (crate::fixture::file(b"2"), crate::fixture::file(b"2"));
    let deleted = haft_tool::Change::new("/w/old", gone, haft_tool::Node::Absent);
    renamed.intend(&mut [crate::fixture::intent(&deleted, b"2")]).unwrap();
    renamed.changed(deleted);
    renamed.changed(haft_tool::Change::new("/w/new", haft_tool::Node::Absent, new));
    crate::fixture::finish(&renamed);
    fixture.write("new", b"2", b"3");
    fixture.write("other", b"a", b"b");
    let history = fixture.ledger.file_history("/w/new".as_ref()).unwrap();
    let ids: Vec<i64> = history.iter().map(|version| version.receipt.id).collect();
    assert_eq!(ids, [1, 2, 3]);
    assert_eq!(history[1].before, history[1].after, "renamed, not changed");
}

#[test]
fn housekeeping_keeps_what_is_young_whatever_the_limits_say() {
    let fixture = Fixture::new();
    for _ in 0..3 {
        fixture.read();
    }
    fixture.tamper("UPDATE receipts SET started_at = 1000 WHERE id = 1");
    let policy = GcPolicy {
        max_bytes: Some(0),
        older_than_ms: Some(1),
        keep_ms: 24 * 60 * 60 * 1_000,
        dry_run: false,
    };
    assert_eq!(fixture.ledger.gc(&policy).unwrap().receipts_removed, 1);
    assert_eq!(
        found(&fixture, &ReceiptFilter { tools: vec!["Read".into()], ..ReceiptFilter::default() }),
        [3, 2]
    );
}

#[test]
fn running_calls_are_those_of_processes_that_exist() {
    let fixture = Fixture::new();
    let (record, id) = fixture.running();
    let running = fixture.ledger.running_calls().unwrap();
    assert_eq!((running.len(), running[0].receipt.id, running[0].pid), (1, id, std::process::id()));
    fixture.kill_running();
    assert_eq!(fixture.ledger.running_calls().unwrap(), []);
    drop(record);
}

#[test]
fn damaged_row_is_left_out_of_lists_and_named() {
    let fixture = Fixture::new();
    for _ in 0..3 {
        fixture.record().finish(&CallEnd { state: ReceiptState::Completed, ..CallEnd::default() }).unwrap();
    }
    fixture.tamper("UPDATE receipts SET body = '{' WHERE id = 2");
    assert_eq!(found(&fixture, &ReceiptFilter::default()), [3, 1]);
    assert_eq!(fixture.ledger.damaged_calls(), [2]);
    assert_eq!(found(&fixture, &ReceiptFilter { since_ms: Some(0), ..ReceiptFilter::default() }), [3, 1]);
    assert!(fixture.ledger.receipt(2).unwrap_err().message.contains('2'), "asked for, it is an error");
}
