//! `read`: a file's text.

use haft_tool::{Bound, Effect, JsonSchema, Output, Planning, SideEffect, Text, Tool, ToolError, World};
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
    type Input = Input;

    fn name(&self) -> &'static str {
        "read"
    }

    fn side_effect(&self) -> SideEffect {
        SideEffect::ReadOnly
    }

    fn plan(&self, input: &Input, planning: &Planning) -> Result<Vec<Effect>, ToolError> {
        Ok(vec![Effect::Read { path: planning.absolute(&input.file_path)? }])
    }

    async fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let path = world.planning().absolute(&input.file_path)?;
        let held = contents(world, &path, MOST_HELD)?;
        let head = held.only_text(&path)?;
        Ok(Output::text(Text { head, missing_bytes: held.missing, tail: String::new() }))
    }

    fn bound(&self) -> Bound {
        super::limit(MOST_CHARS)
    }
}
