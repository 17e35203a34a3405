//! The seccomp filter: which system calls are refused, which are reported to the witness, and which just run.
//!
//! The kernel remembers which calls are always allowed, so reading, writing and computing cost nothing extra.

mod assemble;

use assemble::{and, argument_at, assemble, jump, load, ret};

/// What a rule does with a call that it names.
const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const REPORT: u32 = libc::SECCOMP_RET_USER_NOTIF;
const fn refuse(errno: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno.cast_unsigned()
}

/// New namespaces; none are made inside, so that no capability comes back.
const NAMESPACES: u32 = 0x7e02_0080;
/// `ioctl` requests that type into a terminal or change a file's attributes through a handle that may only read.
const IOCTLS: [u32; 8] = [
    0x5412,      // TIOCSTI
    0x541c,      // TIOCLINUX
    0x541d,      // TIOCCONS
    0x4008_6602, // FS_IOC_SETFLAGS
    0x4004_6602, // FS_IOC32_SETFLAGS
    0x401c_5820, // FS_IOC_FSSETXATTR
    0x4008_7602, // FS_IOC_SETVERSION
    0xc004_5877, // FIFREEZE
];
/// Calls with higher numbers came with kernels newer than this list; programs know how to do without.
const NEWEST: u32 = 467;

/// What the filter depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Whether mutating calls are reported. Without it the filter only refuses.
    pub(crate) witness: bool,
    /// Whether opening for reading is reported too, because there are secrets where anything may be created.
    pub(crate) reads: bool,
    /// Whether signals are reported one by one, because Landlock does not scope them here.
    pub(crate) signals: bool,
    /// Whether all of the network may be reached.
    pub(crate) open_network: bool,
}

/// The program for `plan`, as the kernel takes it.
pub(crate) fn program(plan: Plan) -> Vec<libc::sock_filter> {
    let mut code = Code(Vec::with_capacity(128));
    let report = if plan.witness { REPORT } else { ALLOW };
    code.opens(plan);
    code.network(plan);
    code.processes(plan);
    for call in REPORTED {
        code.call(*call, &[ret(report)]);
    }
    for call in REPORTED_ON_X86 {
        code.call(*call, &[ret(report)]);
    }
    for call in MISSING {
        code.call(*call, &[ret(refuse(libc::ENOSYS))]);
    }
    for call in REFUSED {
        code.call(*call, &[ret(refuse(libc::EPERM))]);
    }
    assemble(code.0, NEWEST)
}

/// Changes to files by name or by handle.
const REPORTED: &[i64] = &[
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_truncate,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    452, // fchmodat2
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_umask,
    libc::SYS_renameat,
];

/// The older spellings.
#[cfg(target_arch = "x86_64")]
const REPORTED_ON_X86: &[i64] = &[
    libc::SYS_creat,
    libc::SYS_unlink,
    libc::SYS_rmdir,
    libc::SYS_rename,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_mkdir,
    libc::SYS_mknod,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const REPORTED_ON_X86: &[i64] = &[];

/// Calls whose arguments lie in memory, where another thread could change them after a look, or which do work that
/// nobody sees. Programs have another way, for older kernels.
const MISSING: &[i64] = &[
    libc::SYS_openat2,
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    463, // setxattrat
    466, // removexattrat
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
];

/// What no command has a use for.
const REFUSED: &[i64] = &[
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    467, // open_tree_attr
    libc::SYS_setns,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_open_by_handle_at,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    443, // quotactl_fd
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// What to do with each call by its number: a body ends in a return on every way through it.
struct Code(Vec<(u32, Vec<libc::sock_filter>)>);

impl Code {
    fn call(&mut self, number: i64, body: &[libc::sock_filter]) {
        self.0.push((u32::try_from(number).unwrap_or(u32::MAX), body.to_vec()));
    }

    fn opens(&mut self, plan: Plan) {
        let write = (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC).cast_unsigned();
        let report = if plan.witness { REPORT } else { ALLOW };
        let read = if plan.reads && plan.witness { REPORT } else { ALLOW };
        let body = |argument| {
            [
                load(argument_at(argument)),
                // A handle that is only a place; opening it for more is another call.
                jump(libc::BPF_JSET, libc::O_PATH.cast_unsigned(), 3, 0),
                jump(libc::BPF_JSET, write, 3, 0),
                jump(libc::BPF_JSET, libc::O_DIRECTORY.cast_unsigned(), 1, 0),
                ret(read),
                ret(ALLOW),
                ret(report),
            ]
        };
        #[cfg(target_arch = "x86_64")]
        self.call(libc::SYS_open, &body(1));
        self.call(libc::SYS_openat, &body(2));
    }

    fn network(&mut self, plan: Plan) {
        let report = if plan.witness { REPORT } else { ALLOW };
        let other_inet = match (plan.open_network, plan.witness) {
            (true, _) => ALLOW,
            (false, true) => REPORT,
            (false, false) => refuse(libc::EACCES),
        };
        let stream_inet = if plan.open_network || plan.witness { ALLOW } else { refuse(libc::EACCES) };
        let [unix, inet, inet6] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6].map(i32::cast_unsigned);
        let [stream, datagram] = [libc::SOCK_STREAM, libc::SOCK_DGRAM].map(i32::cast_unsigned);
        self.call(
            libc::SYS_socket,
            &[
                load(argument_at(0)),
                jump(libc::BPF_JEQ, unix, 3, 0),
                jump(libc::BPF_JEQ, inet, 5, 0),
                jump(libc::BPF_JEQ, inet6, 4, 0),
                ret(refuse(libc::EAFNOSUPPORT)),
                // A datagram can be addressed to any socket of the machine without connecting.
                load(argument_at(1)),
                and(0xf),
                jump(libc::BPF_JEQ, datagram, 4, 3),
                load(argument_at(1)),
                and(0xf),
                jump(libc::BPF_JEQ, stream, 2, 3),
                ret(ALLOW),
                ret(refuse(libc::EACCES)),
                ret(stream_inet),
                ret(other_inet),
            ],
        );
        self.call(
            libc::SYS_socketpair,
            &[
                load(argument_at(1)),
                and(0xf),
                jump(libc::BPF_JEQ, datagram, 0, 1),
                ret(refuse(libc::EACCES)),
                ret(ALLOW),
            ],
        );
        for call in [libc::SYS_connect, libc::SYS_bind, libc::SYS_listen] {
            self.call(call, &[ret(report)]);
        }
        // A message can open a connection by itself.
        let fast_open = libc::MSG_FASTOPEN.cast_unsigned();
        let answer = if plan.open_network { ALLOW } else { refuse(libc::EOPNOTSUPP) };
        for (call, argument) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
            let body =
                [load(argument_at(argument)), jump(libc::BPF_JSET, fast_open, 0, 1), ret(answer), ret(ALLOW)];
            self.call(call, &body);
        }
    }

    fn processes(&mut self, plan: Plan) {
        let report = if plan.witness { REPORT } else { ALLOW };
        let elsewhere = if plan.witness { REPORT } else { refuse(libc::EPERM) };
        let make = [
            load(argument_at(0)),
            jump(libc::BPF_JSET, NAMESPACES, 0, 1),
            ret(refuse(libc::EPERM)),
            ret(ALLOW),
        ];
        // New processes are not reported: while a call waits to be heard, a signal can interrupt it, and shells, whose
        // children end all the time, take that for a fork that failed.
        self.call(libc::SYS_clone, &make);
        self.call(libc::SYS_unshare, &make);

        self.call(libc::SYS_kill, &[ret(report)]);
        if plan.signals {
            for call in
                [libc::SYS_tkill, libc::SYS_tgkill, libc::SYS_rt_sigqueueinfo, libc::SYS_rt_tgsigqueueinfo]
            {
                self.call(call, &[ret(report)]);
            }
            self.call(libc::SYS_pidfd_send_signal, &[ret(refuse(libc::EPERM))]);
        }
        // Who is asked about: 0 is the caller itself.
        for (call, argument) in [
            (libc::SYS_setpriority, 1),
            (libc::SYS_ioprio_set, 1),
            (libc::SYS_sched_setaffinity, 0),
            (libc::SYS_sched_setscheduler, 0),
            (libc::SYS_sched_setparam, 0),
            (libc::SYS_sched_setattr, 0),
        ] {
            let body =
                [load(argument_at(argument)), jump(libc::BPF_JEQ, 0, 0, 1), ret(ALLOW), ret(elsewhere)];
            self.call(call, &body);
        }
        self.call(
            libc::SYS_prlimit64,
            &[
                load(argument_at(0)),
                jump(libc::BPF_JEQ, 0, 4, 0),
                load(argument_at(2)),
                jump(libc::BPF_JEQ, 0, 0, 3),
                load(argument_at(2) + 4),
                jump(libc::BPF_JEQ, 0, 0, 1),
                ret(ALLOW),
                ret(elsewhere),
            ],
        );
        // The witness has to read the arguments of whoever calls; saying yes hurts nobody, for no core is dumped.
        self.call(
            libc::SYS_prctl,
            &[
                load(argument_at(0)),
                jump(libc::BPF_JEQ, libc::PR_SET_DUMPABLE.cast_unsigned(), 0, 1),
                ret(refuse(0)),
                ret(ALLOW),
            ],
        );
        let mut ioctl = vec![load(argument_at(1))];
        for (at, request) in IOCTLS.iter().enumerate() {
            let to_refusal = u8::try_from(IOCTLS.len() - at).unwrap_or_default();
            ioctl.push(jump(libc::BPF_JEQ, *request, to_refusal, 0));
        }
        ioctl.extend([ret(ALLOW), ret(refuse(libc::EPERM))]);
        self.call(libc::SYS_ioctl, &ioctl);
    }
}

#[cfg(test)]
mod tests;
