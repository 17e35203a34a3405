//! The two tools that undo: `Undo`, which a person asks for after a preview, and `haft_undo`, which a model calls.
//!
//! Both declare each path that they restore as a write, so that policy decides on it. To know the paths, `haft_undo` reads the
//! ledger and the current states of the recorded paths while it is planned; this is the only plan that reads anything, and it
//! changes nothing.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_tool::prelude::*;
use haft_tool::{ErrorKind, Hash, Progress, RestorePlan, RestoreStep};

use crate::history::History;
use crate::undo::{UndoPreview, UndoTarget};
use crate::undo_paths::UndoPaths;

/// An undo of more paths declares a write to the whole workspace.
const MAX_PATH_EFFECTS: usize = 100;

const EFFECTS: &[EffectKind] = &[EffectKind::Undo, EffectKind::Write, EffectKind::Configure];

/// Undo calls.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UndoInput {
    /// The numbers of the calls.
    #[expect(dead_code, reason = "kept in the receipt; the preview has them")]
    calls: Vec<i64>,
    /// Whether to overwrite what has changed since.
    #[serde(default)]
    #[expect(dead_code, reason = "kept in the receipt; checked before the call is made")]
    force: bool,
}

/// The undo that a preview showed.
pub(crate) struct UndoCalls {
    history: Arc<History>,
    preview: UndoPreview,
}

impl UndoCalls {
    pub(crate) fn new(history: Arc<History>, preview: UndoPreview) -> Self {
        Self { history, preview }
    }
}

impl Tool for UndoCalls {
    const NAME: &'static str = "Undo";
    const EFFECTS: &'static [EffectKind] = EFFECTS;
    type Input = UndoInput;
    type Plan = RestorePlan;

    fn plan(&self, _input: UndoInput, _at: &Planning) -> Result<Planned<RestorePlan>, ToolError> {
        planned(&self.history, self.preview.clone())
    }

    fn perform(&self, plan: RestorePlan, world: &dyn World) -> Result<Output, ToolError> {
        restore(&self.history, &plan, &self.preview.merged, world)
    }
}

/// Undo what a recorded call of this session changed: files get back their previous bytes. Refused where something else has changed since. An undo is a recorded call too.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HaftUndoInput {
    /// The call's number from `haft_log`; the last one of this session that changed something if left out.
    call: Option<i64>,
}

/// Undo for models.
pub(crate) struct HaftUndo {
    pub(crate) history: Arc<History>,
}

impl Tool for HaftUndo {
    const NAME: &'static str = "haft_undo";
    const EFFECTS: &'static [EffectKind] = EFFECTS;
    type Input = HaftUndoInput;
    type Plan = RestorePlan;

    fn plan(&self, input: HaftUndoInput, at: &Planning) -> Result<Planned<RestorePlan>, ToolError> {
        let target = match input.call {
            None => UndoTarget::LastOfSession(self.history.session()?.to_owned()),
            Some(id) if self.history.ledger()?.receipt(id)?.workspace == at.workspace => UndoTarget::Call(id),
            Some(id) => {
                let why = format!("call {id} belongs to another workspace; undo it there");
                return Err(ToolError::new(ErrorKind::TargetNotFound, why));
            }
        };
        let preview = self.history.preview(&target, &UndoPaths::default())?;
        if let ([], Some((id, why))) = (preview.restore.steps.as_slice(), preview.blocked.first()) {
            return Err(ToolError::failed(format!("call {id} cannot be undone: {why}")));
        }
        preview.check(false)?;
        planned(&self.history, preview)
    }

    fn perform(&self, plan: RestorePlan, world: &dyn World) -> Result<Output, ToolError> {
        restore(&self.history, &plan, &BTreeMap::new(), world)
    }
}

/// The steps of an undo, with the calls that it undoes and the paths that it writes as effects.
fn planned(history: &History, preview: UndoPreview) -> Result<Planned<RestorePlan>, ToolError> {
    let session = history.session()?;
    let plan = preview.restore;
    let undone = preview.receipts.iter().map(|receipt| Effect::Undo {
        call: receipt.id,
        own_session: receipt.session == session,
        partial: preview.left_out > 0,
    });
    let paths: BTreeSet<&Path> = plan.steps.iter().map(RestoreStep::path).collect();
    let many = paths.len() > MAX_PATH_EFFECTS;
    let is_ordinary = |path: &Path| path.starts_with(history.workspace()) && !history.is_guarded(path);
    let (ordinary, single): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| many && is_ordinary(path));
    let workspace = (!ordinary.is_empty()).then(|| history.workspace());
    let written = workspace.into_iter().chain(single).map(|path| match history.config() {
        Some(config) if config == path => Effect::Configure { setting: "*".to_owned(), value: None },
        _ => Effect::Write { path: path.to_owned() },
    });
    let effects: Vec<Effect> = undone.chain(written).collect();
    Ok(Planned::new(effects, plan))
}

fn restore(
    history: &History,
    plan: &RestorePlan,
    merged: &BTreeMap<PathBuf, String>,
    world: &dyn World,
) -> Result<Output, ToolError> {
    let ledger = history.ledger()?;
    let merged: HashMap<Hash, &String> =
        merged.values().map(|text| (haft_files::hash(text.as_bytes()), text)).collect();
    let files = plan.changes.iter().filter(|change| change.after.as_file().is_some()).count();
    let opened = Cell::new(0_usize);
    world.files().restore(plan, &|file| {
        opened.set(opened.get() + 1);
        #[expect(clippy::cast_precision_loss, reason = "a part of a progress bar")]
        let fraction = Some((opened.get() as f32 / files.max(1) as f32).min(1.0));
        world.progress(Progress { fraction, ..Progress::default() });
        match merged.get(&file.hash) {
            Some(text) => Ok(Box::new(Cursor::new((*text).clone().into_bytes()))),
            None => ledger.open_blob(&file.hash),
        }
    })?;
    let count = plan.changes.len();
    let text = if count == 1 { "Restored 1 path".to_owned() } else { format!("Restored {count} paths") };
    Ok(Output::text(text).with_structured(json!({"paths": count})))
}
