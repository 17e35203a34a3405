//! Commands held by the kernel and witnessed, against the same commands alone.
//!
//! On memory where there is some, for a disk says more about itself than about Haft.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use haft::{Runtime, json};
use tempfile::TempDir;

use super::Bench;
use super::measure::{Row, alternate, median};
use crate::Done;

/// Small files made by a shell, one after the other.
const FILES: &str = "mkdir new && cd new && for i in {1..20000}; do echo hello > f$i; done";
/// What a checkout rewrites.
const CHECKOUT: usize = 3_000;

pub(crate) fn run(bench: &mut Bench) -> Done {
    let tokio = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    start(bench, &tokio)?;
    whole(bench)?;
    many_files(bench, &tokio)?;
    checkout(bench, &tokio)?;
    build(bench, &tokio)
}

/// A workspace with a ledger and a runtime, and the same workspace for the command alone.
struct Place {
    folder: TempDir,
    _home: TempDir,
    haft: Runtime,
}

impl Place {
    fn new() -> Result<Self, String> {
        let base = memory();
        let make = || tempfile::tempdir_in(&base).map_err(|error| error.to_string());
        // The ledger is no neighbour of the workspace on a real machine, either.
        let home = tempfile::tempdir_in(cache()?).map_err(|error| error.to_string())?;
        let folder = make()?;
        let haft = Runtime::builder()
            .workspace(folder.path())
            .home(home.path())
            .dialect(haft::claude())
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self { folder, _home: home, haft })
    }

    fn held(&self, tokio: &tokio::runtime::Runtime, command: &str) -> Result<Duration, String> {
        let started = Instant::now();
        let result = tokio.block_on(self.haft.call("Bash", json!({"command": command, "timeout": 600_000})));
        let time = started.elapsed();
        if result.output.is_error() { Err(result.output.as_text()) } else { Ok(time) }
    }

    fn alone(&self, command: &str) -> Result<Duration, String> {
        let started = Instant::now();
        let done = Command::new("bash")
            .args(["-c", command])
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .output()
            .map_err(|error| error.to_string())?;
        let time = started.elapsed();
        if done.status.success() { Ok(time) } else { Err(String::from_utf8_lossy(&done.stderr).into_owned()) }
    }
}

fn memory() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}

fn cache() -> Result<PathBuf, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench-homes");
    std::fs::create_dir_all(&path).map_err(|error| error.to_string())?;
    path.canonicalize().map_err(|error| error.to_string())
}

fn add(bench: &mut Bench, case: &str, peer: &str, held: &mut [Duration], alone: &mut [Duration]) {
    let (haft_ms, peer_ms) = (median(held), median(alone));
    bench.table.add(Row {
        part: "sandbox",
        case: case.to_owned(),
        haft_ms,
        peer: peer.to_owned(),
        peer_ms: Some(peer_ms),
        ratio: Some(haft_ms / peer_ms),
        haft_peak_kib: None,
        peer_peak_kib: None,
    });
}

/// The cost of holding a command at all, its receipt included.
fn start(bench: &mut Bench, tokio: &tokio::runtime::Runtime) -> Done {
    let place = Place::new()?;
    let (mut held, mut alone) = (Vec::new(), Vec::new());
    for round in 0..220 {
        let (with, without) = (place.held(tokio, "true")?, place.alone("true")?);
        if round >= 20 {
            held.push(with);
            alone.push(without);
        }
    }
    add(bench, "bash -c true, warm, recorded", "bash", &mut held, &mut alone);
    Ok(())
}

/// The whole command against bubblewrap's.
fn whole(bench: &mut Bench) -> Done {
    let Some(bwrap) = crate::peers::debian("bwrap", "bubblewrap") else {
        println!("sandbox: bubblewrap is not installed and cannot be; left out");
        return Ok(());
    };
    let place = Place::new()?;
    let home = tempfile::tempdir_in(cache()?).map_err(|error| error.to_string())?;
    let mut haft = Command::new(&bench.haft);
    haft.args(["sandbox", "--", "true"]).current_dir(place.folder.path()).env("HAFT_HOME", home.path());
    let mut peer = Command::new(bwrap);
    peer.args(["--unshare-all", "--ro-bind", "/", "/", "true"]);
    let ran = alternate(60, &mut [&mut haft, &mut peer])?;
    let [mut haft, mut peer]: [_; 2] = ran.try_into().map_err(|_| "two commands ran")?;
    let (haft_ms, peer_ms) = (median(&mut haft.times), median(&mut peer.times));
    bench.table.add(Row {
        part: "sandbox",
        case: "haft sandbox -- true, recorded".to_owned(),
        haft_ms,
        peer: "bwrap".to_owned(),
        peer_ms: Some(peer_ms),
        ratio: Some(haft_ms / peer_ms),
        haft_peak_kib: Some(haft.peak_kib),
        peer_peak_kib: Some(peer.peak_kib),
    });
    Ok(())
}

fn many_files(bench: &mut Bench, tokio: &tokio::runtime::Runtime) -> Done {
    let place = Place::new()?;
    let (mut held, mut alone) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        for (times, with) in [(&mut held, true), (&mut alone, false)] {
            let time = if with { place.held(tokio, FILES)? } else { place.alone(FILES)? };
            times.push(time);
            std::fs::remove_dir_all(place.folder.path().join("new")).map_err(|error| error.to_string())?;
        }
    }
    add(bench, "20,000 small files made", "bash", &mut held, &mut alone);
    Ok(())
}

fn checkout(bench: &mut Bench, tokio: &tokio::runtime::Runtime) -> Done {
    let place = Place::new()?;
    place.alone(&format!(
        "git init -q . && git config user.email a@b && git config user.name n && mkdir -p d/{{0..29}} && \
         for i in {{1..{CHECKOUT}}}; do echo \"one $i\" > d/$((i % 30))/f$i; done && git add -A && git commit -qm one && \
         git branch one && for i in {{1..{CHECKOUT}}}; do echo \"two $i\" > d/$((i % 30))/f$i; done && \
         git commit -qam two && git branch two"
    ))?;
    let (mut held, mut alone) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        held.push(place.held(tokio, "git checkout -q one")?);
        alone.push(place.alone("git checkout -q two")?);
        alone.push(place.alone("git checkout -q one")?);
        held.push(place.held(tokio, "git checkout -q two")?);
    }
    add(bench, "git checkout of 3,000 files", "git", &mut held, &mut alone);
    Ok(())
}

/// A build of one of Haft's own crates with all that it needs.
fn build(bench: &mut Bench, tokio: &tokio::runtime::Runtime) -> Done {
    let place = Place::new()?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no root")?;
    let copy = format!("cp -r {0}/Cargo.toml {0}/Cargo.lock {0}/crates {0}/xtask .", root.display());
    place.alone(&copy)?;
    let (mut held, mut alone) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        for (times, with) in [(&mut held, true), (&mut alone, false)] {
            place.alone("rm -rf target")?;
            let command = "CARGO_TARGET_DIR=target cargo build -q --offline -p haft-tool 2>&1";
            times.push(if with { place.held(tokio, command)? } else { place.alone(command)? });
        }
    }
    add(bench, "cargo build of haft-tool", "cargo", &mut held, &mut alone);
    Ok(())
}
