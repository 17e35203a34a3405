//! `read`: a file's text.

use std::path::PathBuf;

use haft_tool::{
    Bound, Effect, EffectKind, JsonSchema, Output, Planned, Planning, Text, Tool, ToolError, World,
};
use serde::Deserialize;

use crate::ops::contents::contents;

const MOST_CHARS: usize = 50_000;
/// Up to here characters are counted one by one; what lies beyond counts by its bytes.
const MOST_HELD: u64 = 16 << 20;

/// Read a text file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Its path.
    file_path: String,
}

pub(super) struct Read;

impl Tool for Read {
    const NAME: &'static str = "read";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Read];
    const BOUND: Bound = super::limit(MOST_CHARS);
    type Input = Input;
    type Plan = PathBuf;

    fn plan(&self, input: Input, at: &Planning) -> Result<Planned<PathBuf>, ToolError> {
        let path = at.absolute(&input.file_path)?;
        Ok(Planned::new([Effect::Read { path: path.clone() }], path))
    }

    fn perform(&self, path: PathBuf, world: &dyn World) -> Result<Output, ToolError> {
        let held = contents(world, &path, MOST_HELD)?;
        let head = held.only_text(&path)?;
        Ok(Output::text(Text { head, missing_bytes: held.missing, tail: String::new() }))
    }
}
