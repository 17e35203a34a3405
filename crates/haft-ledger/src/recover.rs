//! Recovery: calls whose process died become interrupted receipts.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

use haft_tool::{
    Change, ErrorKind, Receipt, ReceiptState, Reversible, ToolError, is_git_index, now_ms, path_from_text,
};
use rusqlite::Connection;
use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::commit_spool::SpoolCommit;
use crate::database::{Database, Durability, execute};
use crate::error::{TransactionError, TxResult};
use crate::process::ProcessIdentity;
use crate::query::first_receipt;
use crate::receipt_rows::{self, RowTexts};
use crate::receipts::changes_json;
use crate::recover_changes::{RecoveredChanges, RecoveredCommand, WorkspaceView};
use crate::spool::{SpoolRecord, spool_path};
use crate::spool_reader::SpoolReader;
use crate::undo::unrestorable;
use crate::{Ledger, spool, sql};

/// How long the processes of a command may take to end after Haft died. The reaper kills them long before.
const COMMAND_END_TIMEOUT: Duration = Duration::from_secs(8);

/// What is known of a call from its spool.
enum SpooledCall {
    /// It has no spool: if it runs commands, none of them was started.
    Nothing,
    /// A command whose changes are not known.
    Unwitnessed,
    /// The changes of a witnessed command, and the previous contents that they need.
    Command(RecoveredChanges, SpoolCommit),
    /// A restore, of which either all steps were made or those that were made are undone.
    Restore { is_complete: bool },
    /// A restore that could not be undone, and why.
    Stuck(String),
}

impl Ledger {
    /// Marks the calls whose process is gone as interrupted, and returns each of them once, with the temporary files it
    /// may have left behind. The changes of witnessed commands are determined by comparing the spool with `view`. Costs
    /// a look at an empty table and an empty directory when there is nothing to do.
    pub fn recover(&self, view: &mut dyn WorkspaceView) -> Result<Vec<(Receipt, Vec<PathBuf>)>, ToolError> {
        self.remove_unused_spools()?;
        self.recover_where(view, true, &|_| true)
    }

    /// The same for the calls of one workspace, but not for those that were given up: their commands may still run. Called before a
    /// call changes something there, because the states in the spools are compared with the current ones.
    pub fn recover_workspace(
        &self,
        workspace: &Path,
        view: &mut dyn WorkspaceView,
    ) -> Result<Vec<(Receipt, Vec<PathBuf>)>, ToolError> {
        self.recover_where(view, false, &|receipt| receipt.workspace == workspace)
    }

    fn recover_where(
        &self,
        view: &mut dyn WorkspaceView,
        with_abandoned: bool,
        is_meant: &dyn Fn(&Receipt) -> bool,
    ) -> Result<Vec<(Receipt, Vec<PathBuf>)>, ToolError> {
        let is_meant = |conn: &Connection, id: i64| match first_receipt(conn, sql::RECEIPT, [id]) {
            Ok(Some(receipt)) => is_meant(&receipt),
            // What cannot be read is marked as interrupted by any recovery.
            _ => true,
        };
        let dead = self.db.without_transaction(|conn| {
            let mut dead = dead_calls(conn, with_abandoned)?;
            dead.retain(|id| is_meant(conn, *id));
            Ok(dead)
        })?;
        if dead.is_empty() {
            return Ok(Vec::new());
        }
        let _lock = self.db.dir().lock(FlockOperation::LockShared)?;
        // Comparing takes time, so it is done before the transaction.
        let mut witnessed = BTreeMap::new();
        for id in dead {
            witnessed.insert(id, self.witnessed_changes(id, view)?);
        }
        let interrupted = self.db.write(Durability::ProcessCrash, |conn| {
            let mut interrupted = Vec::new();
            // Looked up again: another process may have recovered some of them.
            for id in dead_calls(conn, with_abandoned)? {
                if let Some(witnessed) = witnessed.remove(&id) {
                    interrupted.extend(interrupt(conn, &self.db, id, witnessed)?);
                }
            }
            Ok(interrupted)
        })?;
        for (receipt, _) in &interrupted {
            spool::remove(self.db.dir(), receipt.id);
        }
        Ok(interrupted)
    }

    /// Removes the spools of calls that have ended.
    fn remove_unused_spools(&self) -> Result<(), ToolError> {
        // The spools are listed first: a call is running before it has one.
        for id in spool::receipts(self.db.dir()) {
            let is_running = |conn: &Connection| Ok(conn.prepare_cached(sql::IS_RUNNING)?.exists([id])?);
            if !self.db.without_transaction(is_running)? {
                spool::remove(self.db.dir(), id);
            }
        }
        Ok(())
    }

    fn witnessed_changes(&self, id: i64, view: &mut dyn WorkspaceView) -> Result<SpooledCall, ToolError> {
        let failed = |error| ToolError::io(format_args!("read the spool of call {id}"), &error);
        let Some(mut reader) = SpoolReader::open(self.db.dir(), id).map_err(failed)? else {
            return Ok(SpooledCall::Nothing);
        };
        self.wait_for_command(id);
        let (mut records, mut steps, mut made, mut is_complete) = (Vec::new(), Vec::new(), 0, false);
        while let Some(record) = reader.next().map_err(failed)? {
            // A damaged record was never acknowledged, so nothing was changed after it.
            let Some(record) = record.decode() else { break };
            match record {
                SpoolRecord::Restore { steps: more } => steps.extend(more.into_owned()),
                SpoolRecord::RestoreStep { made: so_far } => made = so_far,
                SpoolRecord::Restored => is_complete = true,
                SpoolRecord::Unwitnessed => return Ok(SpooledCall::Unwitnessed),
                record => records.push(record),
            }
        }
        if !steps.is_empty() {
            let made = (!is_complete).then_some(made);
            let undone = view.undo_restore(&steps, made, &|file| self.open_blob(&file.hash));
            return Ok(match undone {
                Ok(()) => SpooledCall::Restore { is_complete },
                Err(error) => SpooledCall::Stuck(error.message),
            });
        }
        let ended_at = spool_path(self.db.dir(), id).metadata().and_then(|meta| meta.modified()).ok();
        let command = RecoveredCommand::new(&records, ended_at, view);
        let recovered = match self.receipt(id) {
            Ok(call) => command.judged_changes(&call, view),
            // Without it the call is only marked as interrupted.
            Err(_) => command.changes(view),
        };
        self.keep_indexes(id, &recovered.changes, view)?;
        let commit = SpoolCommit::prepare(self, id, &recovered.changes)?;
        Ok(SpooledCall::Command(recovered, commit))
    }

    /// Waits until the last process of a command has ended. Its reaper has a lock until then, and kills what does not end.
    fn wait_for_command(&self, id: i64) {
        let Ok(spool) = File::open(spool_path(self.db.dir(), id)) else { return };
        if rustix::fs::flock(&spool, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return;
        }
        // A lock has no time limit, so another thread waits for it.
        let (ended, end) = channel();
        std::thread::spawn(move || {
            while rustix::fs::flock(&spool, FlockOperation::LockExclusive) == Err(Errno::INTR) {}
            let _ = ended.send(());
        });
        let _ = end.recv_timeout(COMMAND_END_TIMEOUT);
    }

    /// Keeps the lists of git objects that the command wrote. One that is not kept counts as one of all objects.
    fn keep_indexes(
        &self,
        id: i64,
        changes: &[Change],
        view: &mut dyn WorkspaceView,
    ) -> Result<(), ToolError> {
        let written = |change: &&Change| is_git_index(&change.path) && change.after.as_file().is_some();
        for change in changes.iter().filter(written) {
            if let Some(mut content) = view.content(&change.path) {
                drop(self.spool(id)?.keep(&mut content));
            }
        }
        Ok(())
    }
}

/// The running calls whose process is gone; an abandoned call has none.
fn dead_calls(conn: &Connection, with_abandoned: bool) -> TxResult<Vec<i64>> {
    let now = now_ms();
    let mut statement = conn.prepare_cached(sql::ALL_RUNNING)?;
    let mut rows = statement.query([])?;
    let mut ids = Vec::new();
    while let Some(row) = rows.next()? {
        let (id, process, since): (i64, String, u64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if ProcessIdentity::parse(&process).map_or(with_abandoned, |process| process.is_gone(since, now)) {
            ids.push(id);
        }
    }
    Ok(ids)
}

fn interrupt(
    conn: &Connection,
    db: &Database,
    id: i64,
    spooled: SpooledCall,
) -> TxResult<Option<(Receipt, Vec<PathBuf>)>> {
    let mut receipt = match first_receipt(conn, sql::RECEIPT, [id]) {
        Ok(Some(receipt)) => receipt,
        // One unreadable receipt must not block every start; reading it still returns the error.
        Ok(None) | Err(TransactionError::Tool(_)) => {
            execute(conn, sql::SET_INTERRUPTED, [id])?;
            execute(conn, sql::DELETE_RUNNING, [id])?;
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let mut intents = conn.prepare_cached(sql::READ_INTENTS)?;
    let temps = intents.query_map([id], |row| row.get::<_, Option<String>>(1))?;
    let temps: Vec<_> = temps.collect::<rusqlite::Result<_>>()?;
    receipt.state = ReceiptState::Interrupted;
    receipt.error_kind = Some(ErrorKind::Interrupted);
    receipt.error.get_or_insert_with(|| "the process ended before the call was done".to_owned());
    if let SpooledCall::Stuck(why) = &spooled {
        receipt.error = Some(format!("the process ended before the call was done: {why}"));
    }
    match &spooled {
        SpooledCall::Restore { is_complete: false } => {
            receipt.changes.clear();
            receipt.undoes.clear();
            receipt.error = Some(
                "the process ended before the call was done, so what it had changed was undone".to_owned(),
            );
        }
        // Everything was done but writing this.
        SpooledCall::Restore { is_complete: true } => {
            receipt.state = ReceiptState::Completed;
            (receipt.error_kind, receipt.error) = (None, None);
        }
        _ => {}
    }
    if matches!(spooled, SpooledCall::Nothing) {
        receipt.reversible = Reversible::Yes;
    }
    if let SpooledCall::Command(recovered, commit) = spooled {
        // The command's processes died with Haft, and every change was recorded before it was made.
        receipt.reversible = match recovered.unreadable.as_slice() {
            [] => unrestorable(&recovered.changes).map_or(Reversible::Yes, |why| Reversible::Partly { why }),
            [first, ..] => Reversible::Partly { why: format!("some paths could not be read: {first}") },
        };
        receipt.denials.extend(recovered.denials);
        receipt.changes.extend(recovered.changes);
        commit.insert(conn, db, &mut receipt)?;
    }
    let texts = RowTexts { changes: changes_json(&receipt)?, ..RowTexts::default() };
    receipt_rows::finish(conn, &mut receipt, &texts)?;
    Ok(Some((receipt, temps.into_iter().flatten().map(|temp| path_from_text(&temp)).collect())))
}
