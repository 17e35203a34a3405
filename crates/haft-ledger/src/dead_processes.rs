//! Cleans up what dead processes left behind, for a process that shows it to people.

use haft_tool::{ToolError, now_ms};
use rusqlite::{Connection, params};

use crate::Ledger;
use crate::database::{Durability, execute};
use crate::error::TxResult;
use crate::process::ProcessIdentity;
use crate::questions::answers;
use crate::sql::{self, int};

impl Ledger {
    /// Withdraws the questions of dead processes and ends their right to drive runs, with a feed entry for each; they no longer count
    /// as showing questions. Returns whether they left calls that need recovery.
    pub fn forget_dead_processes(&self) -> Result<bool, ToolError> {
        let (questions, drivers, silent, has_calls) = self.db.read(|conn| {
            let questions = dead(conn, sql::OPEN_QUESTION_PROCESSES)?;
            let drivers = dead(conn, sql::ALL_DRIVERS)?;
            let calls = dead(conn, sql::ALL_RUNNING)?;
            Ok((questions, drivers, silent(conn)?, !calls.is_empty()))
        })?;
        if !(questions.is_empty() && drivers.is_empty() && silent.is_empty()) {
            self.db.write(Durability::ProcessCrash, |conn| {
                for (id, _) in &questions {
                    execute(conn, sql::ANSWER_QUESTION, params![id, None::<String>, int(now_ms())])?;
                }
                for (session, process) in &drivers {
                    execute(conn, sql::DELETE_DRIVER, params![session, process])?;
                }
                for process in &silent {
                    execute(conn, sql::DELETE_ANSWERING, [process])?;
                }
                Ok(())
            })?;
        }
        Ok(has_calls)
    }
}

/// The rows whose process is gone: their first column, and the process.
fn dead(conn: &Connection, sql: &str) -> TxResult<Vec<(rusqlite::types::Value, String)>> {
    let now = now_ms();
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (process, since): (String, u64) = (row.get(1)?, row.get(2)?);
        if ProcessIdentity::parse(&process).is_some_and(|process| process.is_gone(since, now)) {
            found.push((row.get(0)?, process));
        }
    }
    Ok(found)
}

/// The processes that no longer show questions. If one still does, it will note so again.
fn silent(conn: &Connection) -> TxResult<Vec<String>> {
    let now = now_ms();
    let mut statement = conn.prepare_cached(sql::ALL_ANSWERING)?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let process: String = row.get(0)?;
        if !answers(&process, row.get(1)?, now) {
            found.push(process);
        }
    }
    Ok(found)
}
