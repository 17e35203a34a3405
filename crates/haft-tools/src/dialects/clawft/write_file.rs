//! `write_file`: a whole file.

use haft_tool::{
    Bound, Effect, JsonSchema, Output, Planning, SideEffect, Tool, ToolError, Value, World, json,
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

impl Tool for WriteFile {
    type Input = Input;

    fn name(&self) -> &'static str {
        "write_file"
    }

    fn gives(&self) -> Option<fn() -> Value> {
        Some(result_schema_of::<Given>)
    }

    fn side_effect(&self) -> SideEffect {
        SideEffect::Mutating
    }

    fn plan(&self, input: &Input, planning: &Planning) -> Result<Vec<Effect>, ToolError> {
        Ok(vec![Effect::Write { path: planning.absolute(&input.path)? }])
    }

    async fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let path = world.planning().absolute(&input.path)?;
        let wrote = write(world, &path, &input.content)?;
        let message = format!("Successfully wrote {} bytes to {}", wrote.bytes, input.path);
        Ok(Output::json(json!(Given { message })))
    }

    fn bound(&self) -> Bound {
        super::limit()
    }
}
