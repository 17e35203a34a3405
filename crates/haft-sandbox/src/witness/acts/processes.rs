//! Calls that reach for other processes.

use rustix::io::Errno;

use crate::witness::notify::Call;
use crate::witness::supervisor::{Answer, Supervisor};

impl Supervisor {
    /// A signal, a limit or a priority for a process: only for the command's own. The numbers are in registers, so
    /// nobody can change them after this look.
    pub(super) fn reach_process(&mut self, call: &Call) -> Answer {
        let (what, who) = match call.number {
            libc::SYS_setpriority | libc::SYS_ioprio_set => {
                // A group or a user is asked for by other numbers than a process.
                let process =
                    if call.number == libc::SYS_setpriority { libc::PRIO_PROCESS.cast_signed() } else { 1 };
                if call.int(0) != process {
                    return Answer::Fail(Errno::PERM);
                }
                ("prioritise", call.int(1))
            }
            libc::SYS_kill | libc::SYS_tkill | libc::SYS_tgkill => ("signal", call.int(0)),
            libc::SYS_rt_sigqueueinfo | libc::SYS_rt_tgsigqueueinfo => ("signal", call.int(0)),
            _ => ("limit", call.int(0)),
        };
        // A negative number is a group; 0 is the caller's own. Landlock keeps them inside.
        let known = match who {
            0 => true,
            ..0 if who == -1 => true,
            ..0 => self.census.has_group(-who),
            who => self.census.has(who),
        };
        if known {
            return Answer::GoOn;
        }
        if !exists(who) {
            return Answer::Fail(Errno::SRCH);
        }
        let place = format!("process {who}");
        self.denials.add(what, place, "not one of the command's own processes", None);
        Answer::Fail(Errno::PERM)
    }
}

fn exists(who: i32) -> bool {
    rustix::process::Pid::from_raw(who.abs()).is_some_and(|pid| {
        if who > 0 {
            rustix::process::test_kill_process(pid) != Err(Errno::SRCH)
        } else {
            rustix::process::test_kill_process_group(pid) != Err(Errno::SRCH)
        }
    })
}
