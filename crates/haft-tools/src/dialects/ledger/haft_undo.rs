//! `haft_undo`: undoes a call.

use haft_tool::{EffectKind, JsonSchema, Output, Planned, Planning, Tool, ToolError, World};
use serde::Deserialize;

/// Undo what a recorded call changed. Refused where something else has changed since. An undo is a recorded call too.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The call's number from `haft_log`; the last one that changed something if left out.
    call: Option<i64>,
}

pub(super) struct HaftUndo;

impl Tool for HaftUndo {
    const NAME: &'static str = "haft_undo";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Write];
    type Input = Input;
    type Plan = Option<i64>;

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<Option<i64>>, ToolError> {
        Ok(Planned::new([], input.call))
    }

    fn perform(&self, call: Option<i64>, world: &dyn World) -> Result<Output, ToolError> {
        world.host().undo(call)
    }
}
