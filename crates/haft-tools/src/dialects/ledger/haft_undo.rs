//! `haft_undo`: takes a call back.

use haft_tool::{Effect, JsonSchema, Output, Planning, SideEffect, Tool, ToolError, World};
use serde::Deserialize;

/// Take back what a recorded call changed: files get back the bytes they had before. Refused where something else has changed
/// since. An undo is a recorded call too.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The call's number from `haft_log`; the last one that changed something if left out.
    call: Option<i64>,
}

pub(super) struct HaftUndo;

impl Tool for HaftUndo {
    type Input = Input;

    fn name(&self) -> &'static str {
        "haft_undo"
    }

    fn side_effect(&self) -> SideEffect {
        SideEffect::Mutating
    }

    fn plan(&self, _input: &Input, _planning: &Planning) -> Result<Vec<Effect>, ToolError> {
        Ok(Vec::new())
    }

    async fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        world.host().undo(input.call).await
    }
}
