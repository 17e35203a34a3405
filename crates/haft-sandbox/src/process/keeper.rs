//! The keeper: adopts what the command leaves behind and ends it.
//!
//! Runs in a fork of Haft that never executes a program: no allocation, no lock, no panic, only system calls. Every
//! signal is held back but SIGCHLD, which gets through while it waits; so nothing but SIGKILL ends it early.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};

use super::report::{Ask, Ended, Report};
use super::sys;

/// How long what outlives its command may take to end by itself, like the `tee` of `make > >(tee log)`.
const SETTLE: Duration = Duration::from_millis(50);
/// How long a process may take to obey SIGTERM.
const GRACE: Duration = Duration::from_millis(200);
/// How long to look again for orphans that a SIGKILL has set free, should no SIGCHLD say so.
const AGAIN: Duration = Duration::from_millis(20);
/// How long SIGKILL may show no effect at all before the rest is reported as surviving.
const HOPELESS: Duration = Duration::from_secs(5);

/// Whether orphans become the keeper's children, so that it sees them all and hears of their ends.
const ADOPTS: bool = cfg!(target_os = "linux");

/// Where the tree stands on its way to the end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The command runs.
    Running,
    /// The command has ended; others may do so until then.
    Settling(Instant),
    /// All were sent SIGTERM, and may obey until then.
    Ending(Instant),
    /// All are sent SIGKILL; if none ends until then, that is given up.
    Killing(Instant),
}

/// Keeps the tree until all of it is gone, reports and exits.
pub(super) fn keep(command: Pid, control: BorrowedFd<'_>, report: BorrowedFd<'_>, terminal: bool) -> ! {
    let mut keeper = Keeper {
        command,
        terminal,
        control: Some(control),
        status: None,
        asked: None,
        left_behind: 0,
        phase: Phase::Running,
        told: Groups::new(),
    };
    let survivors = keeper.until_all_are_gone();
    let ended = Ended {
        status: keeper.status.unwrap_or(libc::SIGKILL),
        asked: keeper.asked,
        left_behind: keeper.left_behind,
        survivors,
    };
    // If nobody reads it, nobody is left to tell.
    let _ = rustix::io::write(report, &Report::Ended(ended).to_bytes());
    sys::exit(0)
}

struct Keeper<'a> {
    command: Pid,
    /// Whether the command has the terminal: nobody could make it go on if it were stopped there.
    terminal: bool,
    /// None once Haft has gone.
    control: Option<BorrowedFd<'a>>,
    /// The command's wait status, once it has ended.
    status: Option<i32>,
    /// What Haft asked for while the command still ran.
    asked: Option<Ask>,
    left_behind: u32,
    phase: Phase,
    /// Who was sent SIGTERM already: a second one makes some programs skip their cleaning up.
    told: Groups,
}

impl Keeper<'_> {
    /// Returns how many could not be ended.
    fn until_all_are_gone(&mut self) -> u32 {
        while self.reap() {
            self.move_on();
            match self.phase {
                Phase::Running | Phase::Settling(_) => {}
                Phase::Ending(_) => self.signal_terminate(),
                Phase::Killing(until) if Instant::now() >= until => return count_children(),
                Phase::Killing(_) => self.signal_kill(),
            }
            if sys::wait(self.control, self.patience()) {
                self.listen();
            }
        }
        0
    }

    /// Collects the dead; false when nobody is left.
    fn reap(&mut self) -> bool {
        loop {
            let stopped = if self.terminal { WaitOptions::UNTRACED } else { WaitOptions::empty() };
            match rustix::process::wait(WaitOptions::NOHANG | stopped) {
                Ok(Some((child, status))) if status.stopped() => {
                    let _ = rustix::process::kill_process_group(child, Signal::CONT);
                    let _ = rustix::process::kill_process(child, Signal::CONT);
                }
                Ok(Some((child, status))) if child == self.command => self.status = Some(status.as_raw()),
                Ok(Some(_)) => {
                    let by_us = matches!(self.phase, Phase::Ending(_) | Phase::Killing(_));
                    if by_us && self.status.is_some() {
                        self.left_behind = self.left_behind.saturating_add(1);
                    }
                }
                Ok(None) => return true,
                Err(Errno::INTR) => continue,
                Err(_) => return self.has_strangers(),
            }
            if let Phase::Killing(until) = &mut self.phase {
                *until = after(HOPELESS);
            }
        }
    }

    /// Whether there are processes to end that are not the keeper's children: the rest of the command's group, where
    /// orphans are not adopted.
    fn has_strangers(&self) -> bool {
        !ADOPTS && rustix::process::test_kill_process_group(self.command).is_ok()
    }

    /// Takes the next step when its time has come.
    fn move_on(&mut self) {
        let now = Instant::now();
        self.phase = match self.phase {
            Phase::Running | Phase::Settling(_) | Phase::Ending(_) if self.control.is_none() => {
                Phase::Killing(after(HOPELESS))
            }
            Phase::Running | Phase::Settling(_) if self.asked.is_some() => Phase::Ending(after(GRACE)),
            Phase::Running if self.status.is_some() => Phase::Settling(after(SETTLE)),
            Phase::Settling(until) if now >= until => {
                if !ADOPTS {
                    // Strangers' ends are not seen, so they cannot be counted; there is one at least.
                    self.left_behind = self.left_behind.max(1);
                }
                Phase::Ending(after(GRACE))
            }
            Phase::Ending(until) if now >= until => Phase::Killing(after(HOPELESS)),
            phase => phase,
        };
    }

    /// How long to wait if nothing happens.
    fn patience(&self) -> Option<Duration> {
        match self.phase {
            Phase::Running => None,
            Phase::Settling(until) | Phase::Ending(until) => {
                Some(until.saturating_duration_since(Instant::now()))
            }
            Phase::Killing(_) => Some(AGAIN),
        }
    }

    /// Hears what Haft asks, or that it is gone.
    fn listen(&mut self) {
        let Some(control) = self.control else { return };
        let mut byte = [0];
        match rustix::io::read(control, &mut byte) {
            Ok(0) => self.control = None,
            Ok(_) if self.status.is_none() && self.asked.is_none() => self.asked = Ask::from_byte(byte[0]),
            Ok(_) => {
                if let Phase::Settling(until) = &mut self.phase {
                    *until = Instant::now();
                }
            }
            Err(_) => {}
        }
    }

    fn signal_terminate(&mut self) {
        let mut told = self.told;
        self.signal(Signal::TERM, &mut told);
        self.told = told;
    }

    fn signal_kill(&self) {
        self.signal(Signal::KILL, &mut Groups::new());
    }

    /// Sends `signal` to every child and its whole group, but not to a group that is in `told`.
    ///
    /// A signal to a group reaches all of it at once, so not even a fork bomb outruns it. The command and its
    /// descendants are in groups of their own making: none of them can join one that is outside of the tree.
    fn signal(&self, signal: Signal, told: &mut Groups) {
        // Never the keeper's own group: with a terminal it is also Haft's.
        let own = rustix::process::getpgrp();
        let listed = each_child(|child| match rustix::process::getpgid(Some(child)) {
            Ok(group) if group != own => {
                if told.add(group) {
                    let _ = rustix::process::kill_process_group(group, signal);
                }
            }
            _ => {
                let _ = rustix::process::kill_process(child, signal);
            }
        });
        if !listed && told.add(self.command) {
            // Between its fork and its own group there is only the command itself to reach.
            if rustix::process::kill_process_group(self.command, signal).is_err() && self.status.is_none() {
                let _ = rustix::process::kill_process(self.command, signal);
            }
        }
    }
}

/// A few process groups, remembered without allocating. What does not fit is forgotten, and then told twice.
#[derive(Clone, Copy)]
struct Groups {
    members: [Option<Pid>; 64],
}

impl Groups {
    fn new() -> Self {
        Self { members: [None; 64] }
    }

    /// Whether `group` was not there yet.
    fn add(&mut self, group: Pid) -> bool {
        for member in &mut self.members {
            match *member {
                Some(known) if known == group => return false,
                Some(_) => {}
                None => {
                    *member = Some(group);
                    return true;
                }
            }
        }
        true
    }
}

/// Calls `found` with each child of this process; false if the system does not list them.
///
/// The command's orphans are among them, because the keeper is their subreaper.
#[cfg(target_os = "linux")]
fn each_child(mut found: impl FnMut(Pid)) -> bool {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let Ok(list) = rustix::fs::open(c"/proc/thread-self/children", flags, Mode::empty()) else {
        return false;
    };
    let mut buffer = [0; 4096];
    let mut number = 0_i32;
    loop {
        match rustix::io::read(&list, &mut buffer) {
            Ok(0) => break,
            Ok(length) => {
                for byte in buffer.iter().take(length) {
                    if byte.is_ascii_digit() {
                        number = number.wrapping_mul(10).wrapping_add(i32::from(byte - b'0'));
                    } else if let Some(child) = Pid::from_raw(std::mem::take(&mut number)) {
                        found(child);
                    }
                }
            }
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
    true
}

#[cfg(not(target_os = "linux"))]
fn each_child(_found: impl FnMut(Pid)) -> bool {
    false
}

/// At least one, for this is only asked while there are children.
fn count_children() -> u32 {
    let mut count = 0_u32;
    each_child(|_| count = count.saturating_add(1));
    count.max(1)
}

fn after(duration: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(duration).unwrap_or(now)
}
