//! `haft_log`: the last calls in this workspace.

use haft_tool::{
    Bound, Effect, EffectKind, JsonSchema, Logged, Output, Planned, Planning, Tool, ToolError, Value, World,
    json, result_schema_of,
};
use serde::{Deserialize, Serialize};

const MAX_BYTES: usize = 30_000;
const DEFAULT_CALLS: usize = 20;

/// List the last recorded calls in this workspace, newest first, with what each changed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// How many (default 20).
    #[schemars(range(min = 1, max = 200))]
    limit: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
struct CallLog {
    /// The newest first.
    calls: Vec<Logged>,
}

pub(super) struct HaftLog;

impl Tool for HaftLog {
    const NAME: &'static str = "haft_log";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Inspect];
    const BOUND: Bound = Bound::json(MAX_BYTES);
    const OUTPUT_SCHEMA: Option<fn() -> Value> = Some(result_schema_of::<CallLog>);
    type Input = Input;
    type Plan = usize;

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<usize>, ToolError> {
        let effect = Effect::Inspect { what: "the ledger".to_owned() };
        Ok(Planned::new([effect], input.limit.unwrap_or(DEFAULT_CALLS)))
    }

    fn perform(&self, limit: usize, world: &dyn World) -> Result<Output, ToolError> {
        let calls = world.host().log(limit)?;
        Ok(Output::json(json!(CallLog { calls })))
    }
}
