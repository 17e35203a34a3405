//! A call that does nothing, through all eight steps of a warm runtime.

use std::time::Instant;

use haft::{Effect, JsonSchema, Output, Planning, Runtime, SideEffect, Tool, ToolError, World, json};
use serde::Deserialize;

use super::Bench;
use super::measure::{Row, median};
use crate::Done;

/// Do nothing.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

pub(crate) struct Noop;

impl Tool for Noop {
    type Input = Nothing;

    fn name(&self) -> &'static str {
        "Noop"
    }

    fn side_effect(&self) -> SideEffect {
        SideEffect::None
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
    runtime.block_on(async {
        let folder = tempfile::tempdir_in(&bench.sample.scratch).map_err(|error| error.to_string())?;
        let home = tempfile::tempdir_in(&bench.sample.scratch).map_err(|error| error.to_string())?;
        let haft = Runtime::builder()
            .workspace(folder.path())
            .home(home.path())
            .tool(Noop)
            .build()
            .map_err(|error| error.to_string())?;
        let mut times = Vec::new();
        for _ in 0..5_000 {
            let start = Instant::now();
            haft.call("Noop", json!({})).await;
            times.push(start.elapsed());
        }
        let haft_ms = median(&mut times[1_000..]);
        bench.table.add(Row {
            part: "dispatch",
            case: "no-op, eight steps, recorded".to_owned(),
            haft_ms,
            peer: String::new(),
            peer_ms: None,
            ratio: None,
            haft_peak_kib: None,
            peer_peak_kib: None,
        });
        Ok(())
    })
}
