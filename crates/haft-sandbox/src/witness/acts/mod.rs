//! What the witness does for each kind of call.

mod files;
mod guard;
mod metadata;
mod names;
mod processes;
mod reads;
mod rename;
mod sockets;

use rustix::io::Errno;

use super::notify::Call;
use super::supervisor::{Answer, Supervisor};
use super::target::Target;

const HERE: i32 = libc::AT_FDCWD;

impl Supervisor {
    /// Does what the call asks for, if it may.
    pub(super) fn perform(&mut self, call: &Call) -> Result<Answer, Errno> {
        let a = |index| call.int(index);
        match call.number {
            libc::SYS_openat => self.open(call, a(0), 1, a(2), call.arguments[3]),
            libc::SYS_unlinkat if a(2) & !libc::AT_REMOVEDIR != 0 => Err(Errno::INVAL),
            libc::SYS_unlinkat => self.remove(call, a(0), 1, a(2) != 0),
            libc::SYS_mkdirat => self.make_directory(call, a(0), 1, call.arguments[2]),
            libc::SYS_mknodat => self.make_node(call, a(0), 1, call.arguments[2]),
            libc::SYS_symlinkat => self.make_link(call, 0, a(1), 2),
            libc::SYS_linkat => self.make_name(call, (a(0), 1), (a(2), 3), a(4)),
            libc::SYS_renameat => self.rename(call, (a(0), 1), (a(2), 3), 0),
            libc::SYS_renameat2 => self.rename(call, (a(0), 1), (a(2), 3), call.int(4).cast_unsigned()),
            libc::SYS_truncate => self.truncate(call, 0, call.arguments[1]),
            libc::SYS_umask => {
                self.umasks.forget_all();
                Ok(Answer::GoOn)
            }
            libc::SYS_connect => self.connect(call),
            libc::SYS_bind => self.bind(call),
            libc::SYS_listen => self.listen(call),
            libc::SYS_socket => Ok(self.refuse_socket(call)),
            libc::SYS_kill
            | libc::SYS_tkill
            | libc::SYS_tgkill
            | libc::SYS_rt_sigqueueinfo
            | libc::SYS_rt_tgsigqueueinfo
            | libc::SYS_prlimit64
            | libc::SYS_setpriority
            | libc::SYS_ioprio_set
            | libc::SYS_sched_setaffinity
            | libc::SYS_sched_setscheduler
            | libc::SYS_sched_setparam
            | libc::SYS_sched_setattr => Ok(self.reach_process(call)),
            #[cfg(target_arch = "x86_64")]
            number => match number {
                libc::SYS_open => self.open(call, HERE, 0, a(1), call.arguments[2]),
                libc::SYS_creat => {
                    let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
                    self.open(call, HERE, 0, flags, call.arguments[1])
                }
                libc::SYS_unlink => self.remove(call, HERE, 0, false),
                libc::SYS_rmdir => self.remove(call, HERE, 0, true),
                libc::SYS_mkdir => self.make_directory(call, HERE, 0, call.arguments[1]),
                libc::SYS_mknod => self.make_node(call, HERE, 0, call.arguments[1]),
                libc::SYS_symlink => self.make_link(call, 0, HERE, 1),
                libc::SYS_link => self.make_name(call, (HERE, 0), (HERE, 1), 0),
                libc::SYS_rename => self.rename(call, (HERE, 0), (HERE, 1), 0),
                _ => self.metadata(call),
            },
            #[cfg(not(target_arch = "x86_64"))]
            _ => self.metadata(call),
        }
    }

    /// The path that an argument points to.
    fn path(call: &Call, argument: usize) -> Result<Vec<u8>, Errno> {
        Target::of(call).string(call.arguments[argument])
    }
}
