//! `edit_file`: replaces the only occurrence of a text.

use std::path::PathBuf;

use haft_tool::ErrorKind;
use haft_tool::prelude::*;

use super::write_file::Confirmation;
use crate::ops::edit::{Occurrence, Replacement, edit_file};

/// Replace text in a file. `old_text` must occur exactly once.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Path in the workspace.
    #[schemars(extend("format" = "path"))]
    path: String,
    /// The exact text to replace.
    old_text: String,
    /// The new text.
    new_text: String,
}

pub(super) struct ClawftEditFile;

impl Tool for ClawftEditFile {
    const NAME: &'static str = "edit_file";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Write, EffectKind::Read];
    const HAS_PREVIEW: bool = true;
    const BOUND: Bound = super::BOUND;
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<Confirmation>);
    type Input = Input;
    type Plan = (PathBuf, Input);

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<(PathBuf, Input)>, ToolError> {
        if input.old_text.is_empty() {
            let message = "old_text: it is empty; to make a new file use write_file";
            return Err(ToolError::invalid_arguments(message));
        }
        let path = at.absolute(&input.path)?;
        let effects = [Effect::Write { path: path.clone() }, Effect::Read { path: path.clone() }];
        Ok(Planned::new(effects, (path, input)))
    }

    fn perform(&self, (path, input): (PathBuf, Input), world: &dyn World) -> Result<Output, ToolError> {
        let (old, new) = (&input.old_text, &input.new_text);
        let replacement = Replacement { old, new, occurrence: Occurrence::Unique, field: "old_text" };
        edit_file(world, &path, "write_file", &replacement).map_err(|error| match error.kind {
            // clawft reports a text that does not occur once as invalid arguments.
            ErrorKind::TargetNotFound => ToolError::invalid_arguments(error.message),
            _ => error,
        })?;
        Ok(Output::json(json!(Confirmation { message: format!("Successfully edited {}", input.path) })))
    }
}
