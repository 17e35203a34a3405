//! Performs each kind of reported system call.

mod guards;
mod metadata;
mod names;
mod open;
mod processes;
mod reads;
mod rename;
mod separate;
mod socket_address;
mod sockets;

use rustix::io::Errno;

use super::super::seccomp::SYS_FCHMODAT2;
use super::caller::Caller;
use super::notifications::Syscall;
use super::supervisor::{Reply, Supervisor};

const CWD_FD: i32 = libc::AT_FDCWD;

impl Supervisor {
    /// Performs the call if the scope allows it.
    pub(super) fn perform(&mut self, call: &Syscall) -> Result<Reply, Errno> {
        let int = |index| call.int(index);
        match call.number {
            libc::SYS_openat => self.open(call, int(0), 1, int(2), call.arguments[3]),
            libc::SYS_unlinkat if int(2) & !libc::AT_REMOVEDIR != 0 => Err(Errno::INVAL),
            libc::SYS_unlinkat => self.remove(call, int(0), 1, int(2) != 0),
            libc::SYS_mkdirat => self.make_directory(call, int(0), 1, call.arguments[2]),
            libc::SYS_mknodat => self.make_node(call, int(0), 1, call.arguments[2]),
            libc::SYS_symlinkat => self.make_symlink(call, 0, int(1), 2),
            libc::SYS_linkat => self.make_hard_link(call, (int(0), 1), (int(2), 3), int(4)),
            libc::SYS_renameat => self.rename(call, (int(0), 1), (int(2), 3), 0),
            libc::SYS_renameat2 => self.rename(call, (int(0), 1), (int(2), 3), int(4).cast_unsigned()),
            libc::SYS_truncate => self.truncate(call, 0, call.arguments[1]),
            libc::SYS_umask => {
                self.umasks.change(Caller::of(call), call.arguments[0]);
                Ok(Reply::Continue)
            }
            libc::SYS_connect => self.connect(call),
            libc::SYS_bind => self.bind(call),
            libc::SYS_listen => self.listen(call),
            libc::SYS_socket => Ok(self.refuse_socket(call)),
            libc::SYS_socketpair => self.make_socket_pair(call),
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
            | libc::SYS_sched_setattr => Ok(self.affect_process(call)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open => self.open(call, CWD_FD, 0, int(1), call.arguments[2]),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_creat => {
                let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
                self.open(call, CWD_FD, 0, flags, call.arguments[1])
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_unlink => self.remove(call, CWD_FD, 0, false),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rmdir => self.remove(call, CWD_FD, 0, true),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_mkdir => self.make_directory(call, CWD_FD, 0, call.arguments[1]),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_mknod => self.make_node(call, CWD_FD, 0, call.arguments[1]),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_symlink => self.make_symlink(call, 0, CWD_FD, 1),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_link => self.make_hard_link(call, (CWD_FD, 0), (CWD_FD, 1), 0),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rename => self.rename(call, (CWD_FD, 0), (CWD_FD, 1), 0),
            _ => self.change_metadata(call),
        }
    }

    /// Reads the path that an argument points to.
    fn read_path(&self, call: &Syscall, argument: usize) -> Result<Vec<u8>, Errno> {
        debug_assert!(self.turn.is_none(), "the caller can block the access to its memory");
        Caller::of(call).read_string(call.arguments[argument])
    }
}
