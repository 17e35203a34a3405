//! Taking calls back: a call like any other, with a receipt of its own, so that it can be taken back too.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use haft_files::LocalFiles;
use haft_ledger::undo::{UndoConflict, UndoPlan, UndoStep, plan};
use haft_ledger::{Ledger, ReceiptQuery, WorkspaceView};
use haft_tool::{
    Call, Cancel, Effect, EffectKind, ErrorKind, FileId, Files, JsonSchema, Node, Output, Planned, Planning,
    ReadOnlyRecord, Reads, Receipt, Restore, Scope, Tool, ToolError, World, json, lock, now_ms,
};
use serde::Deserialize;

use crate::Runtime;
use crate::call::{CallOptions, CallResult, StartedCall};

/// Which calls to take back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The last one in this workspace that changed anything and has not been taken back.
    Last,
    /// One call.
    Call(i64),
    /// All calls of a session that have not been taken back.
    Session(String),
    /// The last undo in this workspace: redo.
    LastUndo,
}

/// What taking back would change.
#[derive(Debug, Clone)]
pub struct UndoPreview {
    /// The calls that would be taken back, newest first.
    pub receipts: Vec<Receipt>,
    /// What would be put back, in this order; what is in conflict too.
    pub steps: Vec<UndoStep>,
    /// What is no longer as the calls left it.
    pub conflicts: Vec<UndoConflict>,
    /// Calls whose changes are not known, and why.
    pub blocked: Vec<(i64, String)>,
}

impl UndoPreview {
    /// The bytes that `node` stood for, if it is a file whose bytes the ledger has.
    pub fn bytes(ledger: &Ledger, node: &Node) -> Result<Vec<u8>, ToolError> {
        node.as_file().map_or_else(|| Ok(Vec::new()), |file| ledger.blob(&file.hash))
    }
}

impl Runtime {
    /// What taking back `target` would change. Nothing is touched.
    pub fn undo_preview(&self, target: &Target) -> Result<UndoPreview, ToolError> {
        let ledger = self.ledger()?;
        let receipts = chosen(&ledger, target, self.workspace())?;
        let files = self.observer();
        let UndoPlan { mut steps, conflicts, mut blocked } =
            plan(&receipts, &mut |path| files.observe_recorded(path))?;
        let last = receipts.first().map_or(0, |receipt| receipt.id);
        let mut lost = BTreeSet::new();
        for step in &steps {
            if let UndoStep::Restore { path, to: Node::File(file), .. } = step
                && !ledger.has(&file.hash)?
            {
                lost.insert(path.clone());
            }
        }
        if !lost.is_empty() {
            steps.retain(|step| !lost.contains(step.path()));
            let why = |path: &PathBuf| format!("the old bytes of {} were not kept", path.display());
            blocked.extend(lost.iter().map(|path| (last, why(path))));
        }
        Ok(UndoPreview { receipts, steps, conflicts, blocked })
    }

    /// Takes back what the preview showed; with `force` also where something else has changed since.
    pub async fn undo(
        &self,
        preview: &UndoPreview,
        force: bool,
        options: CallOptions,
    ) -> Result<CallResult, ToolError> {
        Ok(self.undoing(preview, force, options)?.wait().await)
    }

    /// Like [`Runtime::undo`], but blocks the thread.
    pub fn undo_blocking(
        &self,
        preview: &UndoPreview,
        force: bool,
        options: CallOptions,
    ) -> Result<CallResult, ToolError> {
        Ok(self.undoing(preview, force, options)?.wait_blocking())
    }

    fn undoing(
        &self,
        preview: &UndoPreview,
        force: bool,
        options: CallOptions,
    ) -> Result<StartedCall, ToolError> {
        if let Some(conflict) = preview.conflicts.iter().find(|conflict| conflict.blocks_move) {
            let (path, found) = (conflict.path.display(), conflict.found.noun());
            return Err(ToolError::new(
                ErrorKind::Conflict,
                format!(
                    "{path} is in the way of moving a directory back ({found} is there), so nothing was taken back"
                ),
            ));
        }
        if !preview.conflicts.is_empty() && !force {
            let paths: Vec<String> =
                preview.conflicts.iter().map(|conflict| conflict.path.display().to_string()).collect();
            return Err(ToolError::new(
                ErrorKind::Conflict,
                format!(
                    "changed since, so nothing was taken back: {}; see the preview, or force it",
                    paths.join(", ")
                ),
            ));
        }
        let ids: Vec<i64> = preview.receipts.iter().map(|receipt| receipt.id).collect();
        let arguments = json!({"calls": ids, "force": force});
        let number = now_ms();
        let config = self.inner.policy.scope.config.clone();
        let tool = Undo { ledger: self.ledger()?, steps: Mutex::new(preview.steps.clone()), config };
        let call = Call::new(format!("undo_{number}"), "Undo", arguments);
        Ok(self.start(call, CallOptions { tool: Some(Arc::new(tool)), ..options }, true))
    }

    /// Marks calls whose process died as interrupted and removes the temporary files they left.
    pub fn recover(&self) -> Result<Vec<Receipt>, ToolError> {
        let files = self.observer();
        let mut recovered = Vec::new();
        for (receipt, temps) in self.ledger()?.recover(&mut LocalView(&files))? {
            let ours: Vec<_> =
                temps.into_iter().filter(|temp| !holds_foreign_bytes(&files, &receipt, temp)).collect();
            haft_files::remove_leftovers(&ours);
            recovered.push(receipt);
        }
        Ok(recovered)
    }

    fn observer(&self) -> LocalFiles {
        // What a call was once granted outside the roots has to be looked at to be put back.
        let mut scope = Scope { reads: Reads::Everywhere, ..(*self.inner.policy.scope).clone() };
        if let Some(config) = &scope.config {
            scope.protected.retain(|protected| protected != config);
        }
        let roots = Arc::clone(&self.inner.ground.roots);
        LocalFiles::new(Arc::new(scope), roots, Arc::new(ReadOnlyRecord), Cancel::new())
    }
}

/// The current state of files, for recovery.
struct LocalView<'a>(&'a LocalFiles);

impl WorkspaceView for LocalView<'_> {
    fn observe(&mut self, path: &Path) -> Result<Node, ToolError> {
        self.0.observe_recorded(path)
    }

    fn entry_names(&mut self, path: &Path) -> Result<Vec<OsString>, ToolError> {
        Ok(self.0.list(path)?.into_iter().map(|entry| entry.name).collect())
    }

    fn find_links(&mut self, files: HashSet<FileId>, except: &HashSet<&Path>) -> HashMap<FileId, PathBuf> {
        self.0.find(files, except)
    }
}

/// Whether a temporary file holds what somebody else wrote: the call's new file was already exchanged with it, and it
/// is not the file that the call had read.
fn holds_foreign_bytes(files: &LocalFiles, receipt: &Receipt, temp: &Path) -> bool {
    receipt.changes.iter().filter(|change| change.path.parent() == temp.parent()).any(|change| {
        let is = |path: &Path, node: &Node| files.observe(path).is_ok_and(|now| now.same_as(node));
        is(&change.path, &change.after) && !is(temp, &change.before)
    })
}

fn chosen(ledger: &Ledger, target: &Target, workspace: &Path) -> Result<Vec<Receipt>, ToolError> {
    let nothing = |what: &str| ToolError::new(ErrorKind::TargetNotFound, what.to_owned());
    match target {
        Target::Last => {
            let last = ledger.next_to_undo(workspace)?;
            let here = workspace.display();
            Ok(vec![last.ok_or_else(|| nothing(&format!("there is nothing to undo in {here}")))?])
        }
        Target::LastUndo => {
            let last = ledger.next_to_redo(workspace)?;
            let here = workspace.display();
            Ok(vec![last.ok_or_else(|| nothing(&format!("there is nothing to redo in {here}")))?])
        }
        Target::Call(id) => {
            let receipt = ledger.receipt(*id)?;
            if let Some(by) = ledger.undone_by(*id)? {
                return Err(nothing(&format!(
                    "call {id} has been taken back already, by call {by}; undo {by} to redo it"
                )));
            }
            if receipt.changes.is_empty() && receipt.reversible == haft_tool::Reversible::Yes {
                return Err(nothing(&format!("call {id} ({}) changed nothing", receipt.tool)));
            }
            Ok(vec![receipt])
        }
        Target::Session(id) => {
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
                return Err(nothing(&format!("session {session} changed nothing that could be taken back")));
            }
            Ok(receipts)
        }
    }
}

/// Take calls back.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The numbers of the calls.
    calls: Vec<i64>,
    /// Whether to overwrite what has changed since.
    #[serde(default)]
    #[expect(dead_code, reason = "kept in the receipt; the steps were worked out in the preview")]
    force: bool,
}

/// An undo of more paths than this declares the whole workspace.
const MOST_EFFECTS: usize = 100;

/// The call that takes back others.
struct Undo {
    ledger: Ledger,
    steps: Mutex<Vec<UndoStep>>,
    /// The user's settings, which are not a file like others.
    config: Option<PathBuf>,
}

impl Tool for Undo {
    const NAME: &'static str = "Undo";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Undo, EffectKind::Write, EffectKind::Configure];
    type Input = Input;
    type Plan = Vec<UndoStep>;

    fn plan(&self, input: Input, planning: &Planning) -> Result<Planned<Vec<UndoStep>>, ToolError> {
        let steps = std::mem::take(&mut *lock(&self.steps));
        let paths: BTreeSet<&Path> = steps
            .iter()
            .flat_map(|step| match step {
                UndoStep::Restore { path, .. } => [Some(path.as_path()), None],
                UndoStep::MoveBack { from, to } => [Some(from.as_path()), Some(to.as_path())],
            })
            .flatten()
            .collect();
        let many = paths.len() > MOST_EFFECTS;
        let (inside, outside): (BTreeSet<_>, BTreeSet<_>) =
            paths.into_iter().partition(|path| many && path.starts_with(&planning.workspace));
        let whole = (!inside.is_empty()).then_some(planning.workspace.as_path());
        let effect = |path: &Path| match &self.config {
            Some(config) if config == path => Effect::Configure { setting: "*".to_owned() },
            _ => Effect::Write { path: path.to_owned() },
        };
        let undoes = input.calls.into_iter().map(|call| Effect::Undo { call, own_session: true });
        let effects: Vec<Effect> = undoes.chain(whole.into_iter().chain(outside).map(effect)).collect();
        Ok(Planned::new(effects, steps))
    }

    fn perform(&self, steps: Vec<UndoStep>, world: &dyn World) -> Result<Output, ToolError> {
        let files = world.files();
        for group in
            steps.chunk_by(|a, b| matches!((a, b), (UndoStep::Restore { .. }, UndoStep::Restore { .. })))
        {
            if let [UndoStep::MoveBack { from, to }] = group {
                files.restore_move(from, to)?;
                continue;
            }
            let restores: Vec<_> = group
                .iter()
                .filter_map(|step| match step {
                    UndoStep::Restore { path, expect, to } => Some(Restore { path, expect, to }),
                    UndoStep::MoveBack { .. } => None,
                })
                .collect();
            files.restore(&restores, &|file| self.ledger.open_blob(&file.hash))?;
        }
        let count = steps.len();
        Ok(Output::text(format!("Put back {count} path(s)")).with_structured(json!({"paths": count})))
    }
}

#[cfg(test)]
mod tests;
