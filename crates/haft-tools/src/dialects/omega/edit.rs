//! `edit`: the first occurrence of one text for another.

use std::path::PathBuf;

use haft_tool::{
    Effect, EffectKind, ErrorKind, JsonSchema, Output, Planned, Planning, Tool, ToolError, World,
};
use serde::Deserialize;

use crate::ops::edit::{Wanted, Which, replace};

/// Replace the first occurrence of a text in a file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Its path.
    file_path: String,
    /// The exact text to replace.
    old_string: String,
    /// The new text.
    new_string: String,
}

pub(super) struct Edit;

/// A checked input and its resolved path.
pub(super) struct EditPlan {
    path: PathBuf,
    input: Input,
}

impl Tool for Edit {
    const NAME: &'static str = "edit";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Write];
    type Input = Input;
    type Plan = EditPlan;

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<EditPlan>, ToolError> {
        if input.old_string.is_empty() {
            return Err(ToolError::invalid_arguments(
                "old_string: it is empty; to make a new file use write",
            ));
        }
        let path = at.absolute(&input.file_path)?;
        Ok(Planned::new([Effect::Write { path: path.clone() }], EditPlan { path, input }))
    }

    fn perform(&self, plan: EditPlan, world: &dyn World) -> Result<Output, ToolError> {
        let EditPlan { path, input } = plan;
        let (old, new) = (&input.old_string, &input.new_string);
        let wanted = Wanted { old, new, which: Which::First, field: "old_string" };
        let (mut found, mut notes) = (0, Vec::new());
        let written = world.files().update(&path, &mut |current| {
            let Some(bytes) = current else {
                let message = format!("{} does not exist; to make a new file use write", path.display());
                return Err(ToolError::new(ErrorKind::FileNotFound, message));
            };
            let edited = replace(bytes, &path, &wanted)?;
            (found, notes) = (edited.found, edited.notes);
            Ok(edited.bytes)
        })?;
        let times =
            if found == 1 { "1 occurrence".to_owned() } else { format!("the first of {found} occurrences") };
        let notes: String = notes.iter().map(|note| format!("; {note}")).collect();
        Ok(Output::text(format!("Edited {}: replaced {times}{notes}", written.path.display())))
    }
}
