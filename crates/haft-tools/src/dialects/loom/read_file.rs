//! `read_file`: the beginning of a file.

use haft_tool::{
    Bound, Effect, JsonSchema, Output, Planning, SideEffect, Tool, ToolError, Value, World, json,
    path_to_text, result_schema_of,
};
use serde::{Deserialize, Serialize};

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

#[derive(Serialize, JsonSchema)]
struct Given {
    /// The file.
    path: String,
    /// Its text.
    contents: String,
    /// Whether there is more of it.
    truncated: bool,
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
        let most = input.max_bytes.unwrap_or(DEFAULT_BYTES).min(MOST_BYTES);
        let held = contents(world, &path, most)?;
        let text = held.text().unwrap_or_else(|| String::from_utf8_lossy(&held.bytes).into_owned());
        Ok(Output::json(json!(Given {
            path: path_to_text(&path).into_owned(),
            contents: text,
            truncated: held.missing > 0,
        })))
    }

    fn bound(&self) -> Bound {
        super::limit()
    }

    fn clamps(&self) -> bool {
        true
    }
}
