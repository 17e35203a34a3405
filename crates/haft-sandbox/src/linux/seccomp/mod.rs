//! The seccomp filter: which system calls are refused, which are reported to the witness, and which are allowed.
//!
//! The kernel caches which calls are always allowed, so reading, writing and computing cost nothing extra.

mod assembler;
mod ioctls;
#[cfg(test)]
mod tests;

use libc::{SECCOMP_RET_ALLOW as ALLOW, SECCOMP_RET_USER_NOTIF as REPORT};

use assembler::{and, argument_offset, assemble, jump, load, ret};
use ioctls::ioctl_rule;

const fn refuse(errno: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno.cast_unsigned()
}

/// The clone flags of all namespaces. A command creates none, because it would get capabilities in them.
const NAMESPACE_FLAGS: u32 = 0x7e02_0080;
/// `fcntl` commands that let a program delay others, Haft included, when they open a file.
const REFUSED_FCNTLS: &[u32] = &[libc::F_SETLEASE.cast_unsigned()];
/// `fcntl` commands that choose who gets the signals of a descriptor, and which.
const SIGNAL_FCNTLS: &[u32] = &[
    8,  // F_SETOWN
    10, // F_SETSIG
    15, // F_SETOWN_EX
];
/// The bits of a socket type besides its flags.
const SOCKET_TYPE_MASK: u32 = 0xf;
/// System calls with higher numbers are newer than this list. Programs handle ENOSYS for them.
const MAX_KNOWN_CALL: u32 = 467;

/// What the filter depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FilterOptions {
    /// Whether mutating calls are reported. Without a witness the filter only refuses.
    pub(super) witness: bool,
    /// Whether opening for reading is reported, too, because secrets are among files that commands create.
    pub(super) report_reads: bool,
    /// Whether the kernel keeps signals among the command's processes. If not, they are reported.
    pub(super) scopes_signals: bool,
    /// Whether all of the network may be reached.
    pub(super) open_network: bool,
    /// Whether the command has namespaces of its own: then signals and System V IPC lead nowhere, nor does the network
    /// unless it is open.
    pub(super) namespaces: bool,
}

/// The BPF program for `options`.
pub(super) fn build_filter(options: FilterOptions) -> Vec<libc::sock_filter> {
    let mut rules = RuleList(Vec::with_capacity(128));
    let report = if options.witness { REPORT } else { ALLOW };
    rules.add_opens(options);
    rules.add_network(options);
    rules.add_processes(options);
    for call in REPORTED.iter().chain(REPORTED_ON_X86) {
        rules.add(*call, &[ret(report)]);
    }
    let shared_ipc: &[i64] = if options.namespaces { &[] } else { SHARED_IPC };
    for call in UNSUPPORTED.iter().chain(shared_ipc) {
        rules.add(*call, &[ret(refuse(libc::ENOSYS))]);
    }
    for call in REFUSED {
        rules.add(*call, &[ret(refuse(libc::EPERM))]);
    }
    assemble(rules.0, MAX_KNOWN_CALL)
}

/// Missing in libc.
pub(super) const SYS_FCHMODAT2: i64 = 452;
/// Missing in libc on aarch64.
#[cfg(target_arch = "x86_64")]
const SYS_KEXEC_FILE_LOAD: i64 = libc::SYS_kexec_file_load;
#[cfg(target_arch = "aarch64")]
const SYS_KEXEC_FILE_LOAD: i64 = 294;

/// Calls that change files by name or by descriptor.
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
    SYS_FCHMODAT2,
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

/// The older variants.
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

/// Calls whose arguments are in memory, where another thread could change them after the check, and calls that bypass
/// the witness. Programs fall back to others, for older kernels.
const UNSUPPORTED: &[i64] = &[
    libc::SYS_openat2,
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    463, // setxattrat
    466, // removexattrat
];

/// Calls that reach objects of other programs, which have no path.
const SHARED_IPC: &[i64] = &[
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

/// Calls that no command needs.
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
    SYS_KEXEC_FILE_LOAD,
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

/// System call numbers with the instructions for each; every path through them ends in a return.
struct RuleList(Vec<(u32, Vec<libc::sock_filter>)>);

impl RuleList {
    fn add(&mut self, number: i64, body: &[libc::sock_filter]) {
        self.0.push((u32::try_from(number).unwrap_or(u32::MAX), body.to_vec()));
    }

    fn add_opens(&mut self, options: FilterOptions) {
        let write = (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC).cast_unsigned();
        let report = if options.witness { REPORT } else { ALLOW };
        let read = if options.report_reads && options.witness { REPORT } else { ALLOW };
        let body = |argument| {
            [
                load(argument_offset(argument)),
                // O_PATH gives no access to the content; reopening it is another call.
                jump(libc::BPF_JSET, libc::O_PATH.cast_unsigned(), 3, 0),
                jump(libc::BPF_JSET, write, 3, 0),
                jump(libc::BPF_JSET, libc::O_DIRECTORY.cast_unsigned(), 1, 0),
                ret(read),
                ret(ALLOW),
                ret(report),
            ]
        };
        #[cfg(target_arch = "x86_64")]
        self.add(libc::SYS_open, &body(1));
        self.add(libc::SYS_openat, &body(2));
    }

    fn add_network(&mut self, options: FilterOptions) {
        let report = if options.witness { REPORT } else { ALLOW };
        if options.namespaces && !options.open_network {
            return self.add_own_network(report);
        }
        let other_inet = match (options.open_network, options.witness) {
            (true, _) => ALLOW,
            (false, true) => REPORT,
            (false, false) => refuse(libc::EACCES),
        };
        let stream_inet = if options.open_network || options.witness { ALLOW } else { refuse(libc::EACCES) };
        // With it programs list the interfaces, which they may use only with an open network.
        let routes = if options.open_network { ALLOW } else { refuse(libc::EAFNOSUPPORT) };
        let [unix, inet, inet6, netlink] =
            [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].map(i32::cast_unsigned);
        let [stream, packets] = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET].map(i32::cast_unsigned);
        self.add(
            libc::SYS_socket,
            &[
                load(argument_offset(0)),
                jump(libc::BPF_JEQ, unix, 7, 0),
                jump(libc::BPF_JEQ, inet, 10, 0),
                jump(libc::BPF_JEQ, inet6, 9, 0),
                jump(libc::BPF_JEQ, netlink, 0, 3),
                load(argument_offset(2)),
                jump(libc::BPF_JEQ, libc::NETLINK_ROUTE.cast_unsigned(), 0, 1),
                ret(routes),
                ret(refuse(libc::EAFNOSUPPORT)),
                // Datagrams can be sent to any socket of the machine without connecting. Raw ones are datagrams, too.
                load(argument_offset(1)),
                and(SOCKET_TYPE_MASK),
                jump(libc::BPF_JEQ, stream, 4, 0),
                jump(libc::BPF_JEQ, packets, 3, 4),
                load(argument_offset(1)),
                and(SOCKET_TYPE_MASK),
                jump(libc::BPF_JEQ, stream, 2, 7),
                ret(ALLOW),
                ret(refuse(libc::EACCES)),
                // Streams of other protocols have calls of their own that connect.
                load(argument_offset(2)),
                jump(libc::BPF_JEQ, 0, 2, 0),
                jump(libc::BPF_JEQ, libc::IPPROTO_TCP.cast_unsigned(), 1, 0),
                jump(libc::BPF_JEQ, libc::IPPROTO_MPTCP.cast_unsigned(), 0, 1),
                ret(stream_inet),
                ret(other_inet),
            ],
        );
        self.add_socket_pair(report);
        for call in [libc::SYS_connect, libc::SYS_bind, libc::SYS_listen] {
            self.add(call, &[ret(report)]);
        }
        // MSG_FASTOPEN connects without a connect call.
        let fast_open = libc::MSG_FASTOPEN.cast_unsigned();
        let answer = if options.open_network { ALLOW } else { refuse(libc::EOPNOTSUPP) };
        for (call, argument) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
            let body = [
                load(argument_offset(argument)),
                jump(libc::BPF_JSET, fast_open, 0, 1),
                ret(answer),
                ret(ALLOW),
            ];
            self.add(call, &body);
        }
    }

    /// The rules for a network namespace of the command's own. Only sockets in the file system lead out of it.
    fn add_own_network(&mut self, report: u32) {
        let [unix, inet, inet6, netlink] =
            [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].map(i32::cast_unsigned);
        self.add(
            libc::SYS_socket,
            &[
                load(argument_offset(0)),
                jump(libc::BPF_JEQ, inet, 9, 0),
                jump(libc::BPF_JEQ, inet6, 8, 0),
                jump(libc::BPF_JEQ, unix, 3, 0),
                jump(libc::BPF_JEQ, netlink, 0, 7),
                load(argument_offset(2)),
                jump(libc::BPF_JEQ, libc::NETLINK_ROUTE.cast_unsigned(), 4, 5),
                load(argument_offset(1)),
                and(SOCKET_TYPE_MASK),
                jump(libc::BPF_JEQ, libc::SOCK_STREAM.cast_unsigned(), 1, 0),
                jump(libc::BPF_JEQ, libc::SOCK_SEQPACKET.cast_unsigned(), 0, 1),
                ret(ALLOW),
                ret(refuse(libc::EAFNOSUPPORT)),
            ],
        );
        self.add_socket_pair(report);
        for call in [libc::SYS_connect, libc::SYS_bind] {
            self.add(call, &[ret(report)]);
        }
    }

    /// Datagrams of a socket pair can be sent to any socket in the file system, so the witness makes another kind.
    fn add_socket_pair(&mut self, report: u32) {
        let report = if report == ALLOW { refuse(libc::EACCES) } else { report };
        let [stream, packets] = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET].map(i32::cast_unsigned);
        self.add(
            libc::SYS_socketpair,
            &[
                load(argument_offset(1)),
                and(SOCKET_TYPE_MASK),
                jump(libc::BPF_JEQ, stream, 2, 0),
                jump(libc::BPF_JEQ, packets, 1, 0),
                ret(report),
                ret(ALLOW),
            ],
        );
    }

    fn add_processes(&mut self, options: FilterOptions) {
        let report = if options.witness { REPORT } else { ALLOW };
        let other_process = if options.witness { REPORT } else { refuse(libc::EPERM) };
        let make = [
            load(argument_offset(0)),
            jump(libc::BPF_JSET, NAMESPACE_FLAGS, 0, 1),
            ret(refuse(libc::EPERM)),
            ret(ALLOW),
        ];
        // New processes are not reported: a signal can interrupt a call that waits for the witness, and shells, which
        // get SIGCHLD often, would see a failed fork.
        self.add(libc::SYS_clone, &make);
        self.add(libc::SYS_unshare, &make);

        self.add(libc::SYS_kill, &[ret(report)]);
        if !options.scopes_signals {
            for call in
                [libc::SYS_tkill, libc::SYS_tgkill, libc::SYS_rt_sigqueueinfo, libc::SYS_rt_tgsigqueueinfo]
            {
                self.add(call, &[ret(report)]);
            }
            self.add(libc::SYS_pidfd_send_signal, &[ret(refuse(libc::EPERM))]);
        }
        // The target process; 0 is the caller itself.
        for (call, argument) in [
            (libc::SYS_setpriority, 1),
            (libc::SYS_ioprio_set, 1),
            (libc::SYS_sched_setaffinity, 0),
            (libc::SYS_sched_setscheduler, 0),
            (libc::SYS_sched_setparam, 0),
            (libc::SYS_sched_setattr, 0),
        ] {
            let body = [
                load(argument_offset(argument)),
                jump(libc::BPF_JEQ, 0, 0, 1),
                ret(ALLOW),
                ret(other_process),
            ];
            self.add(call, &body);
        }
        self.add(
            libc::SYS_prlimit64,
            &[
                load(argument_offset(0)),
                jump(libc::BPF_JEQ, 0, 4, 0),
                load(argument_offset(2)),
                jump(libc::BPF_JEQ, 0, 0, 3),
                load(argument_offset(2) + 4),
                jump(libc::BPF_JEQ, 0, 0, 1),
                ret(ALLOW),
                ret(other_process),
            ],
        );
        // The witness must be able to read the caller's memory. Reporting success is harmless, because core dumps are off.
        self.add(
            libc::SYS_prctl,
            &[
                load(argument_offset(0)),
                jump(libc::BPF_JEQ, libc::PR_SET_DUMPABLE.cast_unsigned(), 0, 1),
                ret(refuse(0)),
                ret(ALLOW),
            ],
        );
        self.add(libc::SYS_ioctl, &ioctl_rule(options.scopes_signals));
        let signals = if options.scopes_signals { &[][..] } else { SIGNAL_FCNTLS };
        self.refuse_values(libc::SYS_fcntl, 1, &[REFUSED_FCNTLS, signals].concat());
    }

    /// Refuses a call if an argument has one of these values.
    fn refuse_values(&mut self, call: i64, argument: u32, values: &[u32]) {
        let mut body = vec![load(argument_offset(argument))];
        for (at, value) in values.iter().enumerate() {
            let to_refusal = u8::try_from(values.len() - at).unwrap_or_default();
            body.push(jump(libc::BPF_JEQ, *value, to_refusal, 0));
        }
        body.extend([ret(ALLOW), ret(refuse(libc::EPERM))]);
        self.add(call, &body);
    }
}
