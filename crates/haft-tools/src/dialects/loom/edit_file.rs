//! `edit_file`: several replacements, all or none.

use std::path::PathBuf;

use haft_tool::path_to_text;
use haft_tool::prelude::*;

use crate::ops::edit::{Occurrence, Replacement, edit_batch};

/// Edit a file, all edits or none. Missing directories are made.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Path, absolute or in the workspace.
    #[schemars(extend("format" = "path"))]
    path: String,
    /// What to change, in this order.
    edits: Vec<LoomEdit>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LoomEdit {
    /// The exact text to find; empty to append, or to make a new file.
    old_str: String,
    /// What to put in its place; empty to delete.
    new_str: String,
    /// Every occurrence, not only the first.
    replace_all: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
struct LoomEditResult {
    /// The file.
    path: String,
    /// How many places were changed.
    edits_applied: usize,
    /// How long the file was.
    original_bytes: usize,
    /// How long it is now.
    new_bytes: usize,
}

impl LoomEdit {
    fn replacement(&self) -> Replacement<'_> {
        let occurrence = if self.replace_all == Some(true) { Occurrence::All } else { Occurrence::First };
        Replacement { old: &self.old_str, new: &self.new_str, occurrence, field: "old_str" }
    }
}

pub(super) struct LoomEditFile;

impl Tool for LoomEditFile {
    const NAME: &'static str = "edit_file";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Write, EffectKind::Read];
    const HAS_PREVIEW: bool = true;
    const BOUND: Bound = super::BOUND;
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<LoomEditResult>);
    type Input = Input;
    type Plan = (PathBuf, Vec<LoomEdit>);

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<(PathBuf, Vec<LoomEdit>)>, ToolError> {
        let path = at.absolute(&input.path)?;
        let effects = [Effect::Write { path: path.clone() }, Effect::Read { path: path.clone() }];
        Ok(Planned::new(effects, (path, input.edits)))
    }

    fn perform(
        &self,
        (path, edits): (PathBuf, Vec<LoomEdit>),
        world: &dyn World,
    ) -> Result<Output, ToolError> {
        let replacements: Vec<Replacement<'_>> = edits.iter().map(LoomEdit::replacement).collect();
        let (written, batch) = edit_batch(world, &path, &replacements)?;
        Ok(Output::json(json!(LoomEditResult {
            path: path_to_text(&written.path).into_owned(),
            edits_applied: batch.replaced,
            original_bytes: batch.old_bytes,
            new_bytes: batch.new_bytes,
        })))
    }
}
