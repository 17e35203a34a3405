//! The filter, run by an interpreter.

use super::assembler::AUDIT_ARCH;
use super::*;

/// The filter's result for a call.
fn run(program: &[libc::sock_filter], arch: u32, number: i64, arguments: [u64; 6]) -> u32 {
    let mut data = Vec::new();
    data.extend(u32::try_from(number).unwrap().to_ne_bytes());
    data.extend(arch.to_ne_bytes());
    data.extend(0_u64.to_ne_bytes());
    for argument in arguments {
        data.extend(argument.to_ne_bytes());
    }
    let (mut at, mut value) = (0_usize, 0_u32);
    loop {
        let step = &program[at];
        let code = u32::from(step.code);
        at += 1;
        let k = step.k;
        let jump = |yes: bool| usize::from(if yes { step.jt } else { step.jf });
        match code & 0x07 {
            libc::BPF_LD => {
                let from = k as usize;
                value = u32::from_ne_bytes(data[from..from + 4].try_into().unwrap());
            }
            libc::BPF_ALU => value &= k,
            libc::BPF_RET => return k,
            _ => match code & 0xf0 {
                libc::BPF_JA => at += k as usize,
                libc::BPF_JEQ => at += jump(value == k),
                libc::BPF_JGT => at += jump(value > k),
                libc::BPF_JGE => at += jump(value >= k),
                libc::BPF_JSET => at += jump(value & k != 0),
                other => unreachable!("{other}"),
            },
        }
    }
}

const OPTIONS: FilterOptions = FilterOptions {
    witness: true,
    report_reads: false,
    scopes_signals: true,
    open_network: false,
    namespaces: false,
};

fn result(options: FilterOptions, number: i64, arguments: [u64; 6]) -> u32 {
    run(&build_filter(options), AUDIT_ARCH, number, arguments)
}

#[test]
fn listed_calls_are_treated_as_listed() {
    for call in REPORTED.iter().chain(REPORTED_ON_X86) {
        assert_eq!(result(OPTIONS, *call, [0; 6]), REPORT, "{call}");
    }
    for call in UNSUPPORTED {
        assert_eq!(result(OPTIONS, *call, [0; 6]), refuse(libc::ENOSYS), "{call}");
    }
    for call in REFUSED {
        assert_eq!(result(OPTIONS, *call, [0; 6]), refuse(libc::EPERM), "{call}");
    }
    for call in [libc::SYS_read, libc::SYS_write, libc::SYS_mmap, libc::SYS_execve, libc::SYS_exit_group] {
        assert_eq!(result(OPTIONS, call, [0; 6]), ALLOW, "{call}");
    }
}

#[test]
fn other_calls_are_allowed() {
    let mut rules = RuleList(Vec::new());
    rules.add_opens(OPTIONS);
    rules.add_network(OPTIONS);
    rules.add_processes(OPTIONS);
    let lists = [REPORTED, REPORTED_ON_X86, UNSUPPORTED, REFUSED, SHARED_IPC];
    let named = rules.0.iter().map(|(number, _)| i64::from(*number)).chain(lists.concat());
    let named: std::collections::BTreeSet<i64> = named.collect();
    let program = build_filter(OPTIONS);
    for call in (0..=i64::from(MAX_KNOWN_CALL)).filter(|call| !named.contains(call)) {
        assert_eq!(run(&program, AUDIT_ARCH, call, [0; 6]), ALLOW, "{call}");
    }
}

#[test]
fn distant_bodies_are_reached() {
    let body = |number: u32| [vec![and(number); 100], vec![ret(number)]].concat();
    let numbers: Vec<u32> = (0..300).map(|at| at * 2 + at / 7).collect();
    let program = assemble(numbers.iter().map(|number| (*number, body(*number))).collect(), 1_000);
    for number in 0..=1_000 {
        let expected = if numbers.contains(&number) { number } else { ALLOW };
        assert_eq!(run(&program, AUDIT_ARCH, number.into(), [0; 6]), expected, "{number}");
    }
    assert_eq!(run(&program, AUDIT_ARCH, 1_001, [0; 6]), refuse(libc::ENOSYS));
}

#[test]
fn other_architectures_and_unknown_calls_are_refused() {
    assert_eq!(run(&build_filter(OPTIONS), 0x4000_0003, 1, [0; 6]), libc::SECCOMP_RET_KILL_PROCESS);
    assert_eq!(result(OPTIONS, 0x4000_0000 | libc::SYS_read, [0; 6]), refuse(libc::ENOSYS));
    assert_eq!(result(OPTIONS, 600, [0; 6]), refuse(libc::ENOSYS));
}

#[test]
fn opens_for_writing_are_reported() {
    let open = |options, flags: i32| {
        result(options, libc::SYS_openat, [0, 0, u64::from(flags.cast_unsigned()), 0, 0, 0])
    };
    for flags in [libc::O_WRONLY, libc::O_RDWR, libc::O_CREAT, libc::O_TRUNC, libc::O_TMPFILE | libc::O_RDWR]
    {
        assert_eq!(open(OPTIONS, flags), REPORT, "{flags:x}");
    }
    let reads = FilterOptions { report_reads: true, ..OPTIONS };
    for flags in [libc::O_RDONLY, libc::O_CLOEXEC] {
        assert_eq!((open(OPTIONS, flags), open(reads, flags)), (ALLOW, REPORT), "{flags:x}");
    }
    for flags in [libc::O_DIRECTORY, libc::O_PATH, libc::O_PATH | libc::O_NOFOLLOW] {
        assert_eq!(open(reads, flags), ALLOW, "{flags:x}");
    }
}

#[test]
fn sockets_depend_on_the_network() {
    let socket_of = |options, family: i32, kind: i32, protocol: i32| {
        let [family, kind, protocol] =
            [family, kind, protocol].map(|number| u64::from(number.cast_unsigned()));
        result(options, libc::SYS_socket, [family, kind, protocol, 0, 0, 0])
    };
    let socket = |options, family, kind| socket_of(options, family, kind, 0);
    let own = FilterOptions { namespaces: true, ..OPTIONS };
    assert_eq!(socket(own, libc::AF_INET, libc::SOCK_DGRAM), ALLOW);
    assert_eq!(socket(own, libc::AF_UNIX, libc::SOCK_DGRAM), refuse(libc::EAFNOSUPPORT));
    assert_eq!(socket(own, libc::AF_PACKET, libc::SOCK_RAW), refuse(libc::EAFNOSUPPORT));
    for (protocol, expected) in
        [(libc::IPPROTO_TCP, ALLOW), (libc::IPPROTO_MPTCP, ALLOW), (libc::IPPROTO_SCTP, REPORT)]
    {
        assert_eq!(socket_of(OPTIONS, libc::AF_INET, libc::SOCK_STREAM, protocol), expected, "{protocol}");
    }
    let open = FilterOptions { open_network: true, ..OPTIONS };
    assert_eq!(socket(OPTIONS, libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC), ALLOW);
    assert_eq!(socket(OPTIONS, libc::AF_UNIX, libc::SOCK_DGRAM), refuse(libc::EACCES));
    assert_eq!(socket(OPTIONS, libc::AF_INET, libc::SOCK_STREAM), ALLOW);
    assert_eq!(socket(OPTIONS, libc::AF_INET6, libc::SOCK_DGRAM | libc::SOCK_NONBLOCK), REPORT);
    assert_eq!(socket(open, libc::AF_INET, libc::SOCK_DGRAM), ALLOW);
    for family in [libc::AF_PACKET, libc::AF_VSOCK, libc::AF_ALG] {
        assert_eq!(socket(open, family, libc::SOCK_RAW), refuse(libc::EAFNOSUPPORT), "{family}");
    }
    let messages = |options, protocol| socket_of(options, libc::AF_NETLINK, libc::SOCK_RAW, protocol);
    for (options, expected) in [
        (open, ALLOW),
        (FilterOptions { namespaces: true, ..open }, ALLOW),
        (own, ALLOW),
        (OPTIONS, refuse(libc::EAFNOSUPPORT)),
    ] {
        assert_eq!(messages(options, libc::NETLINK_ROUTE), expected, "{options:?}");
        assert_eq!(messages(options, libc::NETLINK_KOBJECT_UEVENT), refuse(libc::EAFNOSUPPORT));
    }
}

#[test]
fn leases_and_signals_of_descriptors_are_refused() {
    let fcntl = |options, command: i32| {
        result(options, libc::SYS_fcntl, [0, u64::from(command.cast_unsigned()), 0, 0, 0, 0])
    };
    let unscoped = FilterOptions { scopes_signals: false, ..OPTIONS };
    for options in [OPTIONS, unscoped] {
        assert_eq!(fcntl(options, libc::F_SETLEASE), refuse(libc::EPERM));
        assert_eq!(fcntl(options, libc::F_GETFL), ALLOW);
    }
    assert_eq!(
        (fcntl(OPTIONS, libc::F_SETOWN), fcntl(unscoped, libc::F_SETOWN)),
        (ALLOW, refuse(libc::EPERM))
    );
    let [signal, report] = [OPTIONS, unscoped].map(|options| result(options, libc::SYS_tgkill, [0; 6]));
    assert_eq!((signal, report), (ALLOW, REPORT));
}

#[test]
fn namespaces_and_terminal_input_are_refused() {
    let clone =
        |flags: i32| result(OPTIONS, libc::SYS_clone, [u64::from(flags.cast_unsigned()), 0, 0, 0, 0, 0]);
    assert_eq!(clone(libc::SIGCHLD), ALLOW);
    for flag in [libc::CLONE_NEWUSER, libc::CLONE_NEWNS, libc::CLONE_NEWPID, libc::CLONE_NEWNET] {
        assert_eq!(clone(flag | libc::SIGCHLD), refuse(libc::EPERM), "{flag:x}");
    }
    let ioctl = |options, request| result(options, libc::SYS_ioctl, [0, request, 0, 0, 0, 0]);
    for request in ioctls::REFUSED {
        assert_eq!(ioctl(OPTIONS, u64::from(*request)), refuse(libc::EPERM), "{request:x}");
    }
    for request in ioctls::ALLOWED {
        assert_eq!(ioctl(OPTIONS, u64::from(*request)), ALLOW, "{request:x}");
    }
    // FS_IOC_SETFLAGS, EXT4_IOC_SETVERSION, FIFREEZE, FS_IOC_ENABLE_VERITY, BTRFS_IOC_SNAP_DESTROY, and unknown ones.
    for request in [0x4008_6602, 0x4008_6604, 0xc004_5877, 0x4080_6685, 0x5000_940f] {
        assert_eq!(ioctl(OPTIONS, request), refuse(libc::EPERM), "{request:x}");
    }
    for kind in ioctls::FILE_SYSTEM_TYPES {
        assert_eq!(ioctl(OPTIONS, u64::from(*kind) | 0xc010_00fe), refuse(libc::EPERM), "{kind:x}");
    }
    // TCGETS, FIONREAD, SIOCGIFCONF and FIOCLEX.
    for request in [0x5401, 0x541b, 0x8912, 0x5451] {
        assert_eq!(ioctl(OPTIONS, request), ALLOW, "{request:x}");
    }
    for request in ioctls::REFUSED_SIGNALS {
        let request = u64::from(*request);
        assert_eq!(ioctl(FilterOptions { scopes_signals: true, ..OPTIONS }, request), ALLOW);
        assert_eq!(ioctl(FilterOptions { scopes_signals: false, ..OPTIONS }, request), refuse(libc::EPERM));
    }
    let dumpable = u64::from(libc::PR_SET_DUMPABLE.cast_unsigned());
    assert_eq!(result(OPTIONS, libc::SYS_prctl, [dumpable, 0, 0, 0, 0, 0]), refuse(0));
    for (who, limit, expected) in [(0, 5, ALLOW), (7, 0, ALLOW), (7, 5, REPORT), (7, 5 << 32, REPORT)] {
        let arguments = [who, 0, limit, 0, 0, 0];
        assert_eq!(result(OPTIONS, libc::SYS_prlimit64, arguments), expected, "{arguments:?}");
    }
}
