//! The recorded calls and the current files, from which undo and recovery are worked out. Changes only the receipts of calls
//! whose process died.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use haft_files::{LocalFiles, Root};
use haft_ledger::undo::{UndoConflict, UndoPlan, plan};
use haft_ledger::{Ledger, LedgerHandle, ReceiptFilter, ReceiptQuery, WorkspaceView};
use haft_tool::{
    Cancel, Change, ErrorKind, Files, Node, ReadOnlyRecord, Reads, Receipt, ReceiptState, RestoreStep,
    Reversible, Scope, ToolError, lies_in, lock,
};

use crate::undo::{UndoPreview, UndoTarget};
use crate::undo_guard::unjudged_files;
use crate::workspace_view::FileView;

/// How many calls are read at once while looking for one.
const PAGE_CALLS: usize = 50;
/// For further conflicts, the call behind them is not looked up.
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

    /// What undoing `target` would change in these paths, or anywhere if none are given.
    pub(crate) fn preview(&self, target: &UndoTarget, paths: &[PathBuf]) -> Result<UndoPreview, ToolError> {
        let ledger = self.ledger()?;
        let mut receipts = self.find(target, paths)?;
        let left_out = restrict(&mut receipts, paths)?;
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

    fn find(&self, target: &UndoTarget, paths: &[PathBuf]) -> Result<Vec<Receipt>, ToolError> {
        let nothing = |what: String| ToolError::new(ErrorKind::TargetNotFound, what);
        let (ledger, here) = (self.ledger()?, self.workspace().display());
        match target {
            UndoTarget::Last if !paths.is_empty() => {
                let last = self.undoable((0, 0), 1, paths)?;
                if last.is_empty() {
                    return Err(nothing(format!(
                        "no call in {here} that could be undone changed these paths"
                    )));
                }
                Ok(last)
            }
            UndoTarget::LastCalls(count) => {
                let last = self.undoable((0, 0), *count, paths)?;
                if last.is_empty() {
                    return Err(nothing(format!("there is nothing to undo in {here}")));
                }
                Ok(last)
            }
            UndoTarget::AfterCall(id) => {
                ledger.receipt(*id)?;
                let later = self.undoable((*id, 0), usize::MAX, paths)?;
                if later.is_empty() {
                    return Err(nothing(format!(
                        "no call after {id} in {here} changed anything that could be undone"
                    )));
                }
                Ok(later)
            }
            UndoTarget::Since(time) => {
                let since = self.undoable((0, *time), usize::MAX, paths)?;
                if since.is_empty() {
                    return Err(nothing(format!(
                        "no call in {here} since then changed anything that could be undone"
                    )));
                }
                Ok(since)
            }
            UndoTarget::Calls(ids) => {
                let mut receipts = Vec::new();
                for id in ids {
                    receipts.extend(self.find(&UndoTarget::Call(*id), paths)?);
                }
                receipts.sort_by_key(|receipt| std::cmp::Reverse(receipt.id));
                receipts.dedup_by_key(|receipt| receipt.id);
                Ok(receipts)
            }
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

    /// At most `limit` calls of the workspace after the call `after` and the time `since` that changed something in these
    /// paths, have ended, and are neither an undo nor undone; newest first.
    fn undoable(
        &self,
        (after, since): (i64, u64),
        limit: usize,
        paths: &[PathBuf],
    ) -> Result<Vec<Receipt>, ToolError> {
        let ledger = self.ledger()?;
        let mut query = ReceiptQuery {
            workspace: Some(self.workspace().to_owned()),
            only_changes: true,
            limit: PAGE_CALLS,
            ..ReceiptQuery::default()
        };
        let mut found = Vec::new();
        loop {
            let entries = ledger.summaries(&query)?;
            let Some(oldest) = entries.last() else { break };
            query.before = Some(oldest.receipt.id);
            for entry in entries {
                let receipt = &entry.receipt;
                let ended = receipt.started_at.saturating_add(receipt.duration_us / 1_000 + 1);
                // A call gets its number while it runs. So if one had ended before `since`, all calls with lower numbers
                // started before `since`.
                let is_running = receipt.state == ReceiptState::Running;
                if found.len() == limit || receipt.id <= after || (ended < since && !is_running) {
                    return Ok(found);
                }
                let is_open = entry.undone_by.is_none() && receipt.undoes.is_empty();
                if !is_open || is_running || receipt.started_at < since {
                    continue;
                }
                let receipt = ledger.complete(entry)?;
                if paths.is_empty() || receipt.changes.iter().any(|change| is_in_paths(change, paths)) {
                    found.push(receipt);
                }
            }
        }
        Ok(found)
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

/// Whether a change is undone if only these paths are.
fn is_in_paths(change: &Change, paths: &[PathBuf]) -> bool {
    let is_in = |path: &Path| paths.iter().any(|wanted| lies_in(path, wanted));
    is_in(&change.path) || change.moved_to.as_deref().is_some_and(is_in)
}

/// Removes the changes outside of these paths from the receipts, and returns how many there were.
fn restrict(receipts: &mut Vec<Receipt>, paths: &[PathBuf]) -> Result<usize, ToolError> {
    if paths.is_empty() {
        return Ok(0);
    }
    let mut left_out = 0;
    for receipt in &mut *receipts {
        let moves =
            receipt.changes.iter().filter_map(|change| Some((&change.path, change.moved_to.as_ref()?)));
        for (from, to) in moves {
            let is_inside = |wanted: &PathBuf| {
                [from, to].into_iter().any(|moved| wanted != moved && lies_in(wanted, moved))
            };
            if let Some(path) = paths.iter().find(|wanted| is_inside(wanted)) {
                return Err(ToolError::invalid_arguments(format!(
                    "{} was moved with its directory by call {}: {} to {}. Name that directory to undo the move.",
                    path.display(),
                    receipt.id,
                    from.display(),
                    to.display()
                )));
            }
        }
        let moved: Vec<PathBuf> = receipt
            .changes
            .iter()
            .filter(|change| change.moved_to.is_some() && is_in_paths(change, paths))
            .map(|change| change.path.clone())
            .collect();
        let before = receipt.changes.len();
        // Changes in a moved directory are listed under its former path.
        receipt.changes.retain(|change| {
            is_in_paths(change, paths) || moved.iter().any(|moved| lies_in(&change.path, moved))
        });
        left_out += before - receipt.changes.len();
    }
    receipts.retain(|receipt| !receipt.changes.is_empty());
    if receipts.is_empty() {
        let why = "the call changed nothing in these paths".to_owned();
        return Err(ToolError::new(ErrorKind::TargetNotFound, why));
    }
    Ok(left_out)
}

/// Whether a temporary file holds another program's bytes: it was already exchanged with the call's new file, and is not the
/// file that the call had read.
fn holds_foreign_bytes(files: &LocalFiles, receipt: &Receipt, temp: &Path) -> bool {
    receipt.changes.iter().filter(|change| change.path.parent() == temp.parent()).any(|change| {
        let is = |path: &Path, node: &Node| files.observe(path).is_ok_and(|now| now.same_as(node));
        is(&change.path, &change.after) && !is(temp, &change.before)
    })
}
