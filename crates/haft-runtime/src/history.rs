//! The recorded calls and the current files, from which undo and recovery are worked out. Changes only the receipts of calls
//! whose process died.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use haft_files::{LocalFiles, Root};
use haft_ledger::undo::{UndoConflict, UndoPlan, plan};
use haft_ledger::{Ledger, LedgerHandle, ReceiptFilter, ReceiptQuery, WorkspaceView};
use haft_tool::{Cancel, Files, Node, ReadOnlyRecord, Reads, Receipt, RestoreStep, Scope, ToolError, lock};

use crate::undo::{UndoPreview, UndoTarget};
use crate::undo_guard::unjudged_files;
use crate::undo_paths::UndoPaths;
use crate::workspace_view::FileView;

/// For more conflicts the call behind them is not looked up.
const MAX_EXPLAINED_CONFLICTS: usize = 50;

pub(crate) struct History {
    ledger: Arc<LedgerHandle>,
    scope: Arc<Scope>,
    roots: Arc<[Arc<Root>]>,
    /// Allows only one recovery at a time, because it may undo the steps of a restore.
    recovering: Mutex<()>,
}

impl History {
    pub(crate) fn new(ledger: Arc<LedgerHandle>, scope: &Scope, roots: Arc<[Arc<Root>]>) -> Self {
        // A call may have been granted paths outside the roots, or the settings, so their state must be readable, too.
        let mut scope = Scope { reads: Reads::Everywhere, ..scope.clone() };
        if let Some(config) = &scope.config {
            scope.protected.retain(|protected| protected != config);
        }
        Self { ledger, scope: Arc::new(scope), roots, recovering: Mutex::new(()) }
    }

    pub(crate) fn ledger(&self) -> Result<&Ledger, ToolError> {
        self.ledger.ledger()
    }

    pub(crate) fn handle(&self) -> &Arc<LedgerHandle> {
        &self.ledger
    }

    pub(crate) fn scope(&self) -> &Scope {
        &self.scope
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

    /// What undoing `target` would change in these paths.
    pub(crate) fn preview(&self, target: &UndoTarget, paths: &UndoPaths) -> Result<UndoPreview, ToolError> {
        let ledger = self.ledger()?;
        let mut receipts = self.find(target, paths)?;
        let left_out = paths.restrict(&mut receipts)?;
        self.mark_contested(&mut receipts)?;
        let files = self.files();
        let mut view = FileView::new(&files, self);
        let UndoPlan { mut restore, mut conflicts, mut blocked } = plan(&receipts, &mut view)?;
        conflicts.extend(unjudged_files(&restore, ledger, &mut view)?);
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
        let changed_by = self.changed_by(&conflicts, last)?;
        let merged = BTreeMap::new();
        Ok(UndoPreview { receipts, restore, conflicts, blocked, changed_by, left_out, merged })
    }

    /// Marks changes of paths that other calls also changed while the call ran.
    fn mark_contested(&self, receipts: &mut [Receipt]) -> Result<(), ToolError> {
        let ids: Vec<i64> = receipts.iter().map(|receipt| receipt.id).collect();
        for receipt in receipts {
            let others = self.ledger()?.changed_meanwhile(receipt, &ids)?;
            for change in receipt.changes.iter_mut().filter(|change| others.contains(&change.path)) {
                change.contested = true;
            }
        }
        Ok(())
    }

    /// The later calls that left the conflicting paths as they are now.
    fn changed_by(
        &self,
        conflicts: &[UndoConflict],
        last: i64,
    ) -> Result<BTreeMap<PathBuf, Receipt>, ToolError> {
        let mut found = BTreeMap::new();
        let query = ReceiptQuery { only_changes: true, limit: 1, ..ReceiptQuery::default() };
        for conflict in conflicts.iter().take(MAX_EXPLAINED_CONFLICTS) {
            let changed = Some(conflict.path.clone());
            let filter = ReceiptFilter { changed, ..ReceiptFilter::default() };
            let Some(newest) = self.ledger()?.search(&query, &filter)?.pop() else { continue };
            let mut changes = newest.receipt.changes.iter();
            let is_its =
                changes.any(|change| change.path == conflict.path && conflict.found.same_as(&change.after));
            if newest.receipt.id > last && is_its {
                found.insert(conflict.path.clone(), newest.receipt);
            }
        }
        Ok(found)
    }

    /// Marks calls whose process died as interrupted and removes the temporary files they left.
    pub(crate) fn recover(&self) -> Result<Vec<Receipt>, ToolError> {
        self.recover_by(Ledger::recover)
    }

    /// The same for the calls in this workspace, so that what a call changes from now on is not attributed to them.
    pub(crate) fn recover_here(&self) -> Result<(), ToolError> {
        self.recover_by(|ledger, view| ledger.recover_workspace(self.workspace(), view)).map(drop)
    }

    fn recover_by(
        &self,
        recover: impl FnOnce(&Ledger, &mut dyn WorkspaceView) -> Result<Vec<(Receipt, Vec<PathBuf>)>, ToolError>,
    ) -> Result<Vec<Receipt>, ToolError> {
        let _one_at_a_time = lock(&self.recovering);
        // Writable, because a restore that was interrupted is undone.
        let scope = Arc::new(Scope { writes: true, blocked: Vec::new(), ..(*self.scope).clone() });
        let roots = Arc::clone(&self.roots);
        let files = LocalFiles::new(scope, roots, Arc::new(ReadOnlyRecord), Cancel::new());
        let mut recovered = Vec::new();
        let mut view = FileView::opening(&files, self);
        for (receipt, temps) in recover(self.ledger()?, &mut view)? {
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

/// Whether a temporary file holds bytes of another program: the call's new file was already exchanged with it, and it is
/// not the file that the call had read.
fn holds_foreign_bytes(files: &LocalFiles, receipt: &Receipt, temp: &Path) -> bool {
    receipt.changes.iter().filter(|change| change.path.parent() == temp.parent()).any(|change| {
        let is = |path: &Path, node: &Node| files.observe(path).is_ok_and(|now| now.same_as(node));
        is(&change.path, &change.after) && !is(temp, &change.before)
    })
}
