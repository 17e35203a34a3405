//! `write_file`: a whole file.

use std::path::PathBuf;

use haft_tool::{
    Bound, Effect, EffectKind, JsonSchema, Output, Planned, Planning, Tool, ToolError, Value, World, json,
    result_schema_of,
};
use serde::{Deserialize, Serialize};

use crate::ops::write::write;

/// Write a file, replacing what it held. Missing directories are made.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Path in the workspace.
    path: String,
    /// All that it shall hold.
    content: String,
}

#[derive(Serialize, JsonSchema)]
struct Given {
    /// What was done.
    message: String,
}

pub(super) struct WriteFile;

/// A file and its new contents.
pub(super) struct WritePlan {
    path: PathBuf,
    input: Input,
}

impl Tool for WriteFile {
    const NAME: &'static str = "write_file";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Write];
    const BOUND: Bound = super::BOUND;
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<Given>);
    type Input = Input;
    type Plan = WritePlan;

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<WritePlan>, ToolError> {
        let path = at.absolute(&input.path)?;
        Ok(Planned::new([Effect::Write { path: path.clone() }], WritePlan { path, input }))
    }

    fn perform(&self, plan: WritePlan, world: &dyn World) -> Result<Output, ToolError> {
        let wrote = write(world, &plan.path, &plan.input.content)?;
        let message = format!("Successfully wrote {} bytes to {}", wrote.bytes, plan.input.path);
        Ok(Output::json(json!(Given { message })))
    }
}
