//! This build of Haft against another one, in turns.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::commands::haft_call;
use super::mcp::{READ_COUNT, READ_ROUNDS, small_file};
use super::measure::{Row, alternate, median};
use super::sandbox::{CREATES, REPOSITORY, haft_sandbox, sandboxed};
use super::session::McpSession;
use super::{Bench, Place};
use crate::Done;

const PART: &str = "against";
const COMMAND_ROUNDS: usize = 21;
const START_ROUNDS: usize = 200;
const WARM_UP_ROUNDS: usize = 20;
const LONG_ROUNDS: usize = 5;

pub(super) fn run(bench: &mut Bench, other: &Path) -> Done {
    searches(bench, other)?;
    whole_command(bench, other)?;
    let true_rounds = WARM_UP_ROUNDS + START_ROUNDS;
    in_turns(bench, other, "bash -c true, warm", "", true_rounds, WARM_UP_ROUNDS, |place, server, _| {
        let _ = place;
        sandboxed(server, "true")
    })?;
    in_turns(bench, other, "20,000 small files created", "", LONG_ROUNDS, 0, |place, server, _| {
        let time = sandboxed(server, CREATES)?;
        place.alone("rm -r new")?;
        Ok(time)
    })?;
    in_turns(
        bench,
        other,
        "git checkout of 3,000 files",
        REPOSITORY,
        2 * LONG_ROUNDS,
        0,
        |_, server, round| {
            sandboxed(server, if round % 2 == 0 { "git checkout -q one" } else { "git checkout -q two" })
        },
    )?;
    reads(bench, other)
}

/// Grep and Glob as whole commands.
fn searches(bench: &mut Bench, other: &Path) -> Done {
    let (tree, big) = (bench.sample.tree.clone(), bench.sample.big.clone());
    let content = |pattern: &str| json!({"pattern": pattern, "output_mode": "content"});
    let mut in_big = content("needle_in_haystack");
    in_big["path"] = json!(big);
    for (case, tool, arguments) in [
        ("Grep literal, 30,000 files", "Grep", content("needle_in_haystack")),
        ("Grep regex, 30,000 files", "Grep", content(r"w\d+7 Sher\w+")),
        ("Grep literal, 500 MB", "Grep", in_big),
        ("Glob all, 30,000 files", "Glob", json!({"pattern": "**/*"})),
        ("Glob one kind, 30,000 files", "Glob", json!({"pattern": "**/*.rs"})),
    ] {
        let places = (bench.place()?, bench.place()?);
        let mut ours = haft_call(&bench.haft, places.0.home.path(), &tree, tool, &arguments);
        let mut theirs = haft_call(other, places.1.home.path(), &tree, tool, &arguments);
        let [ours, theirs] = alternate(COMMAND_ROUNDS, &mut [&mut ours, &mut theirs])?;
        let row = Row::new(PART, case, ours.median_ms, "other", theirs.median_ms);
        bench.table.add(row.with_peaks(Some(ours.peak_kib), Some(theirs.peak_kib)));
    }
    Ok(())
}

fn whole_command(bench: &mut Bench, other: &Path) -> Done {
    let places = (bench.place_in_memory()?, bench.place_in_memory()?);
    let (mut ours, mut theirs) = (haft_sandbox(&bench.haft, &places.0), haft_sandbox(other, &places.1));
    let [ours, theirs] = alternate(3 * COMMAND_ROUNDS, &mut [&mut ours, &mut theirs])?;
    let row = Row::new(PART, "haft sandbox -- true", ours.median_ms, "other", theirs.median_ms);
    bench.table.add(row.with_peaks(Some(ours.peak_kib), Some(theirs.peak_kib)));
    Ok(())
}

/// Measures a call in a server of each build, in turns; the first rounds do not count. `setup` prepares each workspace.
fn in_turns(
    bench: &mut Bench,
    other: &Path,
    case: &str,
    setup: &str,
    rounds: usize,
    warm_up: usize,
    call: impl Fn(&Place, &mut McpSession, usize) -> Result<Duration, String>,
) -> Done {
    let programs = [bench.haft.as_path(), other];
    let mut servers = Vec::new();
    for program in programs {
        let place = bench.place_in_memory()?;
        place.alone(setup)?;
        let server = place.serve(program)?;
        servers.push((place, server, Vec::new()));
    }
    for round in 0..rounds {
        for (place, server, times) in &mut servers {
            times.push(call(place, server, round)?);
        }
    }
    let medians: Vec<f64> = servers.iter_mut().map(|(_, _, times)| median(&mut times[warm_up..])).collect();
    for (_, server, _) in servers {
        server.end();
    }
    bench.table.add(Row::new(PART, case, medians[0], "other", medians[1]));
    Ok(())
}

/// Read of 1 KiB over MCP; each round starts the servers again.
fn reads(bench: &mut Bench, other: &Path) -> Done {
    let places = [bench.place()?, bench.place()?];
    let mut medians = [Vec::new(), Vec::new()];
    let mut memory = [None, None];
    for _ in 0..READ_ROUNDS {
        for (at, program) in [bench.haft.as_path(), other].into_iter().enumerate() {
            let arguments = json!({"file_path": small_file(&places[at])?});
            let mut server = places[at].serve(program)?;
            medians[at]
                .push(Duration::from_secs_f64(server.median_call("Read", &arguments, READ_COUNT)? / 1e3));
            memory[at] = server.memory_kib();
            server.end();
        }
    }
    let [ours, theirs] = &mut medians;
    let row = Row::new(PART, "MCP Read 1 KiB", median(ours), "other", median(theirs));
    bench.table.add(row.with_peaks(memory[0], memory[1]));
    Ok(())
}
