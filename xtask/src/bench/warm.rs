//! A call that does nothing, through all eight steps of a warm runtime.

use std::time::Instant;

use haft::{EffectKind, JsonSchema, Output, Planned, Planning, Tool, ToolError, World, json};
use serde::Deserialize;

use super::measure::{Row, median};
use super::{Bench, Stage};
use crate::Done;

/// Do nothing.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// A tool that does nothing.
pub(crate) struct Noop;

impl Tool for Noop {
    const NAME: &'static str = "Noop";
    const EFFECTS: &'static [EffectKind] = &[];
    type Input = Nothing;
    type Plan = ();

    fn plan(&self, _input: Nothing, _at: &Planning) -> Result<Planned<()>, ToolError> {
        Ok(Planned::new([], ()))
    }

    fn perform(&self, (): (), _world: &dyn World) -> Result<Output, ToolError> {
        Ok(Output::text("done"))
    }
}

pub(crate) fn run(bench: &mut Bench) -> Done {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    let haft_ms = runtime.block_on(measure(bench))?;
    bench.table.add(Row {
        part: "dispatch",
        case: "no-op, recorded".to_owned(),
        haft_ms,
        peer: String::new(),
        peer_ms: None,
        ratio: None,
        haft_peak_kib: None,
        peer_peak_kib: None,
    });
    Ok(())
}

async fn measure(bench: &Bench) -> Result<f64, String> {
    let stage = Stage::new(bench)?;
    let haft = stage.runtime(|builder| builder.tool(Noop))?;
    let mut times = Vec::new();
    for _ in 0..5_000 {
        let start = Instant::now();
        haft.call("Noop", json!({})).await;
        times.push(start.elapsed());
    }
    Ok(median(&mut times[1_000..]))
}
