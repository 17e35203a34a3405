//! A call that does nothing, through all eight steps of a warm runtime.

use std::time::Instant;

use haft::{Effect, JsonSchema, Output, Planning, SideEffect, Tool, ToolError, World, json};
use serde::Deserialize;

use super::measure::{Row, median};
use super::{Bench, Stage};
use crate::Done;

/// Do nothing.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// Does nothing, and claims a side effect all the same.
pub(crate) struct Noop(pub(crate) SideEffect);

impl Tool for Noop {
    type Input = Nothing;

    fn name(&self) -> &'static str {
        "Noop"
    }

    fn side_effect(&self) -> SideEffect {
        self.0
    }

    fn plan(&self, _input: &Nothing, _planning: &Planning) -> Result<Vec<Effect>, ToolError> {
        Ok(Vec::new())
    }

    async fn perform(&self, _input: Nothing, _world: &dyn World) -> Result<Output, ToolError> {
        Ok(Output::text("done"))
    }
}

pub(crate) fn run(bench: &mut Bench) -> Done {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    for (case, side_effect) in
        [("no-op, recorded", SideEffect::None), ("no-op on its own thread, recorded", SideEffect::ReadOnly)]
    {
        let haft_ms = runtime.block_on(measure(bench, side_effect))?;
        bench.table.add(Row {
            part: "dispatch",
            case: case.to_owned(),
            haft_ms,
            peer: String::new(),
            peer_ms: None,
            ratio: None,
            haft_peak_kib: None,
            peer_peak_kib: None,
        });
    }
    Ok(())
}

async fn measure(bench: &Bench, side_effect: SideEffect) -> Result<f64, String> {
    let stage = Stage::new(bench)?;
    let haft = stage.runtime(|builder| builder.tool(Noop(side_effect)))?;
    let mut times = Vec::new();
    for _ in 0..5_000 {
        let start = Instant::now();
        haft.call("Noop", json!({})).await;
        times.push(start.elapsed());
    }
    Ok(median(&mut times[1_000..]))
}
