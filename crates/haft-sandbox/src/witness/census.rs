//! How many processes a command has, how much memory they hold and how full the disk gets.
//!
//! Needs no privileges and no control groups: the keeper adopts every orphan, so all of the command's processes are
//! found below it.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use haft_tool::lock;

use crate::sandbox::Limits;
use haft_files::read_small_file;

/// How many processes and threads a command may have at once.
const MOST: usize = 2_000;
/// How often processes are counted and the disk is measured, which costs next to nothing.
const COUNT: Duration = Duration::from_millis(40);
/// How often all are killed that were found, until none is.
const MOST_ROUNDS: usize = 100;
/// How long a command runs before anybody counts.
const FIRST: Duration = Duration::from_millis(200);
/// How often is counted afterwards.
const OFTEN: Duration = Duration::from_millis(200);
/// What a command leaves of a disk, at least.
const LEAST_FREE: u64 = 512 << 20;

/// Why a command was ended.
pub(crate) type Verdict = Arc<Mutex<Option<String>>>;

pub(super) struct Census {
    keeper: i32,
    next: Instant,
    next_count: Instant,
    /// How many processes and threads the machine had when the command started.
    at_start: usize,
    most_memory: u64,
    free_at_start: Option<u64>,
    verdict: Verdict,
    end: Box<dyn Fn() + Send>,
}

impl Census {
    /// Counts what is below `keeper`; calls `end` when it is too much.
    pub(super) fn new(keeper: i32, verdict: Verdict, end: Box<dyn Fn() + Send>) -> Self {
        let (most_memory, next) = (Limits::default().memory, Instant::now() + COUNT);
        let (next_count, next) = (next, next + FIRST);
        Self {
            keeper,
            next,
            next_count,
            at_start: machine_total(),
            most_memory,
            free_at_start: None,
            verdict,
            end,
        }
    }

    pub(super) fn has(&self, process: i32) -> bool {
        // Up the line of parents is shorter than down all the children.
        let mut at = process;
        for _ in 0..10_000 {
            if at == self.keeper {
                return process != self.keeper;
            }
            match parent_of(at) {
                Some(parent) if parent > 1 => at = parent,
                _ => return false,
            }
        }
        false
    }

    pub(super) fn has_group(&self, group: i32) -> bool {
        let Some(pid) = rustix::process::Pid::from_raw(group) else { return false };
        self.has(group)
            || self.members().iter().any(|process| {
                let process = rustix::process::Pid::from_raw(*process);
                rustix::process::getpgid(process).is_ok_and(|its| its == pid)
            })
    }

    /// Looks at processes, memory and disk when it is time to, and ends the command if it uses up any of them.
    pub(super) fn look(&mut self, workspace: &Path) {
        let now = Instant::now();
        if now >= self.next_count {
            self.next_count = now + COUNT;
            self.count();
            self.measure(workspace);
        }
        if now < self.next {
            return;
        }
        self.next = now + OFTEN;
        let held: u64 = self.members().iter().map(|process| memory_of(*process)).sum();
        if held > self.most_memory {
            let most = self.most_memory >> 20;
            self.condemn(format!("its processes held more than {most} MiB of memory"));
        }
    }

    /// Ends a command that fills the disk, soon: a fast disk is full in a moment.
    fn measure(&mut self, workspace: &Path) {
        let Ok(stat) = rustix::fs::statvfs(workspace) else { return };
        let free = stat.f_bavail.saturating_mul(stat.f_frsize);
        let start = *self.free_at_start.get_or_insert(free);
        if free < LEAST_FREE && free < start / 2 {
            self.condemn(format!("it left only {} MiB free on the disk", free >> 20));
        }
    }

    /// Ends a command that has too many processes, at once: in a moment there would be twice as many.
    fn count(&self) {
        // Counting the command's own takes long when there are many, so the machine's number is asked first.
        if machine_total() < self.at_start + MOST {
            return;
        }
        let members = self.members();
        let count: usize = members.iter().map(|process| threads_of(*process)).sum();
        if count < MOST {
            return;
        }
        self.condemn(format!("it had {count} processes and threads, and may have {MOST}"));
        let own = rustix::process::getpgrp();
        for _ in 0..MOST_ROUNDS {
            let groups: HashSet<_> = self
                .members()
                .into_iter()
                .filter_map(|process| rustix::process::getpgid(rustix::process::Pid::from_raw(process)).ok())
                .filter(|group| *group != own)
                .collect();
            if groups.is_empty() {
                return;
            }
            for group in groups {
                let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            }
        }
    }

    fn condemn(&self, why: String) {
        lock(&self.verdict).get_or_insert(why);
        (self.end)();
    }

    /// Every process below the keeper.
    fn members(&self) -> Vec<i32> {
        let mut found = Vec::new();
        let mut open = vec![self.keeper];
        while let Some(process) = open.pop() {
            for child in children_of(process) {
                found.push(child);
                open.push(child);
            }
            if found.len() > 2 * MOST {
                break;
            }
        }
        found
    }
}

fn children_of(process: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    let mut children = Vec::new();
    for thread in threads.flatten() {
        let Ok(list) = fs::read_to_string(thread.path().join("children")) else { continue };
        children.extend(list.split_ascii_whitespace().filter_map(|child| child.parse::<i32>().ok()));
    }
    children
}

fn threads_of(process: i32) -> usize {
    fs::read_dir(format!("/proc/{process}/task")).map_or(0, Iterator::count)
}

/// How many processes and threads the whole machine has.
fn machine_total() -> usize {
    let mut load = [0; 128];
    let load = read_small_file("/proc/loadavg", &mut load).and_then(|load| std::str::from_utf8(load).ok());
    load.unwrap_or_default().split([' ', '/']).nth(4).and_then(|total| total.parse().ok()).unwrap_or(0)
}

fn parent_of(process: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

fn memory_of(process: i32) -> u64 {
    let Ok(statm) = fs::read_to_string(format!("/proc/{process}/statm")) else { return 0 };
    let mut pages = statm.split_ascii_whitespace().skip(1).map(|pages| pages.parse::<u64>().unwrap_or(0));
    let (resident, shared) = (pages.next().unwrap_or(0), pages.next().unwrap_or(0));
    resident.saturating_sub(shared) * 4096
}
