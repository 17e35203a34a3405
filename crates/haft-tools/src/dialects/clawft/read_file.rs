//! `read_file`: a file's text.

use std::path::PathBuf;

use haft_tool::{
    Bound, Effect, EffectKind, JsonSchema, Output, Planned, Planning, Tool, ToolError, Value, World,
    cut_string, json, result_schema_of,
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
    const NAME: &'static str = "read_file";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Read];
    const BOUND: Bound = super::BOUND;
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<Given>);
    type Input = Input;
    type Plan = PathBuf;

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<PathBuf>, ToolError> {
        let path = at.absolute(&input.path)?;
        Ok(Planned::new([Effect::Read { path: path.clone() }], path))
    }

    fn perform(&self, path: PathBuf, world: &dyn World) -> Result<Output, ToolError> {
        // More than fits need not be held, only its length.
        let held = contents(world, &path, super::MOST_BYTES as u64 * 2)?;
        let total = held.bytes.len() as u64 + held.missing;
        let mut text = held.only_text(&path)?;
        if held.missing > 0 {
            text = cut_string(text, total);
        }
        Ok(Output::json(json!(Given { content: text })))
    }
}
