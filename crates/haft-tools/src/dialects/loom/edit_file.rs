//! `edit_file`: several replacements, all or none.

use std::path::{Path, PathBuf};

use haft_tool::{
    Bound, Effect, EffectKind, ErrorKind, JsonSchema, Output, Planned, Planning, Tool, ToolError, Value,
    World, json, path_to_text, result_schema_of,
};
use serde::{Deserialize, Serialize};

use crate::ops::edit::{Wanted, Which, append, replace};

/// Edit a file, all edits or none. Missing directories are made.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Path, absolute or in the workspace.
    path: String,
    /// What to change, in this order.
    edits: Vec<One>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct One {
    /// The exact text to find; empty to append, or to make a new file.
    old_str: String,
    /// What to put in its place; empty to delete.
    new_str: String,
    /// Every occurrence, not only the first.
    replace_all: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
struct Given {
    /// The file.
    path: String,
    /// How many places were changed.
    edits_applied: usize,
    /// How long the file was.
    original_bytes: usize,
    /// How long it is now.
    new_bytes: usize,
}

pub(super) struct EditFile;

/// The file and its edits.
pub(super) struct EditPlan {
    path: PathBuf,
    edits: Vec<One>,
}

impl Tool for EditFile {
    const NAME: &'static str = "edit_file";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Write];
    const BOUND: Bound = super::BOUND;
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<Given>);
    type Input = Input;
    type Plan = EditPlan;

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<EditPlan>, ToolError> {
        let path = at.absolute(&input.path)?;
        Ok(Planned::new([Effect::Write { path: path.clone() }], EditPlan { path, edits: input.edits }))
    }

    fn perform(&self, plan: EditPlan, world: &dyn World) -> Result<Output, ToolError> {
        let EditPlan { path, edits } = plan;
        let (mut applied, mut before, mut after) = (0, 0, 0);
        let written = world.files().update(&path, &mut |current| {
            if current.is_none() && edits.first().is_none_or(|edit| !edit.old_str.is_empty()) {
                let message = format!(
                    "{} does not exist, so there is nothing to replace; an empty old_str makes it",
                    path.display()
                );
                return Err(ToolError::new(ErrorKind::TargetNotFound, message));
            }
            let mut bytes = current.unwrap_or_default().to_vec();
            before = bytes.len();
            applied = 0;
            for (at, edit) in edits.iter().enumerate() {
                let made = made(&bytes, &path, edit).map_err(|error| located(error, at, edits.len()))?;
                applied += made.1;
                bytes = made.0;
            }
            after = bytes.len();
            Ok(bytes)
        })?;
        Ok(Output::json(json!(Given {
            path: path_to_text(&written.path).into_owned(),
            edits_applied: applied,
            original_bytes: before,
            new_bytes: after,
        })))
    }
}

/// What one edit makes of the bytes, and how many places it changed.
fn made(bytes: &[u8], path: &Path, edit: &One) -> Result<(Vec<u8>, usize), ToolError> {
    let (old, new) = (edit.old_str.as_str(), edit.new_str.as_str());
    if old.is_empty() {
        return Ok((append(bytes, path, new)?, 1));
    }
    let which = if edit.replace_all == Some(true) { Which::All } else { Which::First };
    let edited = replace(bytes, path, &Wanted { old, new, which, field: "old_str" })?;
    Ok((edited.bytes, edited.spans.len()))
}

/// The same error with the edit that it speaks of, where there are several.
fn located(mut error: ToolError, at: usize, of: usize) -> ToolError {
    if of > 1 {
        error.message = format!("edits[{at}]: {} None of the edits was made.", error.message);
    }
    error
}
