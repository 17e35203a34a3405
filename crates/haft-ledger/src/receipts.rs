//! The three moments at which a call is written down.

use std::collections::HashSet;

use haft_tool::{Intent, Receipt, ToolError, path_to_text};
use rusqlite::params;

use crate::blobs::{Image, Sync, best_sync, is_large, sync_later};
use crate::db::{Survives, run};
use crate::event::Expected;
use crate::{Ledger, record, sql};

impl Ledger {
    /// Records that a call begins and gives it its number.
    ///
    /// The record survives the death of this process, so that [`Ledger::recover`] can tell what became of the call.
    pub fn begin(&self, receipt: &mut Receipt) -> Result<(), ToolError> {
        if receipt.id != 0 {
            return Err(ToolError::internal(format!("call {} has begun already", receipt.id)));
        }
        let begun = self.db.write(Survives::Crash, |conn| record::started(conn, receipt, Expected::Any));
        unnumber(begun, receipt, 0).map(drop)
    }

    /// Records that a call is about to change paths; when this returns, the record and the bytes that stand there
    /// have reached the disk, and the changes may be made.
    ///
    /// A call that has not begun begins here. All changes share one wait for the disk.
    pub fn before_changes(&self, receipt: &mut Receipt, intents: &mut [Intent<'_>]) -> Result<(), ToolError> {
        let large = intents.iter().filter(|intent| is_large(&intent.previous)).count();
        let _lock = self.lock_if(large > 0)?;
        let sync = best_sync(large);
        let images =
            intents.iter_mut().map(|intent| self.image(intent, sync)).collect::<Result<Vec<_>, _>>()?;
        if sync == Sync::Later {
            sync_later(self.db.home())?;
        }
        let bodies = intents
            .iter()
            .map(|intent| serde_json::to_string(&intent.change))
            .collect::<Result<Vec<_>, _>>()?;
        let number = receipt.id;
        let written = self.db.write(Survives::PowerLoss, |conn| {
            if receipt.id == 0 {
                record::started(conn, receipt, Expected::Any)?;
            }
            let mut n: i64 =
                conn.prepare_cached(sql::NEXT_PENDING)?.query_row([receipt.id], |row| row.get(0))?;
            for ((intent, image), body) in intents.iter().zip(&images).zip(&bodies) {
                if let Some(image) = image {
                    image.insert(conn, false)?;
                }
                if let Some(file) = intent.change.before.as_file() {
                    record::refer(conn, receipt.id, &file.hash)?;
                }
                run(
                    conn,
                    sql::INSERT_PENDING,
                    params![receipt.id, n, body, intent.temp.as_deref().map(path_to_text)],
                )?;
                n += 1;
            }
            run(conn, sql::COUNT_CHANGES, params![receipt.id, n - 1])?;
            Ok(())
        });
        unnumber(written, receipt, number)?;
        receipt.changes.extend(intents.iter().map(|intent| intent.change.clone()));
        Ok(())
    }

    /// The before-image of an intent, stored or ready to be stored with it.
    fn image<'a>(&self, intent: &mut Intent<'a>, sync: Sync) -> Result<Option<Image<'a>>, ToolError> {
        let Some(image) = Image::store(self.db.home(), &mut intent.previous, sync)? else { return Ok(None) };
        let said = intent.change.before.as_file().map(|file| file.hash.as_str());
        if said == Some(image.hash().as_str()) {
            return Ok(Some(image));
        }
        Err(ToolError::internal(format!(
            "the before-image of {} is not what the change says",
            intent.change.path.display()
        )))
    }

    /// Records how a call ended, and with it exactly the changes that the receipt names.
    ///
    /// A call that has not begun gets its number here: one that only reads costs a single commit.
    pub fn finish(&self, receipt: &mut Receipt) -> Result<(), ToolError> {
        let number = receipt.id;
        let finished = self
            .db
            .write(Survives::Crash, |conn| record::finished(conn, receipt, Expected::Any, &HashSet::new()));
        unnumber(finished, receipt, number).map(drop)
    }
}

/// Takes back a number that was given in a transaction that came to nothing.
pub(crate) fn unnumber<T>(
    written: Result<T, ToolError>,
    receipt: &mut Receipt,
    number: i64,
) -> Result<T, ToolError> {
    if written.is_err() {
        receipt.id = number;
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_tool::{Change, FileContent, Node, Reversible, State};

    #[test]
    fn a_change_waits_for_the_disk_and_nothing_else_does() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(dir.path().join("home")).unwrap();
        // The connection still stands as the last commit left it.
        let waited = || {
            let level = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
            ledger.db.direct(|conn| Ok(conn.query_row("PRAGMA synchronous", [], level)?)).unwrap() == 2
        };
        let mut receipt = Receipt {
            id: 0,
            session: "s".into(),
            call_id: "c".into(),
            tool: "Write".into(),
            workspace: "/w".into(),
            input: haft_tool::Value::Null,
            effects: Vec::new(),
            decision: None,
            state: State::Running,
            error_kind: None,
            error: None,
            started_at: 0,
            duration_us: 0,
            changes: Vec::new(),
            reversible: Reversible::Yes,
            undoes: Vec::new(),
            full_output: None,
            enforcement: None,
            denials: Vec::new(),
            notes: serde_json::Map::default(),
        };
        let change = Change::new("/w/d", Node::Absent, Node::Dir { mode: 0o755 });
        ledger.begin(&mut receipt).unwrap();
        assert!(!waited());
        ledger
            .before_changes(&mut receipt, &mut [Intent { change, previous: FileContent::None, temp: None }])
            .unwrap();
        assert!(waited());
        receipt.state = State::Completed;
        ledger.finish(&mut receipt).unwrap();
        assert!(!waited());
    }
}
