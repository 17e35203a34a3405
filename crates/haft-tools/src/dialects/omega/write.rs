//! `write`: a whole file.

use haft_tool::{Effect, JsonSchema, Output, Planning, SideEffect, Tool, ToolError, World};
use serde::Deserialize;

use crate::ops::write::write;

/// Create or overwrite a file; missing directories are made.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Its path.
    file_path: String,
    /// All that it shall hold.
    content: String,
}

pub(super) struct Write;

impl Tool for Write {
    type Input = Input;

    fn name(&self) -> &'static str {
        "write"
    }

    fn side_effect(&self) -> SideEffect {
        SideEffect::Mutating
    }

    fn plan(&self, input: &Input, planning: &Planning) -> Result<Vec<Effect>, ToolError> {
        Ok(vec![Effect::Write { path: planning.absolute(&input.file_path)? }])
    }

    async fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let path = world.planning().absolute(&input.file_path)?;
        let wrote = write(world, &path, &input.content)?;
        let note = wrote.note.map(|note| format!("; {note}")).unwrap_or_default();
        Ok(Output::text(format!("Wrote {} bytes to {}{note}", wrote.bytes, wrote.written.path.display())))
    }
}
