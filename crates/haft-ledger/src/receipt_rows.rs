//! The rows of a receipt: its own, and those of other tables that belong to it.

use std::collections::BTreeSet;

use haft_tool::{Receipt, ReceiptState, ToolError, now_ms, path_to_text};
use rusqlite::{Connection, OptionalExtension, params};

use crate::blobs::{BlobKey, insert_ref, key_of};
use crate::commit_spool::index_keys;
use crate::database::execute;
use crate::error::{TxResult, not_found};
use crate::sql::{self, int};

/// What a receipt is to undo and redo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallKind {
    /// An ordinary call.
    Call,
    /// It undid calls, or redos.
    Undo,
    /// It undid only undos.
    Redo,
}

impl CallKind {
    const fn word(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Undo => "undo",
            Self::Redo => "redo",
        }
    }

    fn of(conn: &Connection, receipt: &Receipt) -> TxResult<Self> {
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

/// The long texts of a receipt's row.
#[derive(Debug, Default)]
pub(crate) struct RowTexts<'a> {
    /// The changes, as JSON.
    pub(crate) changes: Option<String>,
    /// The result, if it is short.
    pub(crate) result: Option<&'a str>,
    /// The blob of the result, if it is long.
    pub(crate) result_blob: Option<BlobKey>,
    /// The blobs of new contents.
    pub(crate) contents: Vec<BlobKey>,
}

/// Writes that a call runs in a process, and returns its number.
pub(crate) fn start(conn: &Connection, receipt: &mut Receipt, process: &str) -> TxResult<i64> {
    receipt.state = ReceiptState::Running;
    let id = write_row(conn, receipt, &RowTexts::default())?;
    execute(conn, sql::INSERT_RUNNING, params![id, process, int(now_ms())])?;
    Ok(id)
}

/// Writes that a call has ended, and returns its number.
pub(crate) fn finish(conn: &Connection, receipt: &mut Receipt, texts: &RowTexts<'_>) -> TxResult<i64> {
    if receipt.state == ReceiptState::Running {
        return Err(ToolError::internal("a running call cannot be finished").into());
    }
    let was_running = receipt.id != 0;
    let id = write_row(conn, receipt, texts)?;
    if was_running {
        for delete in [sql::DELETE_RUNNING, sql::DELETE_INTENTS, sql::DELETE_REFS] {
            execute(conn, delete, [id])?;
        }
    }
    let files = receipt.changes.iter().filter_map(|change| change.before.as_file());
    let hashes = files.map(|file| &file.hash).chain(&receipt.full_output);
    // In order, because neighbouring index entries are cheaper to insert.
    let mut needed: BTreeSet<BlobKey> = hashes
        .filter_map(|hash| key_of(hash))
        .chain(texts.result_blob)
        .chain(texts.contents.iter().copied())
        .collect();
    for key in index_keys(&receipt.changes) {
        if conn.prepare_cached(sql::HAS_BLOB)?.exists([&key[..]])? {
            needed.insert(key);
        }
    }
    for key in needed {
        insert_ref(conn, id, key)?;
    }
    if receipt.state == ReceiptState::Completed {
        if !receipt.undoes_partly {
            mark_undone(conn, id, &receipt.undoes)?;
        }
        for name in receipt.notes.keys() {
            execute(conn, sql::SET_NOTE, params![receipt.session, name, id])?;
        }
    }
    Ok(id)
}

/// Inserts or updates the receipt's own row, and returns its number.
fn write_row(conn: &Connection, receipt: &mut Receipt, texts: &RowTexts<'_>) -> TxResult<i64> {
    let kind = CallKind::of(conn, receipt)?.word();
    // The changes have a column of their own.
    let changes = std::mem::take(&mut receipt.changes);
    let body = serde_json::to_string(receipt);
    receipt.changes = changes;
    let body = body.map_err(ToolError::from)?;
    let (session, state, count) = (&receipt.session, receipt.state.word(), int(receipt.changes.len()));
    let RowTexts { changes, result, result_blob, .. } = texts;
    let result_blob = result_blob.as_ref().map(<[u8; 32]>::as_slice);
    if receipt.id == 0 {
        let (workspace, started_at) = (path_to_text(&receipt.workspace), int(receipt.started_at));
        let row =
            params![session, workspace, started_at, state, kind, count, body, result_blob, result, changes];
        execute(conn, sql::INSERT_RECEIPT, row)?;
        return Ok(conn.last_insert_rowid());
    }
    let row = params![receipt.id, session, state, kind, count, body, result_blob, result, changes];
    if execute(conn, sql::UPDATE_RECEIPT, row)? == 0 {
        let id = receipt.id;
        return Err(not_found(format!("Session {session} has no call {id} in the ledger.")).into());
    }
    Ok(receipt.id)
}

/// Updates which calls are undone, after the call `id` has undone `targets`.
///
/// Undoing an undo makes its targets effective again, and so on downwards. Going from the newest to the oldest, each
/// call is visited once, after everything that can affect it.
fn mark_undone(conn: &Connection, id: i64, targets: &[i64]) -> TxResult<()> {
    let mut open = BTreeSet::new();
    for target in targets.iter().copied().filter(|target| *target < id) {
        execute(conn, sql::INSERT_UNDO, [target, id])?;
        open.insert(target);
    }
    while let Some(target) = open.pop_last() {
        let mut undo = conn.prepare_cached(sql::EFFECTIVE_UNDO)?;
        let undo: Option<i64> = undo.query_row([target], |row| row.get(0)).optional()?;
        if execute(conn, sql::SET_UNDONE, params![target, undo])? > 0 {
            let mut targets = conn.prepare_cached(sql::TARGETS_OF)?;
            for below in targets.query_map([target], |row| row.get(0))? {
                open.insert(below?);
            }
        }
    }
    Ok(())
}
