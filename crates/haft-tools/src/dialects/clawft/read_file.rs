//! `read_file`: a file's text.

use haft_tool::{
    Bound, Effect, JsonSchema, Output, Planning, SideEffect, Tool, ToolError, Value, World, cut_string, json,
    result_schema_of,
};
use serde::{Deserialize, Serialize};

use crate::ops::contents::contents;

/// Read a text file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Path in the workspace.
    path: String,
}

#[derive(Serialize, JsonSchema)]
struct Given {
    /// The file's text.
    content: String,
}

pub(super) struct ReadFile;

impl Tool for ReadFile {
    type Input = Input;

    fn name(&self) -> &'static str {
        "read_file"
    }

    fn gives(&self) -> Option<fn() -> Value> {
        Some(result_schema_of::<Given>)
    }

    fn side_effect(&self) -> SideEffect {
        SideEffect::ReadOnly
    }

    fn plan(&self, input: &Input, planning: &Planning) -> Result<Vec<Effect>, ToolError> {
        Ok(vec![Effect::Read { path: planning.absolute(&input.path)? }])
    }

    async fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let path = world.planning().absolute(&input.path)?;
        // More than fits need not be held, only its length.
        let held = contents(world, &path, super::MOST_BYTES as u64 * 2)?;
        let total = held.bytes.len() as u64 + held.missing;
        let mut text = held.only_text(&path)?;
        if held.missing > 0 {
            text = cut_string(text, total);
        }
        Ok(Output::json(json!(Given { content: text })))
    }

    fn bound(&self) -> Bound {
        super::limit()
    }
}
