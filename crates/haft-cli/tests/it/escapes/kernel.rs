//! Attempts by system calls that open a door in the kernel: namespaces, mounts, modules, other ways to call it.

use crate::escapes::attempt::{Escape, nothing_escapes, py, sh, they_are_real};

// Most change nothing when they succeed; they say that they did.
pub(crate) const TABLE: &[Escape] = &[
    sh("a namespace of users", "$BIN/calls unshare 0x10000000; unshare -Ur true 2>/dev/null && echo ESCAPED; true"),
    sh("a namespace of mounts", "$BIN/calls unshare 0x20000").as_root(),
    sh("a namespace of nets", "$BIN/calls unshare 0x40000000").as_root(),
    sh("a namespace of processes", "$BIN/calls unshare 0x20000000").as_root(),
    sh("a namespace of messages", "$BIN/calls unshare 0x08000000").as_root(),
    sh("a namespace of host names", "$BIN/calls unshare 0x04000000").as_root(),
    sh("a namespace of cgroups", "$BIN/calls unshare 0x02000000").as_root(),
    sh("a namespace of times", "$BIN/calls unshare 0x80").as_root(),
    sh("a clone in a namespace", "$BIN/calls clone 0x10000000; $BIN/calls clone 0x30000000"),
    sh("a newer clone in a namespace", "$BIN/calls clone3 0x10000000; $BIN/calls clone3 0x50000000"),
    sh("another's namespace", "for n in net mnt pid ipc uts user cgroup; do $BIN/calls setns $VICTIM $n; done").as_root(),
    sh("another's namespaces by descriptor", "$BIN/calls setns-pidfd $VICTIM 0x40000000; $BIN/calls setns-pidfd $HAFT 0x20000"),
    sh("a mount", "$BIN/calls mount $OUT/empty; mount -t tmpfs none $OUT/folder && echo ESCAPED; true").untried(),
    sh("a mount inside", "mkdir m; $BIN/calls mount m; mount --bind $OUT m && echo ESCAPED; true").untried(),
    sh("a binding", "mkdir m; $BIN/calls bind $OUT m && echo pwned > m/victim.txt").untried(),
    sh("a mount made writable", "$BIN/calls remount /; $BIN/calls mount_setattr /").untried(),
    sh("an unmount", "$BIN/calls umount /dev/shm 2; $BIN/calls umount /proc 2; $BIN/calls umount $OUT 2").untried(),
    sh("another root", "mkdir r; $BIN/calls pivot_root r; $BIN/calls chroot r; chroot . true 2>/dev/null && echo ESCAPED; true").untried(),
    sh("a root changed", "$BIN/calls chroot $WORK").as_root(),
    sh("a file system opened", "$BIN/calls fsopen").as_root(),
    sh("a tree opened", "$BIN/calls open_tree $OUT").as_root(),
    sh("a tree moved", "mkdir m; $BIN/calls move_mount $OUT m; echo pwned > m/victim.txt").untried(),
    sh("a mount by a helper", "fusermount -u $OUT 2>/dev/null && echo ESCAPED; su -c true daemon </dev/null 2>/dev/null && echo ESCAPED; sudo -n true 2>/dev/null && echo ESCAPED; true").untried(),
    sh("keys of the kernel", "$BIN/calls keyctl; $BIN/calls add_key; $BIN/calls request_key"),
    sh("programs for the kernel", "$BIN/calls bpf").as_root(),
    sh("measuring", "$BIN/calls perf_event_open 0; $BIN/calls perf_event_open $VICTIM"),
    sh("faults handled by oneself", "$BIN/calls userfaultfd 0; $BIN/calls userfaultfd 1"),
    sh("calls by a ring", "$BIN/calls io_uring_setup"),
    sh("another kernel", "$BIN/calls kexec_load; $BIN/calls init_module; $BIN/calls finit_module").untried(),
    sh("a file by its handle", "$BIN/calls open_by_handle_at $OUT/victim.txt").as_root(),
    sh("a file by the 32-bit door", "$BIN/calls int80-open $OUT/victim.txt; $BIN/calls int80-unlink $OUT/victim.txt"),
    sh("a socket by the 32-bit door", "$BIN/calls int80-socket").untried(),
    sh("a file by the third door", "$BIN/calls x32-open $OUT/victim.txt; $BIN/calls x32-ptrace $VICTIM").untried(),
    sh("the kernel's log", "$BIN/calls syslog; dmesg 2>/dev/null | grep -q . && echo ESCAPED; true").as_root(),
    sh("the machine's name", "$BIN/calls sethostname $(cat /proc/sys/kernel/hostname); $BIN/calls setdomainname x").untried(),
    sh("the machine's clock", "$BIN/calls settimeofday; date -s @0 2>/dev/null; true").untried(),
    sh("the machine's swap and accounts", "$BIN/calls swapon $WORK/notes.txt; $BIN/calls acct $WORK/notes.txt; $BIN/calls quotactl").untried(),
    sh("the machine's end", "$BIN/calls reboot").as_root(),
    sh("another user", "$BIN/calls setuid /haft-escaped; rmdir /haft-escaped 2>/dev/null; true").untried(),
    sh("a supervisor of one's own", "$BIN/calls seccomp $OUT/victim.txt"),
    sh("programs with another's rights", "for p in /usr/bin/passwd /bin/su /usr/bin/newgrp /bin/mount; do test -u $p && cp -p $p . 2>/dev/null; done; find . -perm -4000 -user 0 | grep -q . && echo ESCAPED; true").untried(),
    sh("rights given to a file", "cp /bin/true t; chmod u+s t; setcap cap_sys_admin+ep t 2>/dev/null && echo ESCAPED; python3 -c \"import os; os.setxattr('t', 'security.capability', bytes(20)); print('ESCAPED')\" 2>/dev/null; true").untried(),
    sh("capabilities", "grep -E 'Cap(Eff|Prm|Bnd|Amb)' /proc/self/status | grep -v 0000000000000000 | grep -v CapBnd && echo ESCAPED; grep -q 'NoNewPrivs:.1' /proc/self/status || echo ESCAPED").as_root(),
    py("privileges restored", "libc.prctl(38, 0, 0, 0, 0)\n\
        head = struct.pack('II', 0x20080522, 0); data = struct.pack('IIIIII', *([0xffffffff]*6))\n\
        print('ESCAPED' if libc.capset(head, data) == 0 else 'capset refused')").untried(),
    py("another user's identity", "for act in (os.setuid, os.setgid):\n  \
        try: act(12345); print('ESCAPED')\n  except OSError as error: print(error)\n\
        try: os.setgroups([0, 42]); print('ESCAPED')\nexcept OSError as error: print(error)").as_root(),
];

#[test]
fn no_door_of_the_kernel_opens() {
    nothing_escapes("kernel", TABLE);
}

#[test]
fn they_would_without_a_sandbox() {
    they_are_real("kernel", TABLE);
}
