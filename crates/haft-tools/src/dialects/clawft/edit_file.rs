//! `edit_file`: the one occurrence of a text for another.

use std::path::PathBuf;

use haft_tool::{
    Bound, Effect, EffectKind, ErrorKind, JsonSchema, Output, Planned, Planning, Tool, ToolError, Value,
    World, json, result_schema_of,
};
use serde::{Deserialize, Serialize};

use crate::ops::edit::{Wanted, Which, replace};

/// Replace text in a file. `old_text` must occur exactly once.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Path in the workspace.
    path: String,
    /// The exact text to replace.
    old_text: String,
    /// The new text.
    new_text: String,
}

#[derive(Serialize, JsonSchema)]
struct Given {
    /// What was done.
    message: String,
}

pub(super) struct EditFile;

/// A checked input and its resolved path.
pub(super) struct EditPlan {
    path: PathBuf,
    input: Input,
}

impl Tool for EditFile {
    const NAME: &'static str = "edit_file";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Write];
    const BOUND: Bound = super::BOUND;
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<Given>);
    type Input = Input;
    type Plan = EditPlan;

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<EditPlan>, ToolError> {
        if input.old_text.is_empty() {
            return Err(ToolError::invalid_arguments(
                "old_text: it is empty; to make a new file use write_file",
            ));
        }
        let path = at.absolute(&input.path)?;
        Ok(Planned::new([Effect::Write { path: path.clone() }], EditPlan { path, input }))
    }

    fn perform(&self, plan: EditPlan, world: &dyn World) -> Result<Output, ToolError> {
        let EditPlan { path, input } = plan;
        let (old, new) = (input.old_text.as_str(), input.new_text.as_str());
        let wanted = Wanted { old, new, which: Which::Once, field: "old_text" };
        world.files().update(&path, &mut |current| {
            let Some(bytes) = current else {
                let message = format!("{} does not exist; to make it use write_file", path.display());
                return Err(ToolError::new(ErrorKind::FileNotFound, message));
            };
            replace(bytes, &path, &wanted).map(|edited| edited.bytes).map_err(as_arguments)
        })?;
        Ok(Output::json(json!(Given { message: format!("Successfully edited {}", input.path) })))
    }
}

/// A text that is not there once is a matter of the arguments here.
fn as_arguments(error: ToolError) -> ToolError {
    match error.kind {
        ErrorKind::TargetNotFound => ToolError { kind: ErrorKind::InvalidArguments, ..error },
        _ => error,
    }
}
