//! The recorded calls and the files as they are now: what undo and recovery are worked out from. Changes nothing but the
//! receipts of calls whose process died.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use haft_files::{LocalFiles, Root};
use haft_ledger::undo::{UndoPlan, plan};
use haft_ledger::{CallRecord, Ledger, LedgerHandle, ReceiptQuery, WorkspaceView};
use haft_tool::{
    Cancel, Change, CommandChanges, Denial, ErrorKind, FileId, Files, Node, OpenContent, ReadOnlyRecord, Reads, Receipt, ReceiptState,
    RestoreStep, Reversible, Scope, StagedStep, ToolError, lock,
};

use crate::commands::restore_guarded_changes;
use crate::undo::{UndoPreview, UndoTarget};

/// How many calls are read at once while looking for one.
const PAGE_CALLS: usize = 50;

pub(crate) struct History {
    ledger: Arc<LedgerHandle>,
    scope: Arc<Scope>,
    roots: Arc<[Arc<Root>]>,
    /// One recovery at a time: it may undo the steps of a restore.
    recovering: Mutex<()>,
}

impl History {
    pub(crate) fn new(ledger: Arc<LedgerHandle>, scope: &Scope, roots: Arc<[Arc<Root>]>) -> Self {
        // A call may have been granted paths outside the roots, and the settings: their state is observed too.
        let mut scope = Scope { reads: Reads::Everywhere, ..scope.clone() };
        if let Some(config) = &scope.config {
            scope.protected.retain(|protected| protected != config);
        }
        Self { ledger, scope: Arc::new(scope), roots, recovering: Mutex::new(()) }
    }

    pub(crate) fn ledger(&self) -> Result<&Ledger, ToolError> {
        self.ledger.ledger()
    }

    pub(crate) fn session(&self) -> Result<&str, ToolError> {
        self.ledger.session()
    }

    pub(crate) fn workspace(&self) -> &Path {
        &self.scope.workspace
    }

    /// The file of the user's settings.
    pub(crate) fn config(&self) -> Option<&Path> {
        self.scope.config.as_deref()
    }

    /// Whether a write to `path` needs a grant even inside the workspace.
    pub(crate) fn is_guarded(&self, path: &Path) -> bool {
        haft_policy::guard_in(&self.scope, path).is_some()
    }

    /// What undoing `target` would change.
    pub(crate) fn preview(&self, target: &UndoTarget) -> Result<UndoPreview, ToolError> {
        let ledger = self.ledger()?;
        let receipts = self.find(target)?;
        let files = self.files();
        let UndoPlan { mut restore, conflicts, mut blocked } = plan(&receipts, &mut Observer { files: &files, history: self })?;
        let last = receipts.first().map_or(0, |receipt| receipt.id);
        let mut lost = BTreeSet::new();
        for change in &restore.changes {
            if let Node::File(file) = &change.after
                && !ledger.has(&file.hash)?
            {
                lost.insert(file.hash.clone());
                let why = format!("the previous bytes of {} were not kept", change.path.display());
                blocked.push((last, why));
            }
        }
        let is_lost = |node: &Node| node.as_file().is_some_and(|file| lost.contains(&file.hash));
        restore.changes.retain(|change| !is_lost(&change.after));
        restore.steps.retain(|step| !matches!(step, RestoreStep::Set { to, .. } if is_lost(to)));
        Ok(UndoPreview { receipts, restore, conflicts, blocked })
    }

    fn find(&self, target: &UndoTarget) -> Result<Vec<Receipt>, ToolError> {
        let nothing = |what: String| ToolError::new(ErrorKind::TargetNotFound, what);
        let (ledger, here) = (self.ledger()?, self.workspace().display());
        match target {
            UndoTarget::Last => {
                let last = ledger.next_to_undo(self.workspace())?;
                Ok(vec![last.ok_or_else(|| nothing(format!("there is nothing to undo in {here}")))?])
            }
            UndoTarget::LastUndo => {
                let last = ledger.next_to_redo(self.workspace())?;
                Ok(vec![last.ok_or_else(|| nothing(format!("there is nothing to redo in {here}")))?])
            }
            UndoTarget::LastOfSession(session) => {
                let last = self.last_of_session(session)?;
                Ok(vec![last.ok_or_else(|| {
                    nothing("this session has changed nothing that could be undone".to_owned())
                })?])
            }
            UndoTarget::Call(id) => {
                let receipt = ledger.receipt(*id)?;
                if let Some(by) = ledger.undone_by(*id)? {
                    return Err(nothing(format!(
                        "call {id} has already been undone, by call {by}; undo {by} to redo it"
                    )));
                }
                if receipt.changes.is_empty() && receipt.reversible == Reversible::Yes {
                    return Err(nothing(format!("call {id} ({}) changed nothing", receipt.tool)));
                }
                Ok(vec![receipt])
            }
            UndoTarget::Session(id) => {
                let session = ledger.session(id)?.id;
                let query = ReceiptQuery {
                    session: Some(session.clone()),
                    only_changes: true,
                    limit: usize::MAX,
                    ..ReceiptQuery::default()
                };
                let mut receipts = Vec::new();
                for receipt in ledger.receipts(&query)? {
                    if receipt.undoes.is_empty() && ledger.undone_by(receipt.id)?.is_none() {
                        receipts.push(receipt);
                    }
                }
                if receipts.is_empty() {
                    return Err(nothing(format!("session {session} changed nothing that could be undone")));
                }
                Ok(receipts)
            }
        }
    }

    fn last_of_session(&self, session: &str) -> Result<Option<Receipt>, ToolError> {
        let ledger = self.ledger()?;
        let mut query = ReceiptQuery {
            session: Some(session.to_owned()),
            only_changes: true,
            limit: PAGE_CALLS,
            ..ReceiptQuery::default()
        };
        loop {
            let entries = ledger.summaries(&query)?;
            let Some(oldest) = entries.last() else { return Ok(None) };
            query.before = Some(oldest.receipt.id);
            let found = entries.iter().find(|entry| {
                entry.undone_by.is_none()
                    && entry.receipt.undoes.is_empty()
                    && entry.receipt.state != ReceiptState::Running
            });
            if let Some(entry) = found {
                return ledger.receipt(entry.receipt.id).map(Some);
            }
        }
    }

    /// Marks calls whose process died as interrupted and removes the temporary files they left.
    pub(crate) fn recover(&self) -> Result<Vec<Receipt>, ToolError> {
        self.recover_by(Ledger::recover)
    }

    /// The same for the calls in this workspace. What a call changes after that is not taken for what they did.
    pub(crate) fn recover_here(&self) -> Result<(), ToolError> {
        self.recover_by(|ledger, view| ledger.recover_workspace(self.workspace(), view)).map(drop)
    }

    fn recover_by(
        &self,
        recover: impl FnOnce(&Ledger, &mut dyn WorkspaceView) -> Result<Vec<(Receipt, Vec<PathBuf>)>, ToolError>,
    ) -> Result<Vec<Receipt>, ToolError> {
        let _one_at_a_time = lock(&self.recovering);
        // A restore that was interrupted is undone.
        let scope = Arc::new(Scope { writes: true, blocked: Vec::new(), ..(*self.scope).clone() });
        let roots = Arc::clone(&self.roots);
        let files = LocalFiles::new(scope, roots, Arc::new(ReadOnlyRecord), Cancel::new());
        let mut recovered = Vec::new();
        let mut observer = Observer { files: &files, history: self };
        for (receipt, temps) in recover(self.ledger()?, &mut observer)? {
            let ours: Vec<_> =
                temps.into_iter().filter(|temp| !holds_foreign_bytes(&files, &receipt, temp)).collect();
            haft_files::remove_leftovers(&ours);
            recovered.push(receipt);
        }
        Ok(recovered)
    }

    fn files(&self) -> LocalFiles {
        let (scope, roots) = (Arc::clone(&self.scope), Arc::clone(&self.roots));
        LocalFiles::new(scope, roots, Arc::new(ReadOnlyRecord), Cancel::new())
    }
}

/// The files as undo and recovery read them.
struct Observer<'a> {
    files: &'a LocalFiles,
    history: &'a History,
}

impl WorkspaceView for Observer<'_> {
    fn observe(&mut self, path: &Path) -> Result<Node, ToolError> {
        self.files.observe_recorded(path)
    }

    fn file_id(&mut self, path: &Path) -> Option<FileId> {
        haft_files::id_of(path)
    }

    fn content(&mut self, path: &Path) -> Option<Box<dyn Read + Send>> {
        self.files.open(path).ok().map(|file| file.reader)
    }

    fn entry_names(&mut self, path: &Path) -> Result<Vec<OsString>, ToolError> {
        Ok(self.files.list(path)?.into_iter().map(|entry| entry.name).collect())
    }

    fn undo_restore(
        &mut self,
        steps: &[StagedStep],
        made: Option<usize>,
        content: &OpenContent<'_>,
    ) -> Result<(), ToolError> {
        if let Some(made) = made {
            self.files.roll_back(&steps[..made.min(steps.len())], content)?;
        }
        haft_files::remove_stages(steps);
        Ok(())
    }

    fn restore_guarded(
        &mut self,
        call: &Receipt,
        command: &CommandChanges,
        changes: &[Change],
    ) -> Vec<Denial> {
        let mut scope = (*self.history.scope).clone();
        if !scope.roots.contains(&call.workspace) {
            scope.roots = vec![call.workspace.clone()];
        }
        let record = CallRecord::new(Arc::clone(&self.history.ledger), call.clone());
        restore_guarded_changes(command, changes, &scope, &record, call.started_at)
    }

    fn find_links(&mut self, files: HashSet<FileId>, except: &HashSet<&Path>) -> HashMap<FileId, PathBuf> {
        self.files.find(files, except)
    }
}

/// Whether a temporary file holds bytes of another program: the call's new file was already exchanged with it, and it is
/// not the file that the call had read.
fn holds_foreign_bytes(files: &LocalFiles, receipt: &Receipt, temp: &Path) -> bool {
    receipt.changes.iter().filter(|change| change.path.parent() == temp.parent()).any(|change| {
        let is = |path: &Path, node: &Node| files.observe(path).is_ok_and(|now| now.same_as(node));
        is(&change.path, &change.after) && !is(temp, &change.before)
    })
}
