//! A ledger that somebody has edited gives errors, never a panic and never somebody else's bytes.

use std::path::Path;

use haft_ledger::{EventLog, GcPolicy, Ledger, Query};
use haft_tool::{FileContent, Intent};

use crate::setting::{Blind, change, file, large, setting};

/// Uses every way to read, and to write on top of what was read.
fn use_everything(ledger: &Ledger, session: &str) -> Vec<String> {
    let here = Path::new("/w");
    let mut told = Vec::new();
    let mut tell =
        |result: Result<(), haft_tool::ToolError>| told.extend(result.err().map(|error| error.message));
    tell(ledger.receipt(1).map(drop));
    tell(ledger.receipts(&Query::default()).map(drop));
    tell(ledger.receipts(&Query { session: Some(session.into()), ..Query::default() }).map(drop));
    tell(ledger.next_to_undo(here).map(drop));
    tell(ledger.next_to_redo(here).map(drop));
    tell(ledger.read(session, 0, 100).map(drop));
    tell(ledger.session(session).map(drop));
    tell(ledger.sessions(100).map(drop));
    tell(ledger.undone_by(1).map(drop));
    tell(ledger.recover(&mut Blind).map(drop));
    tell(ledger.stats().map(drop));
    tell(ledger.gc(&GcPolicy { dry_run: true, max_bytes: Some(0), older_than_ms: Some(0) }).map(drop));
    told
}

#[test]
fn an_edited_row_is_an_error_that_names_the_call() {
    let deep =
        format!("UPDATE events SET body = replace(body, '\"input\":', '\"input\":{}')", "[".repeat(100_000));
    for (meddling, expected) in [
        ("UPDATE events SET body = 'nonsense'", "call 1 in the ledger cannot be read"),
        ("UPDATE events SET body = '{}'", "call 1 in the ledger cannot be read"),
        ("UPDATE events SET body = '{\"event\":\"call_finished.v9\"}'", "unknown variant"),
        ("UPDATE events SET body = replace(body, '\"id\":1', '\"id\":7')", "it says it is call 7"),
        ("UPDATE events SET body = replace(body, '\"started_at\":', '\"started_at\":-')", "cannot be read"),
        (deep.as_str(), "recursion limit"),
    ] {
        let set = setting();
        set.wrote("a", b"0", b"1");
        set.meddle(meddling);
        let told = use_everything(&set.ledger, &set.session);
        assert!(told[0].contains(expected), "{expected}: {told:?}");
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
                "first_seq",
                "last_seq",
                "state",
                "kind",
                "changes",
                "undone_by",
            ],
        ),
        ("sessions", &["id", "workspace", "dialect", "door", "started_at", "owner", "forgotten"]),
        ("running", &["receipt", "owner", "since"]),
        ("pending", &["receipt", "n", "body", "temp"]),
        ("blobs", &["hash", "size", "pins", "pinned_at", "bytes"]),
        ("refs", &["receipt", "hash"]),
        ("undoes", &["target", "undo"]),
    ];
    let values =
        ["NULL", "-1", "9223372036854775807", "'running'", "''", "x'ff00'", "1.5", "char(0) || 'ff'"];
    for (table, columns) in columns {
        for column in columns {
            let set = setting();
            let wrote = set.wrote("a", &large(1), b"1");
            set.undid(&[&wrote]);
            let mut running = set.call();
            let change = change("/w/b", file(b"b"), haft_tool::Node::Absent);
            set.ledger
                .before_changes(
                    &mut running,
                    &mut [Intent { change: change.clone(), previous: FileContent::Bytes(b"b"), temp: None }],
                )
                .unwrap();
            for value in values {
                // STRICT tables refuse most of these; what they let through must be survived.
                let sql = format!("UPDATE OR IGNORE {table} SET {column} = {value}");
                drop(rusqlite::Connection::open(set.database()).unwrap().execute(&sql, []));
                use_everything(&set.ledger, &set.session);
                drop(set.ledger.finish(&mut set.call()));
            }
        }
    }
}

#[test]
fn a_running_call_that_cannot_be_read_does_not_stop_the_next_start() {
    let set = setting();
    let mut receipt = set.call();
    set.ledger.begin(&mut receipt).unwrap();
    set.meddle("UPDATE running SET owner = 'nobody'; UPDATE events SET body = 'nonsense'");
    assert!(set.ledger.recover(&mut Blind).unwrap().is_empty());
    assert!(set.ledger.receipt(receipt.id).is_err());
    set.read();
}
