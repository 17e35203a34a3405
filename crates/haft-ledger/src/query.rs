//! Reading receipts.

use std::path::{Path, PathBuf};

use haft_tool::{Receipt, ReceiptState, ToolError, path_to_text};
use rusqlite::{Connection, OptionalExtension, Params, Row, params};

use crate::Ledger;
use crate::error::{TxResult, damaged, not_found};
use crate::sql::{self, int};

/// Which receipts to list, newest first.
#[derive(Debug, Clone)]
pub struct ReceiptQuery {
    /// Only those of this workspace.
    pub workspace: Option<PathBuf>,
    /// Only those of this session.
    pub session: Option<String>,
    /// At most this many.
    pub limit: usize,
    /// Only those older than this one.
    pub before: Option<i64>,
    /// Only those that changed something.
    pub only_changes: bool,
}

impl Default for ReceiptQuery {
    fn default() -> Self {
        Self { workspace: None, session: None, limit: 50, before: None, only_changes: false }
    }
}

/// A receipt for a list, which may lack its changes.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceiptSummary {
    /// The receipt. More than 200 changes are left out.
    pub receipt: Receipt,
    /// How many changes it has.
    pub change_count: u64,
    /// The call that undid it, unless that one was undone itself.
    pub undone_by: Option<i64>,
    /// Whether the changes are left out.
    is_shortened: bool,
}

impl ReceiptSummary {
    pub(crate) fn new(
        receipt: Receipt,
        change_count: u64,
        undone_by: Option<i64>,
        is_shortened: bool,
    ) -> Self {
        Self { receipt, change_count, undone_by, is_shortened }
    }
}

impl Ledger {
    /// The receipt with this number.
    pub fn receipt(&self, id: i64) -> Result<Receipt, ToolError> {
        self.db.read(|conn| first_receipt(conn, sql::RECEIPT, [id]))?.ok_or_else(|| no_call(id))
    }

    /// What the caller saw of a call's result; `None` if it is not stored.
    pub fn result(&self, id: i64) -> Result<Option<String>, ToolError> {
        let row: Option<(Option<String>, Option<[u8; 32]>)> = self.db.read(|conn| {
            let mut statement = conn.prepare_cached(sql::RESULT_OF)?;
            Ok(statement.query_row([id], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
        })?;
        match row.ok_or_else(|| no_call(id))? {
            (Some(text), _) => Ok(Some(text)),
            (None, None) => Ok(None),
            (None, Some(key)) => {
                let bytes = self.blob(blake3::Hash::from(key).to_hex().as_str())?;
                Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
            }
        }
    }

    /// Receipts, newest first.
    pub fn receipts(&self, query: &ReceiptQuery) -> Result<Vec<Receipt>, ToolError> {
        self.db.read(|conn| {
            let found = self.select_by(conn, query)?;
            let whole = found.into_iter().map(|summary| {
                let id = summary.receipt.id;
                self.skip_damaged(id, complete(conn, summary))
            });
            whole.filter_map(Result::transpose).collect()
        })
    }

    /// Receipts for a list, newest first: the cost does not grow with the number of changes.
    pub fn summaries(&self, query: &ReceiptQuery) -> Result<Vec<ReceiptSummary>, ToolError> {
        self.db.read(|conn| self.select_by(conn, query))
    }

    /// The receipt of a summary, with all its changes.
    pub fn complete(&self, summary: ReceiptSummary) -> Result<Receipt, ToolError> {
        self.db.read(|conn| complete(conn, summary))
    }

    /// The call that undid call `id`, unless that one was undone itself.
    pub fn undone_by(&self, id: i64) -> Result<Option<i64>, ToolError> {
        let undone = self.db.read(|conn| {
            let mut statement = conn.prepare_cached(sql::UNDONE_BY)?;
            Ok(statement.query_row([id], |row| row.get::<_, Option<i64>>(0)).optional()?)
        })?;
        Ok(undone.flatten())
    }

    /// What a plain `undo` would undo: the newest call in the workspace that changed something, is no undo itself and
    /// has not been undone.
    pub fn next_to_undo(&self, workspace: &Path) -> Result<Option<Receipt>, ToolError> {
        self.db.read(|conn| first_receipt(conn, sql::NEXT_TO_UNDO, [path_to_text(workspace)]))
    }

    /// What a plain `redo` would undo: the newest effective undo in the workspace, unless a newer call has changed
    /// something since.
    pub fn next_to_redo(&self, workspace: &Path) -> Result<Option<Receipt>, ToolError> {
        self.db.read(|conn| {
            let workspace = path_to_text(workspace);
            let Some(undo) = first_receipt(conn, sql::NEXT_TO_REDO, [&workspace])? else { return Ok(None) };
            let changed = conn.prepare_cached(sql::CHANGED_SINCE)?.exists(params![workspace, undo.id])?;
            Ok((!changed).then_some(undo))
        })
    }
}

/// The first receipt that a statement of [`sql`] finds.
pub(crate) fn first_receipt(conn: &Connection, sql: &str, params: impl Params) -> TxResult<Option<Receipt>> {
    let found = select(conn, sql, params, |_, summary| summary.map(Some))?.pop();
    found.map(|summary| complete(conn, summary)).transpose()
}

impl Ledger {
    fn select_by(&self, conn: &Connection, query: &ReceiptQuery) -> TxResult<Vec<ReceiptSummary>> {
        let before = query.before.unwrap_or(i64::MAX);
        let limit = int(query.limit);
        let workspace = query.workspace.as_deref().map(path_to_text);
        let keep = |id, summary| self.skip_damaged(id, summary);
        match (&query.session, &workspace, query.only_changes) {
            (Some(session), workspace, only_changes) => {
                let min_changes = i64::from(only_changes);
                select(
                    conn,
                    sql::RECEIPTS_IN_SESSION,
                    params![before, limit, session, workspace, min_changes],
                    keep,
                )
            }
            (None, Some(workspace), true) => {
                select(conn, sql::RECEIPTS_CHANGED_IN_WORKSPACE, params![before, limit, workspace], keep)
            }
            (None, Some(workspace), false) => {
                select(conn, sql::RECEIPTS_IN_WORKSPACE, params![before, limit, workspace], keep)
            }
            (None, None, true) => select(conn, sql::RECEIPTS_CHANGED, [before, limit], keep),
            (None, None, false) => select(conn, sql::RECEIPTS, [before, limit], keep),
        }
    }
}

/// The receipts that a statement of [`sql`] finds, as far as `keep` keeps them.
fn select(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    keep: impl Fn(i64, TxResult<ReceiptSummary>) -> TxResult<Option<ReceiptSummary>>,
) -> TxResult<Vec<ReceiptSummary>> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut summaries = Vec::new();
    while let Some(row) = rows.next()? {
        let id = row.get(0)?;
        summaries.extend(keep(id, summary(conn, id, row))?);
    }
    Ok(summaries)
}

fn summary(conn: &Connection, id: i64, row: &Row<'_>) -> TxResult<ReceiptSummary> {
    let (state, body): (String, String) = (row.get(1)?, row.get(2)?);
    let mut receipt = parse_receipt(id, body.as_bytes())?;
    let changes: Option<String> = row.get(5)?;
    receipt.changes = if state == ReceiptState::Running.word() {
        intended_changes(conn, id)?
    } else {
        parse_changes(id, changes.as_deref())?
    };
    let (change_count, undone_by, is_shortened) = (row.get(3)?, row.get(4)?, row.get(6)?);
    Ok(ReceiptSummary { receipt, change_count, undone_by, is_shortened })
}

/// The receipt with all its changes.
fn complete(conn: &Connection, summary: ReceiptSummary) -> TxResult<Receipt> {
    let mut receipt = summary.receipt;
    if summary.is_shortened && receipt.changes.is_empty() {
        let mut statement = conn.prepare_cached(sql::CHANGES_OF)?;
        let changes: Option<String> = statement.query_row([receipt.id], |row| row.get(0))?;
        receipt.changes = parse_changes(receipt.id, changes.as_deref())?;
    }
    Ok(receipt)
}

/// A receipt from its own column, without its changes.
pub(crate) fn parse_receipt(id: i64, body: &[u8]) -> Result<Receipt, ToolError> {
    let mut receipt: Receipt = serde_json::from_slice(body).map_err(|error| unreadable(id, &error))?;
    receipt.id = id;
    Ok(receipt)
}

pub(crate) fn intended_changes(conn: &Connection, id: i64) -> TxResult<Vec<haft_tool::Change>> {
    let mut statement = conn.prepare_cached(sql::READ_INTENTS)?;
    let mut rows = statement.query([id])?;
    let mut changes = Vec::new();
    while let Some(row) = rows.next()? {
        let change: String = row.get(0)?;
        changes.push(serde_json::from_str(&change).map_err(|error| unreadable(id, &error))?);
    }
    Ok(changes)
}

pub(crate) fn parse_changes(id: i64, json: Option<&str>) -> Result<Vec<haft_tool::Change>, ToolError> {
    let changes = json.map(serde_json::from_str).transpose();
    Ok(changes.map_err(|error| unreadable(id, &error))?.unwrap_or_default())
}

fn unreadable(id: i64, error: &serde_json::Error) -> ToolError {
    damaged(format!("Call {id} in the ledger cannot be read ({error}): its record was modified."))
}

fn no_call(id: i64) -> ToolError {
    not_found(format!("There is no call {id} in the ledger. `haft log` lists the calls."))
}
