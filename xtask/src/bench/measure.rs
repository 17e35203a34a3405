//! Timing whole commands with their peak memory, and the table of results.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Serialize;

/// One comparison.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) part: &'static str,
    pub(crate) case: String,
    pub(crate) haft_ms: f64,
    pub(crate) peer: String,
    pub(crate) peer_ms: Option<f64>,
    pub(crate) ratio: Option<f64>,
    pub(crate) haft_peak_kib: Option<i64>,
    pub(crate) peer_peak_kib: Option<i64>,
}

#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) rows: Vec<Row>,
}

impl Table {
    pub(crate) fn add(&mut self, row: Row) {
        println!("{}", line(&row));
        self.rows.push(row);
    }

    pub(crate) fn print(&self) {
        println!(
            "\n{:<9} {:<34} {:>10}  {:<14} {:>10} {:>6}  {:>14}",
            "part", "case", "haft ms", "peer", "peer ms", "ratio", "peak MiB"
        );
        for row in &self.rows {
            println!("{}", line(row));
        }
    }
}

fn line(row: &Row) -> String {
    let ms = |ms: Option<f64>| ms.map(|ms| format!("{ms:.3}")).unwrap_or_default();
    let mib = |kib: Option<i64>| {
        kib.map(|kib| format!("{}.{}", kib / 1024, kib % 1024 * 10 / 1024)).unwrap_or_default()
    };
    let peaks = match (row.haft_peak_kib, row.peer_peak_kib) {
        (Some(_), Some(_)) => format!("{} / {}", mib(row.haft_peak_kib), mib(row.peer_peak_kib)),
        _ => mib(row.haft_peak_kib),
    };
    let ratio = row.ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
    format!(
        "{:<9} {:<34} {:>10.3}  {:<14} {:>10} {ratio:>6}  {peaks:>14}",
        row.part,
        row.case,
        row.haft_ms,
        row.peer,
        ms(row.peer_ms)
    )
}

/// The middle of some durations, in milliseconds.
pub(crate) fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).map_or(0.0, Duration::as_secs_f64) * 1e3
}

/// A command and what it took.
pub(crate) struct Ran {
    pub(crate) times: Vec<Duration>,
    pub(crate) peak_kib: i64,
}

/// Runs the commands in turns, `rounds` times each after one warm-up, with their output in a file on memory.
pub(crate) fn alternate(rounds: usize, commands: &mut [&mut Command]) -> Result<Vec<Ran>, String> {
    let mut ran: Vec<Ran> = commands.iter().map(|_| Ran { times: Vec::new(), peak_kib: 0 }).collect();
    for round in 0..=rounds {
        // Whoever goes first pays for a cold cache, so the order turns.
        let order: Vec<usize> =
            if round % 2 == 0 { (0..commands.len()).collect() } else { (0..commands.len()).rev().collect() };
        for at in order {
            let (time, peak) = once(commands[at])?;
            if round > 0 {
                ran[at].times.push(time);
                ran[at].peak_kib = ran[at].peak_kib.max(peak);
            }
        }
    }
    Ok(ran)
}

fn once(command: &mut Command) -> Result<(Duration, i64), String> {
    let memory = Path::new("/dev/shm");
    let directory = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let out = File::create(directory.join(format!("haft-bench-{}.out", std::process::id())))
        .map_err(|error| error.to_string())?;
    command.stdout(out).stderr(Stdio::null()).stdin(Stdio::null());
    let start = Instant::now();
    let child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
    let (status, peak) = wait(child.id())?;
    let time = start.elapsed();
    // Ripgrep says 1 for "nothing found".
    if libc::WIFEXITED(status) && libc::WEXITSTATUS(status) <= 1 {
        Ok((time, peak))
    } else {
        Err(format!("{command:?} ended with {status}"))
    }
}

/// Waits for a child and gives its peak memory in KiB, which std does not.
#[expect(unsafe_code, reason = "wait4 is the only way to a child's peak memory")]
fn wait(pid: u32) -> Result<(i32, i64), String> {
    let mut status = 0;
    // SAFETY: rusage is plain numbers, for which zero is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let pid = libc::pid_t::try_from(pid).map_err(|error| error.to_string())?;
    // SAFETY: both pointers are to live locals; the pid is a child that nobody else waits for.
    let got = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
    if got == pid { Ok((status, usage.ru_maxrss)) } else { Err(std::io::Error::last_os_error().to_string()) }
}
