//! `read_file`: the beginning of a file.

use std::path::PathBuf;

use haft_tool::{
    Bound, Effect, EffectKind, JsonSchema, Output, Planned, Planning, Tool, ToolError, Value, World, json,
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

/// The file, and how much of it is read.
pub(super) struct ReadPlan {
    path: PathBuf,
    max_bytes: u64,
}

impl Tool for ReadFile {
    const NAME: &'static str = "read_file";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Read];
    const BOUND: Bound = super::BOUND;
    const CLAMP_NUMBERS: bool = true;
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<Given>);
    type Input = Input;
    type Plan = ReadPlan;

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<ReadPlan>, ToolError> {
        let path = at.absolute(&input.path)?;
        let max_bytes = input.max_bytes.unwrap_or(DEFAULT_BYTES).min(MOST_BYTES);
        Ok(Planned::new([Effect::Read { path: path.clone() }], ReadPlan { path, max_bytes }))
    }

    fn perform(&self, plan: ReadPlan, world: &dyn World) -> Result<Output, ToolError> {
        let held = contents(world, &plan.path, plan.max_bytes)?;
        let text = held.text().unwrap_or_else(|| String::from_utf8_lossy(&held.bytes).into_owned());
        Ok(Output::json(json!(Given {
            path: path_to_text(&plan.path).into_owned(),
            contents: text,
            truncated: held.missing > 0,
        })))
    }
}
