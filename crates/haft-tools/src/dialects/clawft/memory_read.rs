//! `memory_read`: the memory, or the paragraphs of it that are asked for.

use haft_tool::{Bound, Effect, JsonSchema, Output, Planning, SideEffect, Tool, ToolError, World, json};
use serde::Deserialize;

use crate::ops::memory::{Memory, paragraphs};

/// Read your memory, which outlives sessions: all of it, or the paragraphs that hold `query`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// What to look for, capitals or not.
    query: Option<String>,
}

pub(super) struct MemoryRead {
    pub(super) memory: Memory,
}

impl Tool for MemoryRead {
    type Input = Input;

    fn name(&self) -> &'static str {
        super::MEMORY_READ
    }

    fn side_effect(&self) -> SideEffect {
        SideEffect::ReadOnly
    }

    fn plan(&self, _input: &Input, _planning: &Planning) -> Result<Vec<Effect>, ToolError> {
        self.memory.effects(|path| Effect::Read { path })
    }

    async fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let held = self.memory.read(world)?;
        Ok(Output::json(match (held, input.query) {
            (None, _) => json!({"content": "", "message": "No memory file found"}),
            (Some(content), None) => json!({"content": content}),
            (Some(content), Some(query)) => {
                let matches = paragraphs(&content, &query);
                json!({"query": query, "matches": matches, "count": matches.len()})
            }
        }))
    }

    fn bound(&self) -> Bound {
        super::limit()
    }
}
