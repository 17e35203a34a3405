//! Finding the calls that a crash cut off.

use std::path::PathBuf;

use haft_tool::{ErrorKind, Receipt, State, ToolError, now_ms, path_from_text};
use rusqlite::Connection;

use crate::db::{Survives, run};
use crate::event::Expected;
use crate::fault::{Attempt, Fault};
use crate::owner::Owner;
use crate::{Ledger, query, record, sql};

impl Ledger {
    /// Marks the calls whose process is gone as interrupted, and gives each of them once, with the temporary files
    /// it may have left behind. Costs one look at an empty table when all is well.
    pub fn recover(&self) -> Result<Vec<(Receipt, Vec<PathBuf>)>, ToolError> {
        if self.db.direct(abandoned)?.is_empty() {
            return Ok(Vec::new());
        }
        self.db.write(Survives::Crash, |conn| {
            let mut interrupted = Vec::new();
            // Looked up again: another process may have been faster.
            for id in abandoned(conn)? {
                interrupted.extend(interrupt(conn, id)?);
            }
            Ok(interrupted)
        })
    }
}

fn abandoned(conn: &Connection) -> Attempt<Vec<i64>> {
    let now = now_ms();
    let mut statement = conn.prepare_cached(sql::ALL_RUNNING)?;
    let mut rows = statement.query([])?;
    let mut ids = Vec::new();
    while let Some(row) = rows.next()? {
        let (id, owner, since): (i64, String, u64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if Owner::parse(&owner).is_none_or(|owner| owner.is_gone(since, now)) {
            ids.push(id);
        }
    }
    Ok(ids)
}

fn interrupt(conn: &Connection, id: i64) -> Attempt<Option<(Receipt, Vec<PathBuf>)>> {
    let mut receipt = match query::first(conn, sql::RECEIPT, [id]) {
        Ok(Some(receipt)) => receipt,
        // One unreadable record must not stand in the way of every start; asking for it still tells what is wrong.
        Ok(None) | Err(Fault::Told(_)) => {
            run(conn, sql::GIVE_UP_RECEIPT, [id])?;
            run(conn, sql::DELETE_RUNNING, [id])?;
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let mut pending = conn.prepare_cached(sql::READ_PENDING)?;
    let temps = pending.query_map([id], |row| row.get::<_, Option<String>>(1))?;
    let temps: Vec<_> = temps.collect::<rusqlite::Result<_>>()?;
    receipt.state = State::Interrupted;
    receipt.error_kind = Some(ErrorKind::Interrupted);
    receipt.error = Some("the process ended before the call was done".to_owned());
    record::finished(conn, &mut receipt, Expected::Any)?;
    Ok(Some((receipt, temps.into_iter().flatten().map(|temp| path_from_text(&temp)).collect())))
}
