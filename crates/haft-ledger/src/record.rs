//! How an event becomes part of the record: the event itself and, in the same transaction, the index over it.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

use haft_tool::{Hash, Receipt, State, ToolError, path_to_text};
use rusqlite::{Connection, OptionalExtension, params};

use crate::blobs::{Key, key_of};
use crate::db::run;
use crate::event::{self, Event, Expected};
use crate::fault::{Attempt, unknown};
use crate::owner::Owner;
use crate::sql::{self, int};

/// What a receipt is to undo and redo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// An ordinary call.
    Call,
    /// It took back calls, or redos.
    Undo,
    /// It took back undos only.
    Redo,
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Undo => "undo",
            Self::Redo => "redo",
        }
    }

    fn of(conn: &Connection, receipt: &Receipt) -> Attempt<Self> {
        if receipt.undoes.is_empty() {
            return Ok(Self::Call);
        }
        let mut kind = conn.prepare_cached(sql::KIND_OF)?;
        for target in &receipt.undoes {
            let of_target: Option<String> = kind.query_row([target], |row| row.get(0)).optional()?;
            if of_target.as_deref() != Some(Self::Undo.word()) {
                return Ok(Self::Undo);
            }
        }
        Ok(Self::Redo)
    }
}

/// Records that a call begins, under a new number if it has none, and gives the event's sequence number.
pub(crate) fn started(conn: &Connection, receipt: &mut Receipt, expected: Expected) -> Attempt<u64> {
    receipt.state = State::Running;
    let seq = index(conn, receipt, expected)?;
    let list = event::insert(conn, seq, &Event::CallStarted { receipt: Cow::Borrowed(receipt) })?;
    if let Some(list) = list {
        refer(conn, receipt.id, &list)?;
    }
    run(conn, sql::INSERT_RUNNING, params![receipt.id, Owner::this().to_text(), int(haft_tool::now_ms())])?;
    Ok(seq)
}

/// Records that a call has ended, under a new number if it has none, and gives the event's sequence number.
///
/// It names the blobs that it needs, but for those that are `packed` with it.
pub(crate) fn finished(
    conn: &Connection,
    receipt: &mut Receipt,
    expected: Expected,
    packed: &HashSet<Key>,
) -> Attempt<u64> {
    if receipt.state == State::Running {
        return Err(ToolError::internal("a call that is still running cannot be finished").into());
    }
    let begun = receipt.id != 0;
    let seq = index(conn, receipt, expected)?;
    let list = event::insert(conn, seq, &Event::CallFinished { receipt: Cow::Borrowed(receipt) })?;
    if begun {
        for delete in [sql::DELETE_RUNNING, sql::DELETE_PENDING, sql::DELETE_REFS] {
            run(conn, delete, [receipt.id])?;
        }
    }
    // In order, because rows that go beside each other cost less.
    let files = receipt.changes.iter().filter_map(|change| change.before.as_file());
    let needed: BTreeSet<Key> =
        files.map(|file| &file.hash).chain(&list).filter_map(|hash| key_of(hash)).collect();
    for key in needed.iter().filter(|key| !packed.contains(*key)) {
        run(conn, sql::INSERT_REF, params![receipt.id, &key[..]])?;
    }
    if let Some(hash) = &receipt.full_output {
        refer(conn, receipt.id, hash)?;
        // The text was kept for this receipt, which from now on holds it by itself.
        if let Some(key) = key_of(hash) {
            run(conn, sql::UNPIN_BLOB, [&key[..]])?;
        }
    }
    if receipt.state == State::Completed {
        mark_undone(conn, receipt)?;
        for name in receipt.notes.keys() {
            run(conn, sql::SET_NOTE, params![receipt.session, name, receipt.id])?;
        }
    }
    Ok(seq)
}

/// Notes that a receipt needs a blob.
pub(crate) fn refer(conn: &Connection, receipt: i64, hash: &Hash) -> Attempt<()> {
    if let Some(key) = key_of(hash) {
        run(conn, sql::INSERT_REF, params![receipt, &key[..]])?;
    }
    Ok(())
}

/// Writes the receipt's row in the index; a receipt without a number gets one.
fn index(conn: &Connection, receipt: &mut Receipt, expected: Expected) -> Attempt<u64> {
    let seq = event::next_seq(conn, &receipt.session, expected)?;
    let kind = Kind::of(conn, receipt)?.word();
    let (state, changes) = (receipt.state.word(), int(receipt.changes.len()));
    if receipt.id == 0 {
        let (workspace, started_at) = (path_to_text(&receipt.workspace), int(receipt.started_at));
        let row = params![receipt.session, workspace, started_at, int(seq), state, kind, changes];
        run(conn, sql::INSERT_RECEIPT, row)?;
        receipt.id = conn.last_insert_rowid();
    } else {
        let row = params![receipt.id, receipt.session, int(seq), state, kind, changes];
        if run(conn, sql::UPDATE_RECEIPT, row)? == 0 {
            let (id, session) = (receipt.id, &receipt.session);
            return Err(
                unknown(format!("session {session} has no call {id}; it may have been forgotten")).into()
            );
        }
    }
    Ok(seq)
}

/// Brings up to date which calls are undone, now that `receipt` has taken some back.
///
/// Taking back an undo revives what it had taken back, and so on downwards. Going from the newest to the oldest,
/// each call is looked at once, after everything that could have changed its fate.
fn mark_undone(conn: &Connection, receipt: &Receipt) -> Attempt<()> {
    let mut open = BTreeSet::new();
    for target in receipt.undoes.iter().copied().filter(|target| *target < receipt.id) {
        run(conn, sql::INSERT_UNDO, [target, receipt.id])?;
        open.insert(target);
    }
    while let Some(target) = open.pop_last() {
        let mut undo = conn.prepare_cached(sql::LIVE_UNDO)?;
        let undo: Option<i64> = undo.query_row([target], |row| row.get(0)).optional()?;
        if run(conn, sql::SET_UNDONE, params![target, undo])? > 0 {
            let mut targets = conn.prepare_cached(sql::TARGETS_OF)?;
            for below in targets.query_map([target], |row| row.get(0))? {
                open.insert(below?);
            }
        }
    }
    Ok(())
}
