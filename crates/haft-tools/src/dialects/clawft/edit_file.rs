//! `edit_file`: the one occurrence of a text for another.

use haft_tool::{
    Bound, Effect, ErrorKind, JsonSchema, Output, Planning, SideEffect, Tool, ToolError, Value, World, json,
    result_schema_of,
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

impl Tool for EditFile {
    type Input = Input;

    fn name(&self) -> &'static str {
        "edit_file"
    }

    fn gives(&self) -> Option<fn() -> Value> {
        Some(result_schema_of::<Given>)
    }

    fn side_effect(&self) -> SideEffect {
        SideEffect::Mutating
    }

    fn plan(&self, input: &Input, planning: &Planning) -> Result<Vec<Effect>, ToolError> {
        if input.old_text.is_empty() {
            return Err(ToolError::invalid_arguments(
                "old_text: it is empty; to make a new file use write_file",
            ));
        }
        Ok(vec![Effect::Write { path: planning.absolute(&input.path)? }])
    }

    async fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let path = world.planning().absolute(&input.path)?;
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

    fn bound(&self) -> Bound {
        super::limit()
    }
}

/// A text that is not there once is a matter of the arguments here.
fn as_arguments(error: ToolError) -> ToolError {
    match error.kind {
        ErrorKind::TargetNotFound => ToolError { kind: ErrorKind::InvalidArguments, ..error },
        _ => error,
    }
}
