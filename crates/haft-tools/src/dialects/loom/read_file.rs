//! `read_file`: the beginning of a file.

use haft_tool::{
    Bound, Effect, JsonSchema, Output, Planning, SideEffect, Tool, ToolError, World, json, path_to_text,
};
use serde::Deserialize;

use crate::ops::contents::contents;

const DEFAULT_BYTES: u64 = 1 << 20;
/// More is not read at once, whatever is asked for.
const MOST_BYTES: u64 = 8 << 20;

/// Read a text file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Path, absolute or in the workspace.
    path: String,
    /// Most bytes to read (default 1 MiB).
    max_bytes: Option<u64>,
}

pub(super) struct ReadFile;

impl Tool for ReadFile {
    type Input = Input;

    fn name(&self) -> &'static str {
        "read_file"
    }

    fn side_effect(&self) -> SideEffect {
        SideEffect::ReadOnly
    }

    fn plan(&self, input: &Input, planning: &Planning) -> Result<Vec<Effect>, ToolError> {
        Ok(vec![Effect::Read { path: planning.absolute(&input.path)? }])
    }

    async fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let path = world.planning().absolute(&input.path)?;
        let most = input.max_bytes.unwrap_or(DEFAULT_BYTES).min(MOST_BYTES);
        let held = contents(world, &path, most)?;
        let text = held.text().unwrap_or_else(|| String::from_utf8_lossy(&held.bytes).into_owned());
        Ok(Output::json(json!({
            "path": path_to_text(&path), "contents": text, "truncated": held.missing > 0,
        })))
    }

    fn bound(&self) -> Bound {
        super::limit()
    }

    fn clamps(&self) -> bool {
        true
    }
}
