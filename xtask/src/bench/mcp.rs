//! `haft mcp` against a bare pipe and the reference server for files; a server's tool through Haft against the server itself.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use super::commands::haft_call;
use super::measure::{Row, alternate, median};
use super::session::{McpSession, haft_mcp};
use super::{Bench, Place};
use crate::Done;
use crate::peers::mcp::McpPeers;
use crate::workspace::root;

/// How many calls are measured in each round. How fast a pipe is depends on where the scheduler puts its two ends, so the servers
/// are started in turns.
pub(super) const READ_COUNT: usize = 200;
pub(super) const READ_ROUNDS: usize = 15;
/// The same for many requests at once.
const BURST_COUNT: usize = 20_000;
const BURST_ROUNDS: usize = 5;
const CONNECT_ROUNDS: usize = 15;
const CONFIGURED_ROUNDS: usize = 41;

/// A file of 1 KiB in the workspace.
pub(super) fn small_file(place: &Place) -> Result<std::path::PathBuf, String> {
    let file = place.workspace.path().join("small.txt");
    std::fs::write(&file, format!("{}\n", "x".repeat(63)).repeat(16)).map_err(|error| error.to_string())?;
    Ok(file)
}

pub(super) fn run(bench: &mut Bench) -> Done {
    let peers = McpPeers::find()?;
    let place = bench.place()?;
    let file = small_file(&place)?;
    let reference = || {
        let mut command = Command::new(&peers.node);
        let script = peers.module("@modelcontextprotocol/server-filesystem/dist/index.js");
        command.arg(script).arg(place.workspace.path());
        command
    };
    reads(bench, &place, &file, &reference)?;
    bursts(bench, &place, &file, &reference)?;
    let haft = || haft_mcp(&bench.haft, place.home.path(), place.workspace.path());
    let row = Row::new("mcp", "connect", connect(&haft)?, "filesystem", connect(&reference)?);
    bench.table.add(row);
    through_haft(bench, &peers, &place)?;
    configured(bench, &place, &file)
}

fn reads(bench: &mut Bench, place: &Place, file: &Path, reference: &dyn Fn() -> Command) -> Done {
    let (ours, theirs) = (json!({"file_path": file}), json!({"path": file}));
    let (mut haft_ms, mut pipe_ms, mut peer_ms) = (Vec::new(), Vec::new(), Vec::new());
    let mut memory = (None, None);
    for _ in 0..READ_ROUNDS {
        let mut cat = McpSession::spawn(&mut Command::new("cat"))?;
        let request = cat.request("Read", &ours);
        let mut times = Vec::new();
        for _ in 0..READ_COUNT {
            times.push(cat.exchange(&request)?);
        }
        pipe_ms.push(Duration::from_secs_f64(median(&mut times) / 1e3));
        cat.end();
        let mut haft = place.serve(&bench.haft)?;
        haft_ms.push(Duration::from_secs_f64(haft.median_call("Read", &ours, READ_COUNT)? / 1e3));
        memory.0 = haft.memory_kib();
        haft.end();
        let mut peer = McpSession::start(&mut reference())?;
        peer_ms.push(Duration::from_secs_f64(peer.median_call("read_text_file", &theirs, READ_COUNT)? / 1e3));
        memory.1 = peer.memory_kib();
        peer.end();
    }
    let haft_ms = median(&mut haft_ms);
    for (peer, times, peer_kib) in [("cat", &mut pipe_ms, None), ("filesystem", &mut peer_ms, memory.1)] {
        let row = Row::new("mcp", "Read 1 KiB, one by one", haft_ms, peer, median(times));
        bench.table.add(row.with_peaks(memory.0, peer_kib));
    }
    Ok(())
}

fn bursts(bench: &mut Bench, place: &Place, file: &Path, reference: &dyn Fn() -> Command) -> Done {
    let (ours, theirs) = (json!({"file_path": file}), json!({"path": file}));
    let (mut haft_ms, mut peer_ms, mut memory) = (Vec::new(), Vec::new(), (None, None));
    for _ in 0..BURST_ROUNDS {
        let mut peer = McpSession::start(&mut reference())?;
        let per_call_ms = peer.many_at_once("read_text_file", &theirs, BURST_COUNT / 10)?;
        peer_ms.push(Duration::from_secs_f64(per_call_ms / 1e3));
        memory.1 = peer.memory_kib();
        peer.end();
        let mut haft = place.serve(&bench.haft)?;
        haft_ms.push(Duration::from_secs_f64(haft.many_at_once("Read", &ours, BURST_COUNT)? / 1e3));
        memory.0 = haft.memory_kib();
        haft.end();
    }
    let row =
        Row::new("mcp", "Read 1 KiB, 64 at once", median(&mut haft_ms), "filesystem", median(&mut peer_ms));
    bench.table.add(row.with_peaks(memory.0, memory.1));
    Ok(())
}

/// From the start of a server to its first answer, in milliseconds.
fn connect(make: &dyn Fn() -> Command) -> Result<f64, String> {
    let mut times = Vec::new();
    for _ in 0..CONNECT_ROUNDS {
        let start = Instant::now();
        let server = McpSession::start(&mut make())?;
        times.push(start.elapsed());
        server.end();
    }
    Ok(median(&mut times))
}

/// The same call to the server itself and through Haft, as one of Haft's configured servers.
fn through_haft(bench: &mut Bench, peers: &McpPeers, place: &Place) -> Done {
    let script = root().join("crates/haft-mcp/tests/fixtures/hostile_server.py");
    let text = json!({"text": "hello"});
    let mut bare = McpSession::start(Command::new(&peers.python).arg(&script).arg("good"))?;
    let bare_ms = bare.median_call("echo", &text, READ_ROUNDS * READ_COUNT)?;
    bare.end();
    let settings = place.home.path().join("server.toml");
    let written = format!(
        "[tools.mcp_servers.local]\ncommand = {:?}\nargs = [{:?}, \"good\"]\n",
        peers.python.display().to_string(),
        script.display().to_string()
    );
    std::fs::write(&settings, written).map_err(|error| error.to_string())?;
    let mut command = haft_mcp(&bench.haft, place.home.path(), place.workspace.path());
    let mut haft = McpSession::start(command.env("HAFT_CONFIG", &settings))?;
    let haft_ms = haft.median_call("mcp__local__echo", &text, READ_ROUNDS * READ_COUNT)?;
    haft.end();
    bench.table.add(Row::new("mcp", "a server's tool through Haft", haft_ms, "bare pipe", bare_ms));
    Ok(())
}

/// What fifty configured servers cost a call that needs none of them.
fn configured(bench: &mut Bench, place: &Place, file: &Path) -> Done {
    let server = |number| {
        format!(
            "[tools.mcp_servers.server{number}]\ncommand = \"node\"\nargs = [\"server{number}.js\", \"--quiet\"]\n"
        )
    };
    let settings = place.home.path().join("fifty.toml");
    std::fs::write(&settings, (0..50).map(server).collect::<String>()).map_err(|error| error.to_string())?;
    let call = || {
        haft_call(&bench.haft, place.home.path(), place.workspace.path(), "Read", &json!({"file_path": file}))
    };
    let (mut with, mut without) = (call(), call());
    with.env("HAFT_CONFIG", &settings);
    without.env("HAFT_CONFIG", place.home.path().join("none.toml"));
    let [with, without] = alternate(CONFIGURED_ROUNDS, &mut [&mut with, &mut without])?;
    let row = Row::new("mcp", "Read with 50 servers configured", with.median_ms, "none", without.median_ms);
    bench.table.add(row.with_peaks(Some(with.peak_kib), Some(without.peak_kib)));
    Ok(())
}
