//! Undo and redo: a preview with the hash of its plan, and an undo that performs exactly that plan.

use std::path::PathBuf;

use haft_ledger::Ledger;
use haft_runtime::{
    CallOptions, Runtime, UndoPaths, UndoPreview, UndoTarget, recorded_content, text_changes,
};
use haft_tool::{Reversible, ToolError, hex, path_to_text};
use sha2::{Digest as _, Sha256};

use super::describe::{of_change, of_receipt, part_of, shown_path};
use super::error::ApiError;
use super::types::{CallWithReason, MergedFile, PathConflict, UndoDone, UndoPlanInfo, UndoRequest, UndoWhat};
use super::{Api, ApiRequest, files};

/// Changes of a plan that are sent.
const MAX_CHANGES: usize = 20_000;
/// Calls that one undo may name.
const MAX_CALLS: usize = 10_000;
/// Lines of all merged files together that are sent.
const MAX_MERGED_LINES: usize = 20_000;

/// What an undo would do.
pub(super) fn preview(api: &Api, request: &ApiRequest<'_>) -> Result<UndoPlanInfo, ApiError> {
    let wanted: UndoRequest = request.json()?;
    let (workspace, target) = target(api, &wanted.what)?;
    let runtime = api.backend.runtime(&workspace, None)?;
    Ok(PlannedUndo::new(runtime, &target, &wanted)?.plan(&api.ledger))
}

/// Performs an undo, if it still does what the preview showed.
pub(super) fn perform(api: &Api, request: &ApiRequest<'_>) -> Result<UndoDone, ApiError> {
    let wanted: UndoRequest = request.json()?;
    let Some(shown) = &wanted.plan else {
        return Err(ApiError::bad_request("Ask for the preview first, and send its plan."));
    };
    let (workspace, target) = target(api, &wanted.what)?;
    let runtime = api.backend.runtime(&workspace, None)?;
    // Not in the preview, which the role View may request: recovery may write receipts and files.
    runtime.recover()?;
    // The plan is made again and compared, because what happened since the preview must not be undone unseen.
    let planned = PlannedUndo::new(runtime, &target, &wanted)?;
    if planned.identity() != *shown {
        let error = ApiError::conflict("Something has changed since the preview. Look at the new one.");
        return Err(error.with_details(&planned.plan(&api.ledger)));
    }
    let result = planned.runtime.undo_blocking(&planned.preview, wanted.force, CallOptions::default())?;
    match result.output.error_kind {
        None => Ok(UndoDone { call: result.receipt.id, message: result.output.as_text() }),
        Some(kind) => Err(ToolError::new(kind, result.output.as_text()).into()),
    }
}

/// An undo that can be shown and performed.
struct PlannedUndo {
    runtime: Runtime,
    preview: UndoPreview,
}

impl PlannedUndo {
    fn new(runtime: Runtime, target: &UndoTarget, wanted: &UndoRequest) -> Result<Self, ApiError> {
        let absolute = |paths: &[String]| -> Vec<PathBuf> {
            paths.iter().map(|path| files::absolute(path, runtime.workspace())).collect()
        };
        let paths = UndoPaths { only: absolute(&wanted.paths), except: absolute(&wanted.except) };
        let mut preview = runtime.undo_preview_in(target, &paths)?;
        if wanted.merge {
            preview = runtime.merge_conflicts(preview)?;
        }
        Ok(Self { runtime, preview })
    }

    /// A hash of everything that the undo would do.
    fn identity(&self) -> String {
        let UndoPreview { receipts, restore, conflicts, blocked, merged, left_out, .. } = &self.preview;
        let calls: Vec<i64> = receipts.iter().map(|receipt| receipt.id).collect();
        let all = format!("{calls:?}{restore:?}{conflicts:?}{blocked:?}{merged:?}{left_out}");
        let digest: [u8; 32] = Sha256::digest(all.as_bytes()).into();
        hex(&digest)
    }

    fn plan(&self, ledger: &Ledger) -> UndoPlanInfo {
        let preview = &self.preview;
        let workspace = self.runtime.workspace();
        let partly = preview.receipts.iter().filter_map(|receipt| match &receipt.reversible {
            Reversible::Partly { why } => Some(CallWithReason { call: receipt.id, why: why.clone() }),
            _ => None,
        });
        UndoPlanInfo {
            plan: self.identity(),
            calls: preview
                .receipts
                .iter()
                .map(|receipt| of_receipt(receipt, receipt.changes.len() as u64, None))
                .collect(),
            changes: part_of(&preview.restore.changes, 0, MAX_CHANGES, |change| of_change(change, workspace)),
            conflicts: preview
                .conflicts
                .iter()
                .map(|conflict| PathConflict {
                    path: shown_path(&conflict.path, workspace),
                    found: conflict.found.noun().to_owned(),
                    changed_by: preview.changed_by.get(&conflict.path).map(|receipt| receipt.id),
                    blocks: conflict.blocks_move,
                })
                .collect(),
            blocked: preview
                .blocked
                .iter()
                .map(|(call, why)| CallWithReason { call: *call, why: why.clone() })
                .collect(),
            partly: partly.collect(),
            merged: self.merged_files(ledger),
            left_out: preview.left_out as u64,
        }
    }

    /// The files that are merged, with their differences: the ledger does not have the merged texts yet.
    fn merged_files(&self, ledger: &Ledger) -> Vec<MergedFile> {
        let mut lines_left = MAX_MERGED_LINES;
        let merged = self.preview.merged.iter().map(|(path, text)| {
            let change = self.preview.restore.changes.iter().find(|change| change.path == *path);
            let now = change.and_then(|change| recorded_content(ledger, path, &change.before));
            let now = now.unwrap_or_default();
            let changes =
                text_changes(&String::from_utf8_lossy(&now), text, lines_left.min(files::MAX_DIFF_LINES));
            lines_left -= changes.hunks.iter().map(|hunk| hunk.lines.len()).sum::<usize>().min(lines_left);
            MergedFile { path: shown_path(path, self.runtime.workspace()), changes }
        });
        merged.collect()
    }
}

/// What is undone, and where.
fn target(api: &Api, what: &UndoWhat) -> Result<(PathBuf, UndoTarget), ApiError> {
    let workspace_of = |id: i64| -> Result<PathBuf, ApiError> { Ok(api.ledger.receipt(id)?.workspace) };
    match what {
        UndoWhat { calls: Some(calls), session: None, from: None, redo: None } => {
            let Some(first) = calls.first().filter(|_| calls.len() <= MAX_CALLS) else {
                let why = format!("calls: name 1 to {MAX_CALLS} calls, or use `from`.");
                return Err(ApiError::bad_request(why));
            };
            Ok((workspace_of(*first)?, UndoTarget::Calls(calls.clone())))
        }
        UndoWhat { calls: None, session: Some(id), from: None, redo: None } => {
            let session = api.ledger.session_with_id(id)?;
            Ok((session.workspace, UndoTarget::Session(session.id)))
        }
        UndoWhat { calls: None, session, from: Some(id), redo: None } => {
            let session = session.as_ref().map(|id| api.ledger.session_with_id(id)).transpose()?;
            let session = session.map(|session| session.id);
            Ok((workspace_of(*id)?, UndoTarget::AfterCall { id: id.saturating_sub(1), session }))
        }
        UndoWhat { calls: None, session: None, from: None, redo: Some(workspace) } => {
            let path = haft_tool::path_from_text(workspace);
            if !path.is_absolute() {
                let why = format!("redo: {} is not an absolute path.", path_to_text(&path));
                return Err(ApiError::bad_request(why));
            }
            Ok((path, UndoTarget::LastUndo))
        }
        _ => Err(ApiError::bad_request("Give calls, session, from or redo, or from and session.")),
    }
}
