//! Undo and redo: a preview with the hash of its plan, and an undo that performs exactly that plan.

use std::path::PathBuf;

use haft_runtime::{CallOptions, Runtime, UndoPreview, UndoTarget};
use haft_tool::{Reversible, ToolError, hex, path_to_text};
use sha2::{Digest as _, Sha256};

use super::describe::{of_change, of_receipt, part_of, shown_path};
use super::error::ApiError;
use super::types::{CallWithReason, PathConflict, UndoDone, UndoPlanInfo, UndoRequest, UndoWhat};
use super::{Api, ApiRequest, files};

/// Changes of a plan that are sent.
const MAX_CHANGES: usize = 20_000;

/// What an undo would do.
pub(super) fn preview(api: &Api, request: &ApiRequest<'_>) -> Result<UndoPlanInfo, ApiError> {
    let wanted: UndoRequest = request.json()?;
    let (workspace, target) = target(api, &wanted.what)?;
    let runtime = api.backend.runtime(&workspace, None)?;
    Ok(PlannedUndo::new(runtime, &target, &wanted)?.plan())
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
        return Err(error.with_details(&planned.plan()));
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
        let absolute = |path: &String| files::absolute(path, runtime.workspace());
        let paths: Vec<PathBuf> = wanted.paths.iter().map(absolute).collect();
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

    fn plan(&self) -> UndoPlanInfo {
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
            merged: preview.merged.keys().map(|path| shown_path(path, workspace)).collect(),
            left_out: preview.left_out as u64,
        }
    }
}

/// What is undone, and where.
fn target(api: &Api, what: &UndoWhat) -> Result<(PathBuf, UndoTarget), ApiError> {
    let workspace_of = |id: i64| -> Result<PathBuf, ApiError> { Ok(api.ledger.receipt(id)?.workspace) };
    match what {
        UndoWhat { calls: Some(calls), session: None, after: None, redo: None } => {
            let Some(first) = calls.first() else {
                return Err(ApiError::bad_request("calls: name at least one call."));
            };
            Ok((workspace_of(*first)?, UndoTarget::Calls(calls.clone())))
        }
        UndoWhat { calls: None, session: Some(id), after: None, redo: None } => {
            let session = api.ledger.session_with_id(id)?;
            Ok((session.workspace, UndoTarget::Session(session.id)))
        }
        UndoWhat { calls: None, session: None, after: Some(id), redo: None } => {
            Ok((workspace_of(*id)?, UndoTarget::AfterCall(*id)))
        }
        UndoWhat { calls: None, session: None, after: None, redo: Some(workspace) } => {
            let path = haft_tool::path_from_text(workspace);
            if !path.is_absolute() {
                let why = format!("redo: {} is not an absolute path.", path_to_text(&path));
                return Err(ApiError::bad_request(why));
            }
            Ok((path, UndoTarget::LastUndo))
        }
        _ => Err(ApiError::bad_request("Give exactly one of calls, session, after and redo.")),
    }
}
