//! Reading receipts back.

use std::path::{Path, PathBuf};

use haft_tool::{Hash, Receipt, State, ToolError, path_to_text};
use rusqlite::{Connection, OptionalExtension, Params, params};

use crate::Ledger;
use crate::codec::decode;
use crate::event::changes_in;
use crate::fault::{Attempt, damaged, unknown};
use crate::sql::{self, int};

/// Which receipts to list, newest first.
#[derive(Debug, Clone)]
pub struct Query {
    /// Only those of this workspace.
    pub workspace: Option<PathBuf>,
    /// Only those of this session.
    pub session: Option<String>,
    /// At most so many.
    pub limit: usize,
    /// Only those older than this one.
    pub before: Option<i64>,
    /// Only those that changed something.
    pub only_changes: bool,
}

impl Default for Query {
    fn default() -> Self {
        Self { workspace: None, session: None, limit: 50, before: None, only_changes: false }
    }
}

/// A line of the log: a receipt without its changes where they are many, how many they are, and who took it back.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The receipt. A long list of changes is left out.
    pub receipt: Receipt,
    /// How many paths it changed.
    pub changes: u64,
    /// The call that took it back, unless that one has been taken back itself.
    pub undone_by: Option<i64>,
}

impl Ledger {
    /// One receipt by its number.
    pub fn receipt(&self, id: i64) -> Result<Receipt, ToolError> {
        let found = self.db.read(|conn| first(conn, sql::RECEIPT, [id]))?;
        found.ok_or_else(|| {
            unknown(format!("there is no call {id} in the ledger; `haft log` lists the calls"))
        })
    }

    /// Receipts, newest first.
    pub fn receipts(&self, query: &Query) -> Result<Vec<Receipt>, ToolError> {
        self.db.read(|conn| {
            let found = choose(conn, query)?;
            found.into_iter().map(|found| found.whole(conn)).collect()
        })
    }

    /// The log, newest first: what it costs does not grow with what the calls changed.
    pub fn entries(&self, query: &Query) -> Result<Vec<Entry>, ToolError> {
        let found = self.db.read(|conn| choose(conn, query))?;
        Ok(found.into_iter().map(|found| found.entry).collect())
    }

    /// The call that took back call `id`, unless that one has been taken back itself.
    pub fn undone_by(&self, id: i64) -> Result<Option<i64>, ToolError> {
        let undone = self.db.read(|conn| {
            let mut statement = conn.prepare_cached(sql::UNDONE_BY)?;
            Ok(statement.query_row([id], |row| row.get::<_, Option<i64>>(0)).optional()?)
        })?;
        Ok(undone.flatten())
    }

    /// What a plain `undo` would take back: the newest call in the workspace that changed something, is no undo
    /// itself and has not been undone.
    pub fn next_to_undo(&self, workspace: &Path) -> Result<Option<Receipt>, ToolError> {
        self.db.read(|conn| first(conn, sql::NEXT_TO_UNDO, [path_to_text(workspace)]))
    }

    /// What a plain `redo` would take back: the newest undo in the workspace that still holds, unless a newer call
    /// has changed something since.
    pub fn next_to_redo(&self, workspace: &Path) -> Result<Option<Receipt>, ToolError> {
        self.db.read(|conn| {
            let workspace = path_to_text(workspace);
            let Some(undo) = first(conn, sql::NEXT_TO_REDO, [&workspace])? else { return Ok(None) };
            let mut since = conn.prepare_cached(sql::CALL_SINCE)?;
            let overtaken = since.exists(params![workspace, undo.id])?;
            Ok((!overtaken).then_some(undo))
        })
    }
}

/// The first receipt that a statement of [`sql`] finds.
pub(crate) fn first(conn: &Connection, sql: &str, params: impl Params) -> Attempt<Option<Receipt>> {
    select(conn, sql, params)?.pop().map(|found| found.whole(conn)).transpose()
}

fn choose(conn: &Connection, query: &Query) -> Attempt<Vec<Found>> {
    let before = query.before.unwrap_or(i64::MAX);
    let limit = int(query.limit);
    let workspace = query.workspace.as_deref().map(path_to_text);
    match (&query.session, &workspace, query.only_changes) {
        (Some(session), workspace, only_changes) => {
            let least = i64::from(only_changes);
            select(conn, sql::RECEIPTS_IN_SESSION, params![before, limit, session, workspace, least])
        }
        (None, Some(workspace), true) => {
            select(conn, sql::RECEIPTS_CHANGED_IN_WORKSPACE, params![before, limit, workspace])
        }
        (None, Some(workspace), false) => {
            select(conn, sql::RECEIPTS_IN_WORKSPACE, params![before, limit, workspace])
        }
        (None, None, true) => select(conn, sql::RECEIPTS_CHANGED, [before, limit]),
        (None, None, false) => select(conn, sql::RECEIPTS, [before, limit]),
    }
}

/// A receipt whose changes may stand elsewhere.
struct Found {
    entry: Entry,
    changes_in: Option<Hash>,
}

impl Found {
    fn whole(self, conn: &Connection) -> Attempt<Receipt> {
        let mut receipt = self.entry.receipt;
        if let Some(hash) = &self.changes_in {
            receipt.changes = changes_in(conn, hash)?;
        }
        Ok(receipt)
    }
}

fn select(conn: &Connection, sql: &str, params: impl Params) -> Attempt<Vec<Found>> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut receipts = Vec::new();
    while let Some(row) = rows.next()? {
        let (id, state, body): (i64, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let (changes, undone_by) = (row.get(3)?, row.get(4)?);
        let strange = |why: &dyn std::fmt::Display| {
            damaged(format!("call {id} in the ledger cannot be read ({why}); somebody changed its record"))
        };
        let (event, mut changes_in) = decode(&body).map_err(|error| strange(&error))?;
        let mut receipt = event.into_receipt();
        if receipt.id != id {
            return Err(strange(&format_args!("it says it is call {}", receipt.id)).into());
        }
        if state == State::Running.word() {
            let mut pending = conn.prepare_cached(sql::READ_PENDING)?;
            let pending = pending.query_map([id], |row| row.get::<_, String>(0))?;
            let pending = pending.collect::<rusqlite::Result<Vec<_>>>()?;
            if !pending.is_empty() {
                let changes =
                    pending.iter().map(|change| serde_json::from_str(change)).collect::<Result<_, _>>();
                receipt.changes = changes.map_err(|error| strange(&error))?;
                changes_in = None;
            }
        }
        receipts.push(Found { entry: Entry { receipt, changes, undone_by }, changes_in });
    }
    Ok(receipts)
}
