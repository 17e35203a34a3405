//! The three moments at which a call is written down.

use std::path::Path;

use haft_tool::{Change, Receipt, ToolError};
use rusqlite::params;

use crate::blobs::Image;
use crate::codec::{encode_change, escape};
use crate::db::{Survives, run};
use crate::event::Expected;
use crate::sql::{self, int};
use crate::{Ledger, record};

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

    /// Records that a call is about to change a path; when this returns, the record and the bytes in `before` have
    /// reached the disk, and the change may be made.
    ///
    /// A call that has not begun begins here. `temp` names the file that will be renamed into place, so that the
    /// leftovers of a crash can be found.
    pub fn before_change(
        &self,
        receipt: &mut Receipt,
        change: &Change,
        before: Option<&[u8]>,
        temp: Option<&Path>,
    ) -> Result<(), ToolError> {
        let image = before.map(|bytes| Image::store(self.db.home(), bytes)).transpose()?;
        if let Some(image) = &image {
            let said = change.before.as_file().map(|file| file.hash.as_str());
            if said != Some(image.hash().as_str()) {
                return Err(ToolError::internal(format!(
                    "the before-image of {} is not what the change says",
                    change.path.display()
                )));
            }
        }
        let body = encode_change(change)?;
        let number = receipt.id;
        let written = self.db.write(Survives::PowerLoss, |conn| {
            if receipt.id == 0 {
                record::started(conn, receipt, Expected::Any)?;
            }
            if let Some(image) = &image {
                image.insert(conn, false)?;
            }
            if let Some(file) = change.before.as_file() {
                record::refer(conn, receipt.id, &file.hash)?;
            }
            let n: i64 = conn.prepare_cached(sql::NEXT_PENDING)?.query_row([receipt.id], |row| row.get(0))?;
            run(conn, sql::INSERT_PENDING, params![receipt.id, n, body, temp.map(escape)])?;
            run(conn, sql::COUNT_CHANGES, params![receipt.id, int(n)])?;
            Ok(())
        });
        unnumber(written, receipt, number)?;
        receipt.changes.push(change.clone());
        Ok(())
    }

    /// Records how a call ended, and with it exactly the changes that the receipt names.
    ///
    /// A call that has not begun gets its number here: one that only reads costs a single commit.
    pub fn finish(&self, receipt: &mut Receipt) -> Result<(), ToolError> {
        let number = receipt.id;
        let finished = self.db.write(Survives::Crash, |conn| record::finished(conn, receipt, Expected::Any));
        unnumber(finished, receipt, number).map(drop)
    }
}

/// Takes back a number that was given in a transaction that came to nothing.
fn unnumber<T>(written: Result<T, ToolError>, receipt: &mut Receipt, number: i64) -> Result<T, ToolError> {
    if written.is_err() {
        receipt.id = number;
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_tool::{Node, Reversible, State};

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
        };
        let change = Change { path: "/w/d".into(), before: Node::Absent, after: Node::Dir { mode: 0o755 } };
        ledger.begin(&mut receipt).unwrap();
        assert!(!waited());
        ledger.before_change(&mut receipt, &change, None, None).unwrap();
        assert!(waited());
        receipt.state = State::Completed;
        ledger.finish(&mut receipt).unwrap();
        assert!(!waited());
    }
}
