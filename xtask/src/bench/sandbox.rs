//! Sandboxed and witnessed commands against the same commands alone.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::measure::{Row, alternate, median};
use super::session::McpSession;
use super::{Bench, Place};
use crate::Done;
use crate::machine::BUBBLEWRAP;
use crate::workspace::root;

/// 20,000 small files, created by a shell one after the other.
pub(super) const CREATES: &str = "mkdir new && cd new && for i in {1..20000}; do echo hello > f$i; done";
/// A repository with two branches that differ in 3,000 files.
pub(super) const REPOSITORY: &str = "git init -q . && git config user.email a@b && git config user.name n && \
     mkdir -p d/{0..29} && for i in {1..3000}; do echo \"one $i\" > d/$((i % 30))/f$i; done && git add -A && \
     git commit -qm one && git branch one && for i in {1..3000}; do echo \"two $i\" > d/$((i % 30))/f$i; done && \
     git commit -qam two && git branch two";

const START_ROUNDS: usize = 200;
const WARM_UP_ROUNDS: usize = 20;
const COMMAND_ROUNDS: usize = 60;
const LONG_ROUNDS: usize = 5;
const BUILD_ROUNDS: usize = 2;

pub(super) fn run(bench: &mut Bench) -> Done {
    start(bench)?;
    whole_command(bench)?;
    creates(bench)?;
    checkout(bench)?;
    build(bench)
}

/// Runs a command with the Bash tool.
pub(super) fn sandboxed(server: &mut McpSession, command: &str) -> Result<Duration, String> {
    server.call("Bash", &json!({"command": command, "timeout": 600_000}))
}

impl Place {
    /// Runs a command without Haft.
    pub(super) fn alone(&self, command: &str) -> Result<Duration, String> {
        let start = Instant::now();
        let done = Command::new("bash")
            .args(["-c", command])
            .current_dir(self.workspace.path())
            .stdin(Stdio::null())
            .output()
            .map_err(|error| error.to_string())?;
        let time = start.elapsed();
        if done.status.success() { Ok(time) } else { Err(String::from_utf8_lossy(&done.stderr).into_owned()) }
    }
}

/// The cost of any command, its receipt included.
fn start(bench: &mut Bench) -> Done {
    let place = bench.place_in_memory()?;
    let mut server = place.serve(&bench.haft)?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..WARM_UP_ROUNDS + START_ROUNDS {
        with.push(sandboxed(&mut server, "true")?);
        without.push(place.alone("true")?);
    }
    server.end();
    add(
        bench,
        "bash -c true, warm, recorded",
        "bash",
        &mut with[WARM_UP_ROUNDS..],
        &mut without[WARM_UP_ROUNDS..],
    );
    Ok(())
}

/// `haft sandbox` against bubblewrap.
fn whole_command(bench: &mut Bench) -> Done {
    let bwrap = match BUBBLEWRAP.find() {
        Ok(bwrap) => bwrap,
        Err(why) => {
            println!("sandbox: bubblewrap is left out: {why}");
            return Ok(());
        }
    };
    let place = bench.place_in_memory()?;
    let mut command = haft_sandbox(&bench.haft, &place);
    let mut peer = Command::new(bwrap);
    peer.args(["--unshare-all", "--ro-bind", "/", "/", "true"]);
    let [haft, other] = alternate(COMMAND_ROUNDS, &mut [&mut command, &mut peer])?;
    let row = Row::new("sandbox", "haft sandbox -- true, recorded", haft.median_ms, "bwrap", other.median_ms);
    bench.table.add(row.with_peaks(Some(haft.peak_kib), Some(other.peak_kib)));
    Ok(())
}

pub(super) fn haft_sandbox(haft: &std::path::Path, place: &Place) -> Command {
    let mut command = Command::new(haft);
    command
        .args(["sandbox", "--", "true"])
        .current_dir(place.workspace.path())
        .env("HAFT_HOME", place.home.path());
    command
}

fn creates(bench: &mut Bench) -> Done {
    let place = bench.place_in_memory()?;
    let mut server = place.serve(&bench.haft)?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..LONG_ROUNDS {
        with.push(sandboxed(&mut server, CREATES)?);
        place.alone("rm -r new")?;
        without.push(place.alone(CREATES)?);
        place.alone("rm -r new")?;
    }
    server.end();
    add(bench, "20,000 small files created", "bash", &mut with, &mut without);
    Ok(())
}

fn checkout(bench: &mut Bench) -> Done {
    let place = bench.place_in_memory()?;
    place.alone(REPOSITORY)?;
    let mut server = place.serve(&bench.haft)?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..LONG_ROUNDS {
        with.push(sandboxed(&mut server, "git checkout -q one")?);
        without.push(place.alone("git checkout -q two")?);
        without.push(place.alone("git checkout -q one")?);
        with.push(sandboxed(&mut server, "git checkout -q two")?);
    }
    server.end();
    add(bench, "git checkout of 3,000 files", "git", &mut with, &mut without);
    Ok(())
}

/// A build of one of Haft's own crates with its dependencies.
fn build(bench: &mut Bench) -> Done {
    const COMMAND: &str = "CARGO_TARGET_DIR=target cargo build -q --offline -p haft-tool 2>&1";
    let place = bench.place_in_memory()?;
    place.alone(&format!("cp -r {0}/Cargo.toml {0}/Cargo.lock {0}/crates {0}/xtask .", root().display()))?;
    let mut server = place.serve(&bench.haft)?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..BUILD_ROUNDS {
        place.alone("rm -rf target")?;
        with.push(sandboxed(&mut server, COMMAND)?);
        place.alone("rm -rf target")?;
        without.push(place.alone(COMMAND)?);
    }
    server.end();
    add(bench, "cargo build of haft-tool", "cargo", &mut with, &mut without);
    Ok(())
}

fn add(bench: &mut Bench, case: &str, peer: &str, with: &mut [Duration], without: &mut [Duration]) {
    bench.table.add(Row::new("sandbox", case, median(with), peer, median(without)));
}
