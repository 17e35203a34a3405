//! A ledger that was edited returns errors, never a panic and never another file's bytes.

use std::path::Path;

use haft_ledger::{EventLog, Expected, GcPolicy, Ledger, ReceiptQuery};
use haft_tool::{CallEnd, Change, Node, ReceiptState, Record, json};

use crate::fixture::{EmptyView, Fixture, ended, file, intent, large};

/// Reads in every way, and returns the messages of all errors.
fn read_everything(ledger: &Ledger, session: &str) -> Vec<String> {
    let here = Path::new("/w");
    let mut messages = Vec::new();
    let mut collect =
        |result: Result<(), haft_tool::ToolError>| messages.extend(result.err().map(|error| error.message));
    collect(ledger.receipt(1).map(drop));
    collect(ledger.result(1).map(drop));
    collect(ledger.receipts(&ReceiptQuery::default()).map(drop));
    let in_session = ReceiptQuery { session: Some(session.into()), ..ReceiptQuery::default() };
    collect(ledger.receipts(&in_session).map(drop));
    collect(ledger.next_to_undo(here).map(drop));
    collect(ledger.next_to_redo(here).map(drop));
    collect(ledger.read(session, 0, 100).map(drop));
    collect(ledger.session(session).map(drop));
    collect(ledger.sessions(100).map(drop));
    collect(ledger.undone_by(1).map(drop));
    collect(ledger.recover(&mut EmptyView).map(drop));
    collect(ledger.stats().map(drop));
    collect(
        ledger
            .gc(&GcPolicy { dry_run: true, max_bytes: Some(0), older_than_ms: Some(0), keep_ms: 0 })
            .map(drop),
    );
    messages
}

#[test]
fn edited_receipt_is_an_error_that_names_the_call() {
    let deep = format!(
        "UPDATE receipts SET body = replace(body, '\"input\":', '\"input\":{}')",
        "[".repeat(100_000)
    );
    for (edit, expected) in [
        ("UPDATE receipts SET body = 'nonsense'", "Call 1 in the ledger cannot be read"),
        ("UPDATE receipts SET body = '{}'", "Call 1 in the ledger cannot be read"),
        ("UPDATE receipts SET changes = '{}'", "Call 1 in the ledger cannot be read"),
        ("UPDATE receipts SET body = replace(body, '\"started_at\":', '\"started_at\":-')", "cannot be read"),
        (deep.as_str(), "recursion limit"),
    ] {
        let fixture = Fixture::new();
        fixture.write("a", b"0", b"1");
        fixture.tamper(edit);
        let messages = read_everything(&fixture.ledger, &fixture.session);
        assert!(messages[0].contains(expected), "{expected}: {messages:?}");
    }
}

#[test]
fn any_edit_of_any_column_is_survived() {
    let columns = [
        ("events", &["session", "seq", "at", "body"][..]),
        (
            "receipts",
            &[
                "session",
                "workspace",
                "started_at",
                "state",
                "kind",
                "change_count",
                "undone_by",
                "body",
                "changes",
                "result_hash",
                "result",
            ],
        ),
        ("sessions", &["id", "workspace", "dialect", "entry_point", "started_at", "process"]),
        ("running", &["receipt", "process", "since"]),
        ("intents", &["receipt", "n", "change", "temp"]),
        ("blobs", &["hash", "size", "bytes"]),
        ("refs", &["receipt", "hash"]),
        ("undoes", &["target", "undo"]),
    ];
    let values =
        ["NULL", "-1", "9223372036854775807", "'running'", "''", "x'ff00'", "1.5", "char(0) || 'ff'"];
    for (table, columns) in columns {
        for column in columns {
            let fixture = Fixture::new();
            let long = CallEnd { result: Some("x".repeat(50_000)), ..ended(ReceiptState::Completed) };
            fixture.record().finish(&long).unwrap();
            let wrote = fixture.write("a", &large(1), b"1");
            fixture.undo(&[&wrote]);
            fixture.ledger.append(&fixture.session, Expected::Any, &json!({})).unwrap();
            let running = fixture.record();
            let change = Change::new("/w/b", file(b"b"), Node::Absent);
            running.intend(&mut [intent(&change, b"b")]).unwrap();
            for value in values {
                // STRICT tables refuse most of these.
                let sql = format!("UPDATE OR IGNORE {table} SET {column} = {value}");
                drop(rusqlite::Connection::open(fixture.database()).unwrap().execute(&sql, []));
                read_everything(&fixture.ledger, &fixture.session);
                drop(fixture.record().finish(&ended(ReceiptState::Completed)));
            }
        }
    }
}

#[test]
fn unreadable_running_call_does_not_block_recovery() {
    let fixture = Fixture::new();
    let (_record, id) = fixture.running();
    fixture.tamper("UPDATE running SET process = 'invalid'; UPDATE receipts SET body = 'nonsense'");
    assert!(fixture.ledger.recover(&mut EmptyView).unwrap().is_empty());
    assert!(fixture.ledger.receipt(id).is_err());
    fixture.read();
}
