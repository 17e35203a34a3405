//! `memory_read`: the memory, or the paragraphs that match.

use haft_tool::prelude::*;

use crate::ops::memory::{Memory, paragraphs};

/// Read your memory, which outlives sessions: all of it, or the paragraphs that hold `query`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// What to look for, ignoring case.
    query: Option<String>,
}

#[derive(Default, Serialize, JsonSchema)]
struct MemoryContent {
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
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<MemoryContent>);
    type Input = Input;
    type Plan = Option<String>;

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<Option<String>>, ToolError> {
        Ok(Planned::new(self.memory.effects(|path| Effect::Read { path })?, input.query))
    }

    fn perform(&self, query: Option<String>, world: &dyn World) -> Result<Output, ToolError> {
        let mut result = MemoryContent::default();
        match (self.memory.read(world)?, query) {
            (None, _) => {
                result.content = Some(String::new());
                result.message = Some("No memory file found");
            }
            (content, None) => result.content = content,
            (Some(content), Some(query)) => {
                let matches = paragraphs(&content, &query);
                result.count = Some(matches.len());
                result.matches = Some(matches);
                result.query = Some(query);
            }
        }
        Ok(Output::json(json!(result)))
    }
}
