//! `edit`: replaces the first occurrence of a text.

use std::path::PathBuf;

use haft_tool::prelude::*;

use crate::ops::edit::{Occurrence, Replacement, edit_file};

/// Replace the first occurrence of a text in a file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Its path.
    #[schemars(extend("format" = "path"))]
    file_path: String,
    /// The exact text to replace.
    old_string: String,
    /// The new text.
    new_string: String,
}

pub(super) struct OmegaEdit;

impl Tool for OmegaEdit {
    const NAME: &'static str = "edit";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Write, EffectKind::Read];
    const HAS_PREVIEW: bool = true;
    type Input = Input;
    type Plan = (PathBuf, Input);

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<(PathBuf, Input)>, ToolError> {
        if input.old_string.is_empty() {
            let message = "old_string: it is empty; to make a new file use write";
            return Err(ToolError::invalid_arguments(message));
        }
        let path = at.absolute(&input.file_path)?;
        let effects = [Effect::Write { path: path.clone() }, Effect::Read { path: path.clone() }];
        Ok(Planned::new(effects, (path, input)))
    }

    fn perform(&self, (path, input): (PathBuf, Input), world: &dyn World) -> Result<Output, ToolError> {
        let (old, new) = (&input.old_string, &input.new_string);
        let replacement = Replacement { old, new, occurrence: Occurrence::First, field: "old_string" };
        let (written, edited) = edit_file(world, &path, "write", &replacement)?;
        let times = match edited.found {
            1 => "1 occurrence".to_owned(),
            found => format!("the first of {found} occurrences"),
        };
        let path = written.path.display();
        Ok(Output::text(format!("Edited {path}: replaced {times}{}", edited.notes())))
    }
}
