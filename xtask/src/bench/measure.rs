//! Timing whole commands with their peak memory, and the table of results.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Serialize;

/// One comparison.
#[derive(Debug, Default, Serialize)]
pub(super) struct Row {
    pub(super) part: &'static str,
    pub(super) case: String,
    pub(super) haft_ms: f64,
    pub(super) peer: String,
    pub(super) peer_ms: Option<f64>,
    pub(super) ratio: Option<f64>,
    pub(super) haft_peak_kib: Option<i64>,
    pub(super) peer_peak_kib: Option<i64>,
}

impl Row {
    pub(super) fn new(part: &'static str, case: &str, haft_ms: f64, peer: &str, peer_ms: f64) -> Self {
        let (case, peer) = (case.to_owned(), peer.to_owned());
        Self {
            part,
            case,
            haft_ms,
            peer,
            peer_ms: Some(peer_ms),
            ratio: Some(haft_ms / peer_ms),
            ..Self::default()
        }
    }

    pub(super) fn with_peaks(mut self, haft_kib: Option<i64>, peer_kib: Option<i64>) -> Self {
        (self.haft_peak_kib, self.peer_peak_kib) = (haft_kib, peer_kib);
        self
    }

    fn line(&self) -> String {
        let mib = |kib: Option<i64>| kib.map(|kib| format!("{}.{}", kib / 1024, kib % 1024 * 10 / 1024));
        let peaks: Vec<String> =
            [self.haft_peak_kib, self.peer_peak_kib].into_iter().filter_map(mib).collect();
        format!(
            "{:<9} {:<34} {:>10}  {:<14} {:>10} {:>6}  {:>14}",
            self.part,
            self.case,
            time(self.haft_ms),
            self.peer,
            self.peer_ms.map(time).unwrap_or_default(),
            self.ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
            peaks.join(" / "),
        )
    }
}

#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) rows: Vec<Row>,
}

impl Table {
    pub(super) fn add(&mut self, row: Row) {
        println!("{}", row.line());
        self.rows.push(row);
    }

    pub(super) fn print(&self) {
        println!(
            "\n{:<9} {:<34} {:>10}  {:<14} {:>10} {:>6}  {:>14}",
            "part", "case", "haft", "peer", "peer", "ratio", "peak MiB"
        );
        for row in &self.rows {
            println!("{}", row.line());
        }
    }
}

fn time(ms: f64) -> String {
    if ms < 1.0 { format!("{:.1} µs", ms * 1e3) } else { format!("{ms:.2} ms") }
}

/// The median of some durations, in milliseconds.
pub(super) fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).map_or(0.0, Duration::as_secs_f64) * 1e3
}

/// The measurements of one command.
pub(super) struct Timings {
    pub(super) median_ms: f64,
    pub(super) peak_kib: i64,
}

/// Runs the commands in turns, `rounds` times each after one warm-up, with their output in a file on memory.
pub(super) fn alternate<const N: usize>(
    rounds: usize,
    commands: &mut [&mut Command; N],
) -> Result<[Timings; N], String> {
    let mut times = [const { Vec::new() }; N];
    let mut peaks = [0; N];
    for round in 0..=rounds {
        // The first of a round pays for cold caches, so the order alternates.
        let order: Vec<usize> = if round % 2 == 0 { (0..N).collect() } else { (0..N).rev().collect() };
        for at in order {
            let (time, peak) = once(commands[at])?;
            if round > 0 {
                times[at].push(time);
                peaks[at] = peak.max(peaks[at]);
            }
        }
    }
    Ok(std::array::from_fn(|at| Timings { median_ms: median(&mut times[at]), peak_kib: peaks[at] }))
}

pub(super) fn once(command: &mut Command) -> Result<(Duration, i64), String> {
    let memory = Path::new("/dev/shm");
    let directory = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let out = File::create(directory.join(format!("haft-bench-{}.out", std::process::id())))
        .map_err(|error| error.to_string())?;
    command.stdout(out).stderr(Stdio::null()).stdin(Stdio::null());
    let start = Instant::now();
    let child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
    let (status, peak) = wait(child.id())?;
    let time = start.elapsed();
    // Ripgrep exits with 1 for "nothing found".
    if libc::WIFEXITED(status) && libc::WEXITSTATUS(status) <= 1 {
        Ok((time, peak))
    } else {
        Err(format!("{command:?} ended with {status}"))
    }
}

/// Waits for a child and returns its status and its peak memory in KiB.
#[expect(unsafe_code, reason = "std has no wait4, the only way to a child's peak memory")]
fn wait(pid: u32) -> Result<(i32, i64), String> {
    let mut status = 0;
    // SAFETY: rusage consists of numbers, for which zero is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let pid = libc::pid_t::try_from(pid).map_err(|error| error.to_string())?;
    // SAFETY: both pointers are to live locals; nothing else waits for this child.
    let got = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
    if got == pid { Ok((status, usage.ru_maxrss)) } else { Err(std::io::Error::last_os_error().to_string()) }
}
