//! Calls in the order of their numbers, with little more than the fields that metrics count.

use haft_tool::{ErrorKind, ReceiptState, ToolError};
use rusqlite::{Params, Row};
use serde::Deserialize;

use crate::Ledger;
use crate::error::TxResult;
use crate::sql::{self, int};

/// The fields of a call that metrics count.
#[derive(Debug, Clone, PartialEq)]
pub struct CountedCall {
    /// Its number.
    pub id: i64,
    /// How it ended, or that it still runs.
    pub state: ReceiptState,
    /// The dialect of its session.
    pub dialect: Option<String>,
    /// The tool's name.
    pub tool: String,
    /// The error's kind, if it failed.
    pub error_kind: Option<ErrorKind>,
    /// How long it took, in microseconds.
    pub duration_us: u64,
    /// How often its scope refused something to its commands.
    pub denials: usize,
    /// Whether it undid calls.
    pub is_undo: bool,
    /// How its scope was enforced.
    pub enforcement: Option<String>,
}

/// The fields of a receipt that are read.
#[derive(Deserialize)]
struct CountedBody {
    tool: String,
    state: ReceiptState,
    #[serde(default)]
    error_kind: Option<ErrorKind>,
    #[serde(default)]
    duration_us: u64,
    #[serde(default)]
    denials: Vec<serde::de::IgnoredAny>,
    #[serde(default)]
    undoes: Vec<serde::de::IgnoredAny>,
    #[serde(default)]
    enforcement: Option<String>,
}

impl Ledger {
    /// The number of the newest call; 0 if there is none.
    pub fn newest_call(&self) -> Result<i64, ToolError> {
        self.db.read(|conn| {
            let newest: Option<i64> =
                conn.prepare_cached(sql::NEWEST_CALL)?.query_row([], |row| row.get(0))?;
            Ok(newest.unwrap_or(0))
        })
    }

    /// At most `limit` calls after the number `after`, oldest first. A row that cannot be read is left out.
    pub fn counted_calls(&self, after: i64, limit: usize) -> Result<Vec<CountedCall>, ToolError> {
        self.select_counted(sql::COUNTED_CALLS, [after, int(limit)])
    }

    /// The call of that number, if there is one.
    pub fn counted_call(&self, id: i64) -> Result<Option<CountedCall>, ToolError> {
        Ok(self.select_counted(sql::COUNTED_CALL, [id])?.pop())
    }

    fn select_counted(&self, sql: &str, params: impl Params) -> Result<Vec<CountedCall>, ToolError> {
        self.db.read(|conn| {
            let mut statement = conn.prepare_cached(sql)?;
            let mut rows = statement.query(params)?;
            let mut calls = Vec::new();
            while let Some(row) = rows.next()? {
                let id = row.get(0)?;
                calls.extend(self.skip_damaged(id, counted(id, row))?);
            }
            Ok(calls)
        })
    }
}

fn counted(id: i64, row: &Row<'_>) -> TxResult<CountedCall> {
    let body: String = row.get(2)?;
    let body: CountedBody = serde_json::from_str(&body).map_err(ToolError::from)?;
    // When a call's process was found dead, only the column has the state.
    let state: String = row.get(1)?;
    let is_interrupted = state == ReceiptState::Interrupted.word();
    Ok(CountedCall {
        id,
        state: if is_interrupted { ReceiptState::Interrupted } else { body.state },
        dialect: row.get(3)?,
        tool: body.tool,
        error_kind: body.error_kind,
        duration_us: body.duration_us,
        denials: body.denials.len(),
        is_undo: !body.undoes.is_empty(),
        enforcement: body.enforcement,
    })
}
