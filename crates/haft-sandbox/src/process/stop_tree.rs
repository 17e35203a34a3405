//! Stops all processes of a command for a while.

#[cfg(target_os = "linux")]
use std::collections::{HashMap, HashSet};
#[cfg(target_os = "linux")]
use std::time::{Duration, Instant};

use rustix::process::Pid;
#[cfg(target_os = "linux")]
use rustix::process::Signal;

use crate::terminal::StoppedTree;

/// How long it may take to stop them all. Those that fork meanwhile are found in the next round.
#[cfg(target_os = "linux")]
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// The processes of a command cannot be listed reliably, so that none is stopped.
#[cfg(not(target_os = "linux"))]
pub(crate) fn stop_tree(reaper: Pid) -> StoppedTree {
    StoppedTree { reaper, processes: Vec::new(), is_complete: false }
}

/// Stops the reaper, which otherwise would tell that the command was stopped, and then its descendants, until none of them
/// runs.
#[cfg(target_os = "linux")]
pub(crate) fn stop_tree(reaper: Pid) -> StoppedTree {
    let mut tree = StoppedTree { reaper, processes: Vec::new(), is_complete: false };
    let _ = rustix::process::kill_process(reaper, Signal::STOP);
    let start = Instant::now();
    while start.elapsed() < STOP_TIMEOUT {
        let running = running_descendants(reaper);
        // What is blocked in the kernel stops before it runs again.
        let is_stopping = |(pid, state): &(Pid, u8)| *state == b'D' && tree.processes.contains(pid);
        if running.iter().all(is_stopping) {
            tree.is_complete = true;
            break;
        }
        for (pid, _) in running {
            if rustix::process::kill_process(pid, Signal::STOP).is_ok() && !tree.processes.contains(&pid) {
                tree.processes.push(pid);
            }
        }
        std::thread::yield_now();
    }
    tree
}

/// The descendants of a process that are neither stopped nor dead, with the letters of their states.
#[cfg(target_os = "linux")]
fn running_descendants(top: Pid) -> Vec<(Pid, u8)> {
    let mut children: HashMap<i32, Vec<(i32, u8)>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some((state, parent)) =
            std::fs::read(entry.path().join("stat")).ok().and_then(|stat| parse(&stat))
        {
            children.entry(parent).or_default().push((pid, state));
        }
    }
    let (mut running, mut seen, mut todo) = (Vec::new(), HashSet::new(), vec![top.as_raw_nonzero().get()]);
    while let Some(parent) = todo.pop() {
        for (pid, state) in children.get(&parent).into_iter().flatten() {
            if seen.insert(*pid) {
                todo.push(*pid);
                let is_running = !matches!(state, b'T' | b't' | b'Z' | b'X');
                running.extend(Pid::from_raw(*pid).filter(|_| is_running).map(|pid| (pid, *state)));
            }
        }
    }
    running
}

/// State and parent of a process. The name may contain parentheses; they follow the last one.
#[cfg(target_os = "linux")]
fn parse(stat: &[u8]) -> Option<(u8, i32)> {
    let name_end = stat.iter().rposition(|&byte| byte == b')')?;
    let mut fields = stat[name_end + 1..].split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let state = *fields.next()?.first()?;
    Some((state, std::str::from_utf8(fields.next()?).ok()?.parse().ok()?))
}
