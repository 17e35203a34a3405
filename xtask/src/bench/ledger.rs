//! What a call costs with an empty ledger and with 100,000 receipts in it.

use std::time::Instant;

use haft::{Runtime, json};

use super::measure::{Row, median};
use super::warm::Noop;
use super::{Bench, Stage};
use crate::Done;

const RECEIPTS: usize = 100_000;

pub(crate) fn run(bench: &mut Bench) -> Done {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let stage = Stage::new(bench)?;
        let haft = stage.runtime(|builder| builder.dialect(haft::claude()).tool(Noop))?;
        let empty = [noop(&haft).await, write(&haft).await];
        for _ in 0..RECEIPTS {
            haft.call("Noop", json!({})).await;
        }
        let full = [noop(&haft).await, write(&haft).await];
        for (case, empty, full) in
            [("read-only call", empty[0], full[0]), ("durable write", empty[1], full[1])]
        {
            bench.table.add(Row {
                part: "ledger",
                case: format!("{case}, {RECEIPTS} receipts"),
                haft_ms: full,
                peer: "empty ledger".to_owned(),
                peer_ms: Some(empty),
                ratio: Some(full / empty),
                haft_peak_kib: None,
                peer_peak_kib: None,
            });
        }
        Ok(())
    })
}

async fn noop(haft: &Runtime) -> f64 {
    let mut times = Vec::new();
    for _ in 0..2_000 {
        let start = Instant::now();
        haft.call("Noop", json!({})).await;
        times.push(start.elapsed());
    }
    median(&mut times)
}

async fn write(haft: &Runtime) -> f64 {
    let path = haft.workspace().join("file.txt");
    let mut times = Vec::new();
    for round in 0..101 {
        let start = Instant::now();
        haft.call("Write", json!({"file_path": path, "content": format!("{round}\n").repeat(200)})).await;
        times.push(start.elapsed());
    }
    median(&mut times)
}
