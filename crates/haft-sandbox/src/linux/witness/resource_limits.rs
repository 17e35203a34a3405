//! Ends a command that uses too many processes, too much memory or too much of the disk.
//!
//! This needs no privileges and no control groups: the reaper adopts every orphan, so all processes of the command are its
//! descendants.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use haft_files::read_small_file;
use rustix::process::{Pid, Signal};

use super::caller::Caller;
use crate::limits::CommandLimits;
use crate::process::process_group;

/// How often the number of processes and the free disk space are checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(40);
/// How often memory is added up, which takes longer.
const MEMORY_CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// How often the process groups of a fork bomb are listed: it may create more meanwhile.
const MAX_KILL_ROUNDS: usize = 100;
/// A command may not leave less free disk space or memory, unless there was little from the start.
const MIN_FREE_BYTES: u64 = 512 << 20;
/// Ends the search for ancestors if the process tree changes meanwhile.
const MAX_ANCESTORS: usize = 10_000;
/// Ends the search for descendants, of which a fork bomb can have many more than are allowed.
const MAX_LISTED_PROCESSES: usize = 100_000;
/// The content of `/proc/PID/stat` is shorter.
const MAX_STAT_BYTES: usize = 2048;
/// The fields between are session, terminal, flags, faults, times and priorities.
const FIELDS_FROM_GROUP_TO_THREADS: usize = 14;
/// The unit of `st_blocks`.
const STAT_BLOCK_BYTES: u64 = 512;

/// Checks the resources of one command.
pub(super) struct ResourceMonitor {
    reaper: i32,
    next_check: Instant,
    next_memory_check: Instant,
    /// Free space when the command started, in the workspace and in memory.
    initial_free_bytes: [Option<u64>; 2],
    limits: CommandLimits,
    /// The command's own directory for shared memory.
    shared_memory: Option<OwnedFd>,
    /// Shared memory of the machine when the command started.
    initial_shared_bytes: u64,
    /// Available memory of the machine when the command started.
    initial_available_bytes: u64,
    /// Ends the command.
    kill: Box<dyn Fn() + Send>,
    /// Why the command was ended.
    pub(super) exceeded: Option<String>,
}

impl ResourceMonitor {
    /// A monitor for the descendants of `reaper`; calls `kill` when a limit is exceeded.
    pub(super) fn new(
        reaper: i32,
        limits: CommandLimits,
        shared_memory: Option<OwnedFd>,
        kill: Box<dyn Fn() + Send>,
    ) -> Self {
        let now = Instant::now();
        let (initial_shared_bytes, initial_available_bytes) = memory_of_machine().unwrap_or_default();
        Self {
            reaper,
            next_check: now + CHECK_INTERVAL,
            next_memory_check: now + MEMORY_CHECK_INTERVAL,
            initial_free_bytes: [None; 2],
            limits,
            shared_memory,
            initial_shared_bytes,
            initial_available_bytes,
            kill,
            exceeded: None,
        }
    }

    /// Whether `process` belongs to the command.
    pub(super) fn is_descendant(&self, process: i32) -> bool {
        let mut ancestor = process;
        for _ in 0..MAX_ANCESTORS {
            if ancestor == self.reaper {
                return process != self.reaper;
            }
            match parent_of(ancestor) {
                Some(parent) if parent > 1 => ancestor = parent,
                _ => return false,
            }
        }
        false
    }

    /// Whether all processes of the process group belong to the command. With a terminal, a process can join the groups of
    /// other programs.
    pub(super) fn has_group(&self, group: Pid) -> bool {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let processes = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let is_member = |process: &i32| Caller::of_process(*process).group() == Some(group);
        let mut members = processes.filter(is_member).peekable();
        members.peek().is_some() && members.all(|process| self.is_descendant(process))
    }

    /// Whether a process of the command is in the process group with this number in the command's own pid namespace.
    pub(super) fn find_group(&self, number: i32) -> bool {
        self.descendants().iter().any(|process| Caller::of_process(*process).own_group() == Some(number))
    }

    /// The process of the command that has this number in the command's own pid namespace.
    pub(super) fn find_process(&self, number: i32) -> Option<i32> {
        let has_number =
            |process: &i32| Caller::of_process(*process).own_ids().is_some_and(|ids| ids.has(number));
        self.descendants().into_iter().find(has_number)
    }

    /// Checks the limits that are due, and ends the command if it exceeds one.
    pub(super) fn check(&mut self, workspace: &Path) {
        let now = Instant::now();
        if now >= self.next_check {
            self.next_check = now + CHECK_INTERVAL;
            self.check_processes();
            self.check_disk(workspace);
        }
        if now >= self.next_memory_check {
            self.next_memory_check = now + MEMORY_CHECK_INTERVAL;
            let Some((shared, available)) = memory_of_machine() else { return };
            let used = self.used_memory(shared);
            if used > self.limits.memory_bytes {
                self.end(format!("it used more than {} MiB of memory", self.limits.memory_bytes >> 20));
            }
            if is_exhausted(available, self.initial_available_bytes) {
                self.end(format!("it left only {} MiB of the machine's memory available", available >> 20));
            }
        }
    }

    fn used_memory(&self, shared: u64) -> u64 {
        let descendants = self.descendants();
        let private: u64 = descendants.iter().map(|process| private_memory(*process)).sum();
        // It takes long to find out which shared memory is the command's, so the machine's total is checked first.
        let grown = shared.saturating_sub(self.initial_shared_bytes);
        if private + grown <= self.limits.memory_bytes {
            return private;
        }
        if have_descriptors_in_flight(&descendants) {
            return private + grown;
        }
        let in_files = self.shared_memory.as_ref().and_then(|dir| rustix::fs::fstatvfs(dir).ok());
        let in_files =
            in_files.map_or(0, |stat| (stat.f_blocks - stat.f_bfree).saturating_mul(stat.f_frsize));
        // Memory that processes share is counted several times, but there is not more of it than was added since the start.
        private + (in_files + shared_memory_of(&descendants)).min(grown)
    }

    fn check_disk(&mut self, workspace: &Path) {
        // The commands' home is in memory.
        for (index, path) in [workspace, Path::new("/dev/shm")].into_iter().enumerate() {
            let Ok(stat) = rustix::fs::statvfs(path) else { continue };
            let free = stat.f_bavail.saturating_mul(stat.f_frsize);
            let initial = *self.initial_free_bytes[index].get_or_insert(free);
            if is_exhausted(free, initial) {
                self.end(format!("it left only {} MiB free in {}", free >> 20, path.display()));
            }
        }
    }

    /// Kills a fork bomb at once: asking the reaper to end it would take too long.
    fn check_processes(&mut self) {
        // Counting descendants is slow when there are many, so the machine's total is checked first. An earlier total would be
        // of no use: another fork bomb may have been running then.
        let allowed = self.limits.processes;
        if count_all_processes() < allowed {
            return;
        }
        let mut processes = self.listed_processes();
        let count: usize = processes.iter().map(|process| process.threads).sum();
        if count < allowed {
            return;
        }
        // Starts with Haft's own group, which is never killed. No process outlives the signal to its group, but thousands take
        // a while to end.
        let mut signalled: HashSet<Pid> = process_group(None).into_iter().collect();
        for _ in 0..MAX_KILL_ROUNDS {
            let groups = processes.iter().filter_map(|process| Pid::from_raw(process.group.max(0)));
            let new: HashSet<_> = groups.filter(|group| !signalled.contains(group)).collect();
            if new.is_empty() {
                break;
            }
            for group in &new {
                let _ = rustix::process::kill_process_group(*group, Signal::KILL);
            }
            signalled.extend(new);
            processes = self.listed_processes();
        }
        self.end(format!("it had {count} processes and threads; {allowed} are allowed"));
    }

    /// Every descendant of the reaper, from a single pass over all processes, because a fork bomb goes on creating more.
    fn listed_processes(&self) -> Vec<ListedProcess> {
        let mut by_parent: HashMap<i32, Vec<ListedProcess>> = HashMap::new();
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten().take(MAX_LISTED_PROCESSES);
        for process in entries.filter_map(|entry| ListedProcess::read(entry.file_name().to_str()?)) {
            by_parent.entry(process.parent).or_default().push(process);
        }
        let (mut found, mut todo) = (Vec::new(), vec![self.reaper]);
        while let Some(parent) = todo.pop() {
            for process in by_parent.remove(&parent).into_iter().flatten() {
                todo.push(process.number);
                found.push(process);
            }
        }
        found
    }

    /// Ends the command.
    pub(super) fn end(&mut self, reason: String) {
        self.exceeded.get_or_insert(reason);
        (self.kill)();
    }

    /// Every descendant of the reaper, up to a bound.
    fn descendants(&self) -> Vec<i32> {
        let mut found = Vec::new();
        let mut todo = vec![self.reaper];
        while let Some(process) = todo.pop() {
            for child in children_of(process) {
                found.push(child);
                todo.push(child);
            }
            if found.len() > MAX_LISTED_PROCESSES {
                break;
            }
        }
        found
    }
}

/// A process as described by `/proc/PID/stat`.
struct ListedProcess {
    number: i32,
    parent: i32,
    group: i32,
    threads: usize,
}

impl ListedProcess {
    fn read(number: &str) -> Option<Self> {
        let parsed = number.parse().ok()?;
        let mut buffer = [0; MAX_STAT_BYTES];
        let stat = read_small_file(&format!("/proc/{number}/stat"), &mut buffer)?;
        // The name may contain parentheses; the fields follow the last one.
        let fields = &stat[stat.iter().rposition(|byte| *byte == b')')? + 1..];
        let mut fields = std::str::from_utf8(fields).ok()?.split_ascii_whitespace();
        let parent = fields.nth(1)?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let threads = fields.nth(FIELDS_FROM_GROUP_TO_THREADS)?.parse().ok()?;
        Some(Self { number: parsed, parent, group, threads })
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

/// Processes and threads of the whole machine.
fn count_all_processes() -> usize {
    /// Index of the total in `0.20 0.18 0.12 1/80 11206`, split at spaces and slashes.
    const TOTAL_OFFSET: usize = 4;
    let mut buffer = [0; 128];
    let load = read_small_file("/proc/loadavg", &mut buffer).and_then(|load| std::str::from_utf8(load).ok());
    load.unwrap_or_default()
        .split([' ', '/'])
        .nth(TOTAL_OFFSET)
        .and_then(|total| total.parse().ok())
        .unwrap_or(0)
}

fn parent_of(process: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// Shared memory that processes have mapped or open.
fn shared_memory_of(processes: &[i32]) -> u64 {
    let mut files = HashMap::new();
    let mut mapped = 0;
    for process in processes {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        mapped += status_bytes(&status, "RssShmem:");
        for entry in fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten() {
            let is_memory =
                fs::read_link(entry.path()).is_ok_and(|name| name.to_string_lossy().starts_with("/memfd:"));
            if is_memory && let Ok(stat) = rustix::fs::stat(entry.path()) {
                files.insert(
                    (stat.st_dev, stat.st_ino),
                    u64::try_from(stat.st_blocks).unwrap_or(0) * STAT_BLOCK_BYTES,
                );
            }
        }
    }
    mapped + files.values().sum::<u64>()
}

/// Shared and available memory of the whole machine; `None` if it cannot be read, for want of descriptors, for example.
fn memory_of_machine() -> Option<(u64, u64)> {
    let memory = fs::read_to_string("/proc/meminfo").ok()?;
    Some((status_bytes(&memory, "Shmem:"), status_bytes(&memory, "MemAvailable:")))
}

fn first_number(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// Resident memory that is not shared, and page tables, of which even an untouched mapping can have many.
fn private_memory(process: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status_bytes(&status, "RssAnon:") + status_bytes(&status, "VmPTE:")
}

/// A field of `/proc/PID/status` or `/proc/meminfo`, converted from kilobytes.
fn status_bytes(status: &str, field: &str) -> u64 {
    let kilobytes = status.lines().find_map(|line| line.strip_prefix(field));
    kilobytes.and_then(first_number).unwrap_or(0) * 1024
}

/// Whether processes have sent descriptors that were not received yet. Memory behind these is in no list of open files.
fn have_descriptors_in_flight(processes: &[i32]) -> bool {
    processes.iter().any(|process| {
        let sockets = fs::read_dir(format!("/proc/{process}/fdinfo")).into_iter().flatten().flatten();
        sockets.filter_map(|entry| fs::read_to_string(entry.path()).ok()).any(|info| {
            let count = info.lines().find_map(|line| line.strip_prefix("scm_fds:"));
            count.and_then(first_number).is_some_and(|count| count > 0)
        })
    })
}

/// Whether too little is free, and a command is likely to be the reason.
fn is_exhausted(free: u64, initial: u64) -> bool {
    free < MIN_FREE_BYTES && free < initial / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_in_flight_are_seen() {
        let (first, second) = rustix::net::socketpair(
            rustix::net::AddressFamily::UNIX,
            rustix::net::SocketType::STREAM,
            rustix::net::SocketFlags::CLOEXEC,
            None,
        )
        .unwrap();
        let child = std::process::Command::new("sleep").arg("1000").stdin(second).spawn();
        let mut child = child.unwrap();
        let id = [i32::try_from(child.id()).unwrap()];
        assert!(!have_descriptors_in_flight(&id));
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = rustix::net::SendAncillaryBuffer::new(&mut space);
        let sent = [std::os::fd::AsFd::as_fd(&first)];
        assert!(control.push(rustix::net::SendAncillaryMessage::ScmRights(&sent)));
        let bytes = [std::io::IoSlice::new(b"x")];
        rustix::net::sendmsg(&first, &bytes, &mut control, rustix::net::SendFlags::empty()).unwrap();
        assert!(have_descriptors_in_flight(&id));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn processes_are_read_with_their_parents_groups_and_threads() {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || stopped.recv());
        let own = ListedProcess::read(&std::process::id().to_string()).unwrap();
        assert_eq!(Some(own.parent), rustix::process::getppid().map(|parent| parent.as_raw_nonzero().get()));
        let group = process_group(None).map_or(0, |group| group.as_raw_nonzero().get());
        assert_eq!(own.group, group);
        assert!(own.threads > 1, "{}", own.threads);
        drop(stop);
        assert!(thread.join().unwrap().is_err());
        assert!(ListedProcess::read("self").is_none() && ListedProcess::read("0").is_none());
    }

    #[test]
    fn memory_that_was_scarce_from_the_start_ends_no_command() {
        assert!(is_exhausted(MIN_FREE_BYTES - 1, 4 * MIN_FREE_BYTES));
        assert!(!is_exhausted(MIN_FREE_BYTES, 4 * MIN_FREE_BYTES));
        assert!(!is_exhausted(MIN_FREE_BYTES / 2, MIN_FREE_BYTES));
        assert_eq!(status_bytes("RssAnon:\t     12 kB\nVmPTE:\t 4 kB\n", "VmPTE:"), 4096);
    }
}
