//! The moments at which a call is written: when it begins, before it changes something, when it ends.

use haft_tool::{ErrorKind, FileContent, Intent, Receipt, ToolError, path_to_text};
use rusqlite::params;

use crate::blob_files::{SyncPolicy, sync_all};
use crate::blobs::{MAX_ROW_BYTES, NewBlob, insert_ref, is_large, key_of};
use crate::commit_spool::SpoolCommit;
use crate::database::{Durability, execute};
use crate::process::ProcessIdentity;
use crate::receipt_rows::{self, RowTexts};
use crate::spool::Spool;
use crate::{Ledger, LedgerWrite, sql};

/// The texts of a call that has ended.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CallTexts<'a> {
    /// What the caller saw.
    pub(crate) result: Option<&'a str>,
    /// The whole text, if the result is only a part of it.
    pub(crate) full_output: Option<&'a str>,
    /// New contents of small files.
    pub(crate) contents: &'a [Vec<u8>],
}

impl Ledger {
    /// Writes that a call runs, and numbers it. Survives the death of this process, so that [`Ledger::recover`] can
    /// find the call.
    pub(crate) fn begin(&self, receipt: &mut Receipt) -> Result<(), ToolError> {
        let process = ProcessIdentity::current().to_text();
        receipt.id =
            self.db.write(Durability::ProcessCrash, |conn| receipt_rows::start(conn, receipt, &process))?;
        Ok(())
    }

    /// Writes that a call is about to change paths. When this returns, the intents and the previous contents have
    /// reached the disk. A call without a number gets one here.
    pub(crate) fn intend(&self, receipt: &mut Receipt, intents: &mut [Intent<'_>]) -> Result<(), ToolError> {
        let large = intents.iter().filter(|intent| is_large(&intent.previous)).count();
        let _lock = self.lock_if(large > 0)?;
        let sync = SyncPolicy::for_files(large);
        let blobs = intents
            .iter_mut()
            .map(|intent| self.previous_content(intent, sync))
            .collect::<Result<Vec<_>, _>>()?;
        if sync == SyncPolicy::Later {
            sync_all(self.db.dir())?;
        }
        let changes = intents
            .iter()
            .map(|intent| serde_json::to_string(&intent.change))
            .collect::<Result<Vec<_>, _>>()?;
        let process = ProcessIdentity::current().to_text();
        receipt.id = self.db.write(Durability::PowerLoss, |conn| {
            let id = match receipt.id {
                0 => receipt_rows::start(conn, receipt, &process)?,
                id => id,
            };
            let first: i64 = conn.prepare_cached(sql::NEXT_INTENT)?.query_row([id], |row| row.get(0))?;
            for (n, ((intent, blob), change)) in (first..).zip(intents.iter().zip(&blobs).zip(&changes)) {
                if let Some(blob) = blob {
                    blob.insert(conn)?;
                }
                if let Some(key) = intent.change.before.as_file().and_then(|file| key_of(&file.hash)) {
                    insert_ref(conn, id, key)?;
                }
                let temp = intent.temp.as_deref().map(path_to_text);
                execute(conn, sql::INSERT_INTENT, params![id, n, change, temp])?;
            }
            let count = first - 1 + sql::int(intents.len());
            execute(conn, sql::SET_CHANGE_COUNT, params![id, count])?;
            Ok(id)
        })?;
        receipt.changes.extend(intents.iter().map(|intent| intent.change.clone()));
        Ok(())
    }

    fn previous_content<'a>(
        &self,
        intent: &mut Intent<'a>,
        sync: SyncPolicy,
    ) -> Result<Option<NewBlob<'a>>, ToolError> {
        let Some(blob) = NewBlob::store(self.db.dir(), &mut intent.previous, sync)? else { return Ok(None) };
        let expected = intent.change.before.as_file().map(|file| file.hash.as_str());
        if expected == Some(blob.hash().as_str()) {
            return Ok(Some(blob));
        }
        let path = intent.change.path.display();
        let message = format!("{path} changed while it was recorded, so nothing was written. Try again.");
        Err(ToolError::new(ErrorKind::Conflict, message))
    }

    /// Writes how a call ended, with exactly the changes of the receipt. The previous contents that a witnessed command
    /// needs come from the spool, which is removed. A call without a number gets one here: one that only reads costs
    /// one insert.
    pub(crate) fn finish(
        &self,
        receipt: &mut Receipt,
        texts: CallTexts<'_>,
        spool: Option<&Spool>,
    ) -> Result<(), ToolError> {
        let long_result = texts.result.filter(|text| text.len() > MAX_ROW_BYTES);
        let mut long_result = FileContent::from(long_result.map(str::as_bytes));
        let mut full_output = FileContent::from(texts.full_output.map(str::as_bytes));
        let _lock = self.lock_if(is_large(&long_result) || is_large(&full_output) || spool.is_some())?;
        // Neither text is needed for undo, so they need not survive a power failure.
        let long_result = NewBlob::store(self.db.dir(), &mut long_result, SyncPolicy::Later)?;
        let full_output = NewBlob::store(self.db.dir(), &mut full_output, SyncPolicy::Later)?;
        receipt.full_output = full_output.as_ref().map(NewBlob::hash);
        let spooled = spool.map(|spool| SpoolCommit::prepare(self, spool.receipt(), &receipt.changes));
        let spooled = spooled.transpose()?;
        let contents: Vec<_> =
            texts.contents.iter().map(|bytes| NewBlob::row(blake3::hash(bytes), bytes)).collect();
        let row = RowTexts {
            changes: changes_json(receipt)?,
            result: texts.result.filter(|_| long_result.is_none()),
            result_blob: long_result.as_ref().map(NewBlob::key),
            contents: contents.iter().map(NewBlob::key).collect(),
        };
        receipt.id = self.db.write(Durability::ProcessCrash, |conn| {
            for blob in [&long_result, &full_output].into_iter().flatten().chain(&contents) {
                blob.insert(conn)?;
            }
            if let Some(spooled) = spooled {
                spooled.insert(conn, &self.db, receipt)?;
            }
            receipt_rows::finish(conn, receipt, &row)
        })?;
        if let Some(spool) = spool {
            spool.remove();
        }
        self.notify(&LedgerWrite::CallEnded { session: &receipt.session, call: receipt.id });
        Ok(())
    }

    /// Leaves a witnessed call that did not stop to the next recovery, in whatever process that runs.
    pub(crate) fn abandon(&self, receipt: &mut Receipt) -> Result<(), ToolError> {
        let state = receipt.state;
        let written = self.db.write(Durability::ProcessCrash, |conn| receipt_rows::start(conn, receipt, ""));
        receipt.state = state;
        written.map(drop)
    }
}

/// The changes of a receipt for its row; `None` if there are none.
pub(crate) fn changes_json(receipt: &Receipt) -> Result<Option<String>, ToolError> {
    let changes = (!receipt.changes.is_empty()).then(|| serde_json::to_string(&receipt.changes));
    Ok(changes.transpose()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_tool::{Change, Node, ReceiptState};

    #[test]
    fn only_intents_wait_for_the_disk() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(dir.path().join("home")).unwrap();
        // The setting of the last commit.
        let waited = || {
            let level = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
            let read = |conn: &rusqlite::Connection| Ok(conn.query_row("PRAGMA synchronous", [], level)?);
            ledger.db.without_transaction(read).unwrap() == 2
        };
        let mut receipt = Receipt::new("c", "Write", "/w", 0);
        receipt.session = "s".into();
        let change = Change::new("/w/d", Node::Absent, Node::directory(0o755));
        ledger.begin(&mut receipt).unwrap();
        assert!(!waited());
        ledger
            .intend(&mut receipt, &mut [Intent { change, previous: FileContent::None, temp: None }])
            .unwrap();
        assert!(waited());
        receipt.state = ReceiptState::Completed;
        ledger.finish(&mut receipt, CallTexts::default(), None).unwrap();
        assert!(!waited());
    }
}
