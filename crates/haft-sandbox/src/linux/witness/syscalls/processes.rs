//! Calls that affect other processes.

use std::io::Read;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use crate::linux::witness::caller::Caller;
use crate::linux::witness::notifications::Syscall;
use crate::linux::witness::paths::PathLookup;
use crate::linux::witness::root_dir::open_without_links;
use crate::linux::witness::supervisor::{Reply, Supervisor};

const IOPRIO_WHO_PROCESS: i32 = 1;
/// The type of libc's constant depends on the C library.
const PRIO_PROCESS: i32 = 0;

impl Supervisor {
    /// Allows signals, limits and priorities only for the command's own processes. The arguments are in registers, so no
    /// other thread can change them after the check.
    pub(super) fn affect_process(&mut self, call: &Syscall) -> Reply {
        let (what, target) = match call.number {
            // Groups and users are not allowed.
            libc::SYS_setpriority if call.int(0) != PRIO_PROCESS => return Reply::Error(Errno::PERM),
            libc::SYS_ioprio_set if call.int(0) != IOPRIO_WHO_PROCESS => return Reply::Error(Errno::PERM),
            libc::SYS_setpriority | libc::SYS_ioprio_set => ("prioritise", call.int(1)),
            libc::SYS_kill
            | libc::SYS_tkill
            | libc::SYS_tgkill
            | libc::SYS_rt_sigqueueinfo
            | libc::SYS_rt_tgsigqueueinfo => ("signal", call.int(0)),
            _ => ("limit", call.int(0)),
        };
        if what == "signal" && target <= 0 && !self.policy.scopes_signals {
            return self.signal_group(call, target);
        }
        // 0 means the caller, -1 all processes that Landlock allows, other negative numbers a process group.
        let is_own = match target {
            0 | -1 => true,
            ..0 if self.policy.has_namespaces => self.monitor.find_group(-target),
            _ if self.policy.has_namespaces => self.monitor.find_process(target).is_some(),
            ..0 => Pid::from_raw(target.saturating_neg()).is_some_and(|group| self.monitor.has_group(group)),
            _ => self.monitor.is_descendant(target),
        };
        if is_own {
            return Reply::Continue;
        }
        let exists = if self.policy.has_namespaces { exists_in(&self.paths, target) } else { exists(target) };
        if !exists {
            return Reply::Error(Errno::SRCH);
        }
        self.refuse_process(what, target)
    }

    /// Sends a signal to a process group if all its processes are the command's own. The witness sends it, because the
    /// caller could join another group after the check.
    fn signal_group(&mut self, call: &Syscall, target: i32) -> Reply {
        let group =
            if target == 0 { Caller::of(call).group() } else { target.checked_neg().and_then(Pid::from_raw) };
        let Some(group) = group.filter(|_| target != -1) else {
            return self.refuse_process("signal", target);
        };
        if rustix::process::test_kill_process_group(group) == Err(Errno::SRCH) {
            return Reply::Error(Errno::SRCH);
        }
        if !self.monitor.has_group(group) {
            return self.refuse_process("signal", target);
        }
        match Signal::from_named_raw(call.int(1)) {
            Some(signal) => rustix::process::kill_process_group(group, signal).into(),
            None if call.int(1) == 0 => Reply::Value(0),
            None => Reply::Error(Errno::INVAL),
        }
    }

    fn refuse_process(&mut self, what: &str, target: i32) -> Reply {
        let place = format!("process {target}");
        self.denials.add(what, place, "not one of the command's own processes", None);
        Reply::Error(Errno::PERM)
    }
}

/// Whether there is such a process or group in the command's own `/proc`.
fn exists_in(paths: &PathLookup, target: i32) -> bool {
    let proc = open_without_links(paths.root().fd(), b"proc", OFlags::DIRECTORY);
    let Ok(proc) = proc else { return true };
    if target > 0 {
        return rustix::fs::statat(&proc, target.to_string(), AtFlags::empty()).is_ok();
    }
    let Ok(processes) = rustix::fs::Dir::read_from(&proc) else { return true };
    let mut ids =
        processes.flatten().filter_map(|entry| entry.file_name().to_str().ok()?.parse::<u32>().ok());
    let group = target.unsigned_abs().to_string();
    ids.any(|id| group_of(&proc, id).is_some_and(|of| of == group))
}

/// The group of a process in its `/proc`; `None` if it has ended meanwhile.
fn group_of(proc: &OwnedFd, id: u32) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let stat = rustix::fs::openat(proc, format!("{id}/stat"), flags, Mode::empty()).ok()?;
    let mut text = String::new();
    std::fs::File::from(stat).read_to_string(&mut text).ok()?;
    // The name of the program, in parentheses, can contain anything.
    text.rsplit_once(") ")?.1.split(' ').nth(2).map(str::to_owned)
}

fn exists(target: i32) -> bool {
    Pid::from_raw(target.abs()).is_some_and(|pid| {
        if target > 0 {
            rustix::process::test_kill_process(pid) != Err(Errno::SRCH)
        } else {
            rustix::process::test_kill_process_group(pid) != Err(Errno::SRCH)
        }
    })
}
