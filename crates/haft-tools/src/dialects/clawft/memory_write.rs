//! `memory_write`: appends to the memory or replaces it.

use haft_tool::path_to_text;
use haft_tool::prelude::*;

use crate::ops::memory::Memory;

/// Write to your memory, which outlives sessions.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// What to remember.
    content: String,
    /// Add to what is there (default), or replace it.
    mode: Option<MemoryWriteMode>,
}

#[derive(Deserialize, JsonSchema, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum MemoryWriteMode {
    Append,
    Overwrite,
}

#[derive(Serialize, JsonSchema)]
struct MemoryWritten {
    /// What was done.
    message: String,
    /// The file that holds the memory.
    path: String,
}

pub(super) struct MemoryWrite {
    pub(super) memory: Memory,
}

impl Tool for MemoryWrite {
    const NAME: &'static str = "memory_write";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Write];
    const HAS_PREVIEW: bool = true;
    const BOUND: Bound = super::BOUND;
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<MemoryWritten>);
    type Input = Input;
    type Plan = Input;

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<Input>, ToolError> {
        Ok(Planned::new(self.memory.effects(|path| Effect::Write { path })?, input))
    }

    fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let append = input.mode != Some(MemoryWriteMode::Overwrite);
        let path = self.memory.write(world, &input.content, append)?;
        let mode = if append { "append" } else { "overwrite" };
        let message = format!("Successfully wrote {} bytes to memory (mode: {mode})", input.content.len());
        Ok(Output::json(json!(MemoryWritten { message, path: path_to_text(&path).into_owned() })))
    }
}
