//! Finding the calls that a crash cut off.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use haft_tool::{ErrorKind, Receipt, Reversible, State, ToolError, now_ms, path_from_text};
use rusqlite::Connection;

use crate::aftermath::{Aftermath, Look, aftermath};
use crate::db::{Db, Survives, run};
use crate::event::Expected;
use crate::fault::{Attempt, Fault};
use crate::harvest::Harvest;
use crate::owner::Owner;
use crate::spool::{self, Reader};
use crate::{Ledger, query, record, sql};

/// What a witnessed call left, and the images it needs.
type Left = (Aftermath, Harvest);

impl Ledger {
    /// Marks the calls whose process is gone as interrupted, and gives each of them once, with the temporary files
    /// it may have left behind. What a witnessed command changed is found by looking. Costs one look at an empty
    /// table and one at an empty directory when all is well.
    pub fn recover(&self, look: &mut dyn Look) -> Result<Vec<(Receipt, Vec<PathBuf>)>, ToolError> {
        self.sweep_spool()?;
        let gone = self.db.direct(abandoned)?;
        if gone.is_empty() {
            return Ok(Vec::new());
        }
        // Looking takes time, so it is done before others are locked out.
        let mut left = BTreeMap::new();
        for id in gone {
            left.insert(id, self.left_by(id, look)?);
        }
        let interrupted = self.db.write(Survives::Crash, |conn| {
            let mut interrupted = Vec::new();
            // Looked up again: another process may have been faster.
            for id in abandoned(conn)? {
                if let Some(left) = left.remove(&id) {
                    interrupted.extend(interrupt(conn, &self.db, id, left)?);
                }
            }
            Ok(interrupted)
        })?;
        for (receipt, _) in &interrupted {
            spool::remove(&self.db, receipt.id);
        }
        Ok(interrupted)
    }

    /// Removes what calls left in the spool that have come to their end.
    fn sweep_spool(&self) -> Result<(), ToolError> {
        // Listed before it is looked up who runs: a call is running before it has a spool.
        for call in spool::calls(&self.db) {
            let runs = self.db.direct(|conn| Ok(conn.prepare_cached(sql::IS_RUNNING)?.exists([call])?))?;
            if !runs {
                spool::remove(&self.db, call);
            }
        }
        Ok(())
    }

    fn left_by(&self, id: i64, look: &mut dyn Look) -> Result<Option<Left>, ToolError> {
        let told = |error| ToolError::io(format_args!("reading the spool of call {id}"), &error);
        let Some(mut lines) = Reader::open(&self.db, id).map_err(told)? else { return Ok(None) };
        let mut records = Vec::new();
        while let Some(line) = lines.next().map_err(told)? {
            // What cannot be read was never acknowledged, so nothing was changed behind it.
            let Some(record) = line.record() else { break };
            records.push(record);
        }
        let aftermath = aftermath(records, look);
        let harvest = Harvest::prepare(self, id, &aftermath.changes)?;
        Ok(Some((aftermath, harvest)))
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

fn interrupt(
    conn: &Connection,
    db: &Db,
    id: i64,
    left: Option<Left>,
) -> Attempt<Option<(Receipt, Vec<PathBuf>)>> {
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
    receipt.error.get_or_insert_with(|| "the process ended before the call was done".to_owned());
    let mut packed = HashSet::new();
    if let Some((aftermath, harvest)) = left {
        // The command's processes died with Haft, and until then each touch was written down first.
        receipt.reversible = match aftermath.unseen.as_slice() {
            [] => Reversible::Yes,
            [first, ..] => Reversible::Partly { why: format!("not all could be looked at: {first}") },
        };
        receipt.changes.extend(aftermath.changes);
        packed = harvest.store(conn, db, &mut receipt)?;
    }
    record::finished(conn, &mut receipt, Expected::Any, &packed)?;
    Ok(Some((receipt, temps.into_iter().flatten().map(|temp| path_from_text(&temp)).collect())))
}
