//! The reaper: adopts orphans of the command and ends the whole process tree.
//!
//! Runs in a fork of Haft that never executes a program: no allocation, no lock, no panic, only system calls. Every
//! signal is blocked but SIGCHLD, which is unblocked while it waits; so only SIGKILL ends it early.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::fs::{Timespec, Timestamps, UTIME_NOW};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};

use super::report::{CONTINUE_CODE, ReaperReport, StopReason, TreeEnd};
use super::sys;
use super::sys::process_group;

/// How long descendants may outlive the command before they are ended, like the `tee` of `make > >(tee log)`.
const SETTLE_TIME: Duration = Duration::from_millis(50);
/// How long a process may take to end after SIGTERM.
const TERM_GRACE_PERIOD: Duration = Duration::from_millis(200);
/// How often children are listed and signalled while the tree is ended: at each end of a child it would take far too long for
/// thousands, and orphans may be adopted without a SIGCHLD.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(20);
/// How long SIGKILL may show no effect before the rest is reported as survivors.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// How many process groups are remembered as signalled.
const MAX_GROUPS: usize = 64;

/// Whether orphans become children of the reaper, so that it sees all of them end.
const IS_SUBREAPER: bool = cfg!(target_os = "linux");

/// The stages of a tree's life.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The command runs.
    Running,
    /// The command has ended; descendants may end by themselves until then.
    Settling(Instant),
    /// SIGTERM was sent; the tree may end until then.
    Terminating(Instant),
    /// SIGKILL is sent repeatedly; given up if nothing ends until then.
    Killing(Instant),
}

/// Waits until the whole tree has ended, ends it if necessary, reports and exits. If Haft has died, the time of `spool` is set
/// instead: what changes later is not the command's.
pub(super) fn run(
    command: Pid,
    control: BorrowedFd<'_>,
    report: BorrowedFd<'_>,
    has_terminal: bool,
    spool: Option<BorrowedFd<'_>>,
) -> ! {
    let mut reaper = Reaper {
        command,
        has_terminal,
        control: Some(control),
        report,
        status: None,
        stopped: None,
        left_behind: 0,
        phase: Phase::Running,
        terminated: GroupSet::new(),
        next_signal: Instant::now(),
    };
    let survivors = reaper.run_to_end();
    if let Some(spool) = spool.filter(|_| reaper.control.is_none()) {
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        // Without it, changes of others count as conflicts, or as the command's.
        let _ = rustix::fs::futimens(spool, &times);
    }
    let end = TreeEnd {
        status: reaper.status.unwrap_or(libc::SIGKILL),
        stopped: reaper.stopped,
        left_behind: reaper.left_behind,
        survivors,
    };
    // Fails only if Haft is gone.
    let _ = rustix::io::write(report, &ReaperReport::Ended(end).to_bytes());
    sys::exit(0)
}

struct Reaper<'a> {
    command: Pid,
    /// Whether the command was given the terminal. Then it can be stopped there, and no shell knows it.
    has_terminal: bool,
    /// `None` once Haft has closed its end.
    control: Option<BorrowedFd<'a>>,
    report: BorrowedFd<'a>,
    /// The command's wait status, once it has ended.
    status: Option<i32>,
    /// What Haft asked for while the command was running.
    stopped: Option<StopReason>,
    left_behind: u32,
    phase: Phase,
    /// Groups that got SIGTERM already: a second one makes some programs skip their cleanup.
    terminated: GroupSet,
    /// When the children are signalled next, in the phases that do.
    next_signal: Instant,
}

impl Reaper<'_> {
    /// Returns how many processes could not be ended.
    fn run_to_end(&mut self) -> u32 {
        while self.reap() {
            self.advance();
            let now = Instant::now();
            match self.phase {
                Phase::Killing(until) if now >= until => return count_children(),
                Phase::Terminating(_) | Phase::Killing(_) if now >= self.next_signal => {
                    self.next_signal = after(SIGNAL_INTERVAL);
                    self.end_children();
                }
                _ => {}
            }
            if sys::wait_for_child_or_input(self.control, self.wait_time()) {
                self.read_control();
            }
        }
        0
    }

    /// Collects ended children; false when no process is left.
    fn reap(&mut self) -> bool {
        loop {
            let stopped = if self.has_terminal { WaitOptions::UNTRACED } else { WaitOptions::empty() };
            match rustix::process::wait(WaitOptions::NOHANG | stopped) {
                Ok(Some((child, status))) if status.stopped() => self.on_stopped_child(child),
                Ok(Some((child, status))) if child == self.command => self.status = Some(status.as_raw()),
                Ok(Some(_)) => {
                    let signalled = matches!(self.phase, Phase::Terminating(_) | Phase::Killing(_));
                    if signalled && self.status.is_some() {
                        self.left_behind = self.left_behind.saturating_add(1);
                    }
                }
                Ok(None) => return true,
                Err(Errno::INTR) => continue,
                Err(_) => return self.has_unadopted(),
            }
            if let Phase::Killing(until) = &mut self.phase {
                *until = after(KILL_TIMEOUT);
            }
        }
    }

    /// Has Haft stop too, so that the user's shell takes over, if the command was stopped. Other children are continued.
    fn on_stopped_child(&self, child: Pid) {
        let is_job = child == self.command && self.phase == Phase::Running && self.control.is_some();
        if !is_job || rustix::io::write(self.report, &ReaperReport::Paused.to_bytes()).is_err() {
            let _ = rustix::process::kill_process_group(child, Signal::CONT);
            let _ = rustix::process::kill_process(child, Signal::CONT);
        }
    }

    /// Whether processes are left that are not children of the reaper: the rest of the command's group, where orphans
    /// are not adopted.
    fn has_unadopted(&self) -> bool {
        !IS_SUBREAPER && rustix::process::test_kill_process_group(self.command).is_ok()
    }

    /// Enters the next phase when it is due.
    fn advance(&mut self) {
        let now = Instant::now();
        self.phase = match self.phase {
            Phase::Running | Phase::Settling(_) | Phase::Terminating(_) if self.control.is_none() => {
                Phase::Killing(after(KILL_TIMEOUT))
            }
            Phase::Running | Phase::Settling(_) if self.stopped.is_some() => {
                Phase::Terminating(after(TERM_GRACE_PERIOD))
            }
            Phase::Running if self.status.is_some() => Phase::Settling(after(SETTLE_TIME)),
            Phase::Settling(until) if now >= until => {
                if !IS_SUBREAPER {
                    // Ends of processes that are not children are not seen. At least one is left.
                    self.left_behind = self.left_behind.max(1);
                }
                Phase::Terminating(after(TERM_GRACE_PERIOD))
            }
            Phase::Terminating(until) if now >= until => Phase::Killing(after(KILL_TIMEOUT)),
            phase => phase,
        };
    }

    /// How long to wait for an event.
    fn wait_time(&self) -> Option<Duration> {
        match self.phase {
            Phase::Running => None,
            Phase::Settling(until) => Some(until.saturating_duration_since(Instant::now())),
            Phase::Terminating(_) | Phase::Killing(_) => {
                Some(self.next_signal.saturating_duration_since(Instant::now()))
            }
        }
    }

    /// Reads a stop request, or the EOF that shows that Haft is gone.
    fn read_control(&mut self) {
        let Some(control) = self.control else { return };
        let mut byte = [0];
        match rustix::io::read(control, &mut byte) {
            Ok(0) => self.control = None,
            Ok(_) if byte == [CONTINUE_CODE] => {
                let _ = rustix::process::kill_process_group(self.command, Signal::CONT);
            }
            Ok(_) if self.status.is_none() && self.stopped.is_none() => {
                self.stopped = StopReason::from_byte(byte[0]);
            }
            Ok(_) => {
                if let Phase::Settling(until) = &mut self.phase {
                    *until = Instant::now();
                }
            }
            Err(_) => {}
        }
    }

    fn end_children(&mut self) {
        if matches!(self.phase, Phase::Killing(_)) {
            return self.signal(Signal::KILL, &mut GroupSet::new());
        }
        let mut terminated = self.terminated;
        self.signal(Signal::TERM, &mut terminated);
        self.terminated = terminated;
    }

    /// Sends `signal` to every child and its group, but not to groups in `done`.
    ///
    /// A signal to a group reaches all its members at once, so a fork bomb cannot outrun it. The command and its
    /// descendants are in groups that they created: they cannot join a group outside of their session.
    fn signal(&self, signal: Signal, done: &mut GroupSet) {
        // Never the reaper's own group: with a terminal it is also Haft's.
        let own = process_group(None);
        let listed = each_child(|child| match process_group(Some(child)) {
            Some(group) if Some(group) != own => {
                if done.insert(group) {
                    let _ = rustix::process::kill_process_group(group, signal);
                }
            }
            _ => {
                let _ = rustix::process::kill_process(child, signal);
            }
        });
        if !listed && done.insert(self.command) {
            // The group does not exist until the command's process has created it.
            if rustix::process::kill_process_group(self.command, signal).is_err() && self.status.is_none() {
                let _ = rustix::process::kill_process(self.command, signal);
            }
        }
    }
}

/// A few process groups, stored without allocating. Groups that do not fit are signalled twice.
#[derive(Clone, Copy)]
struct GroupSet {
    members: [Option<Pid>; MAX_GROUPS],
}

impl GroupSet {
    fn new() -> Self {
        Self { members: [None; MAX_GROUPS] }
    }

    /// Adds `group`; false if it was there already.
    fn insert(&mut self, group: Pid) -> bool {
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

/// Calls `visit` with each child of this process, adopted orphans included; false if the system does not list them.
#[cfg(target_os = "linux")]
fn each_child(mut visit: impl FnMut(Pid)) -> bool {
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
                        visit(child);
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
fn each_child(_visit: impl FnMut(Pid)) -> bool {
    false
}

/// At least one: only called while there are children.
fn count_children() -> u32 {
    let mut count = 0_u32;
    each_child(|_| count = count.saturating_add(1));
    count.max(1)
}

fn after(duration: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(duration).unwrap_or(now)
}
