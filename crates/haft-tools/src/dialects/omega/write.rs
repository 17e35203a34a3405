//! `write`: a whole file.

use std::path::PathBuf;

use haft_tool::{Effect, EffectKind, JsonSchema, Output, Planned, Planning, Tool, ToolError, World};
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

/// The file and its new contents.
pub(super) struct WritePlan {
    path: PathBuf,
    content: String,
}

impl Tool for Write {
    const NAME: &'static str = "write";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Write];
    type Input = Input;
    type Plan = WritePlan;

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<WritePlan>, ToolError> {
        let path = at.absolute(&input.file_path)?;
        Ok(Planned::new([Effect::Write { path: path.clone() }], WritePlan { path, content: input.content }))
    }

    fn perform(&self, plan: WritePlan, world: &dyn World) -> Result<Output, ToolError> {
        let wrote = write(world, &plan.path, &plan.content)?;
        let note = wrote.note.map(|note| format!("; {note}")).unwrap_or_default();
        Ok(Output::text(format!("Wrote {} bytes to {}{note}", wrote.bytes, wrote.written.path.display())))
    }
}
