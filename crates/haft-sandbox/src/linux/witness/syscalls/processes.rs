//! Calls that affect other processes.

use rustix::io::Errno;
use rustix::process::Pid;

use crate::linux::witness::notifications::Syscall;
use crate::linux::witness::supervisor::{Reply, Supervisor};

const IOPRIO_WHO_PROCESS: i32 = 1;
/// Its type in libc depends on the C library.
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
        // 0 is the caller itself, -1 everything that Landlock allows, other negative numbers are process groups.
        let is_own = match target {
            0 | -1 => true,
            ..0 if self.policy.has_namespaces => self.monitor.find_group(-target),
            _ if self.policy.has_namespaces => self.monitor.find_process(target).is_some(),
            ..0 => self.monitor.has_group(-target),
            _ => self.monitor.is_descendant(target),
        };
        if is_own {
            return Reply::Continue;
        }
        if !self.policy.has_namespaces && !exists(target) {
            return Reply::Error(Errno::SRCH);
        }
        let place = format!("process {target}");
        self.denials.add(what, place, "not one of the command's own processes", None);
        Reply::Error(Errno::PERM)
    }
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
