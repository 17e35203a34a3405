//! `haft_log`: the last calls in this workspace.

use haft_tool::{
    Bound, Effect, JsonSchema, Logged, Output, Planning, SideEffect, Tool, ToolError, Value, World, json,
    result_schema_of,
};
use serde::{Deserialize, Serialize};

/// As much as other results may have; a log that is cut is still JSON.
const MOST_BYTES: usize = 30_000;

/// List the last recorded calls in this workspace, newest first, with what each changed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// How many [default: 20].
    #[schemars(range(min = 1, max = 200))]
    limit: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
struct Given {
    /// The newest first.
    calls: Vec<Logged>,
}

pub(super) struct HaftLog;

impl Tool for HaftLog {
    type Input = Input;

    fn name(&self) -> &'static str {
        "haft_log"
    }

    fn gives(&self) -> Option<fn() -> Value> {
        Some(result_schema_of::<Given>)
    }

    fn side_effect(&self) -> SideEffect {
        SideEffect::ReadOnly
    }

    fn plan(&self, _input: &Input, _planning: &Planning) -> Result<Vec<Effect>, ToolError> {
        Ok(Vec::new())
    }

    async fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let calls = world.host().log(input.limit.unwrap_or(20)).await?;
        Ok(Output::json(json!(Given { calls })))
    }

    fn bound(&self) -> Bound {
        Bound::json(MOST_BYTES)
    }
}
