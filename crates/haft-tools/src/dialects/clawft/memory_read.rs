//! `memory_read`: the memory, or the paragraphs of it that are asked for.

use haft_tool::{
    Bound, Effect, EffectKind, JsonSchema, Output, Planned, Planning, Tool, ToolError, Value, World, json,
    result_schema_of,
};
use serde::{Deserialize, Serialize};

use crate::ops::memory::{Memory, paragraphs};

/// Read your memory, which outlives sessions: all of it, or the paragraphs that hold `query`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// What to look for, capitals or not.
    query: Option<String>,
}

#[derive(Default, Serialize, JsonSchema)]
struct Given {
    /// All of the memory, if nothing was looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    /// Why it is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'static str>,
    /// What was looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<String>,
    /// The paragraphs that hold it.
    #[serde(skip_serializing_if = "Option::is_none")]
    matches: Option<Vec<String>>,
    /// How many they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<usize>,
}

pub(super) struct MemoryRead {
    pub(super) memory: Memory,
}

impl Tool for MemoryRead {
    const NAME: &'static str = "memory_read";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Read];
    const BOUND: Bound = super::BOUND;
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<Given>);
    type Input = Input;
    type Plan = Input;

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<Input>, ToolError> {
        Ok(Planned::new(self.memory.effects(|path| Effect::Read { path })?, input))
    }

    fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let held = self.memory.read(world)?;
        let nothing = Given::default();
        Ok(Output::json(json!(match (held, input.query) {
            (None, _) => {
                Given { content: Some(String::new()), message: Some("No memory file found"), ..nothing }
            }
            (Some(content), None) => Given { content: Some(content), ..nothing },
            (Some(content), Some(query)) => {
                let matches = paragraphs(&content, &query);
                Given { query: Some(query), count: Some(matches.len()), matches: Some(matches), ..nothing }
            }
        })))
    }
}
