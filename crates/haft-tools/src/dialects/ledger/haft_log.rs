//! `haft_log`: the last calls in this workspace.

use haft_tool::{Effect, JsonSchema, Output, Planning, SideEffect, Tool, ToolError, World};
use serde::Deserialize;

/// List the last recorded calls in this workspace, newest first, with what each changed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// How many [default: 20].
    #[schemars(range(min = 1, max = 200))]
    limit: Option<usize>,
}

pub(super) struct HaftLog;

impl Tool for HaftLog {
    type Input = Input;

    fn name(&self) -> &'static str {
        "haft_log"
    }

    fn side_effect(&self) -> SideEffect {
        SideEffect::ReadOnly
    }

    fn plan(&self, _input: &Input, _planning: &Planning) -> Result<Vec<Effect>, ToolError> {
        Ok(Vec::new())
    }

    async fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        world.host().log(input.limit.unwrap_or(20)).await.map(Output::json)
    }
}
