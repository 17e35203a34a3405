//! Attempts through /proc: at other processes, at Haft itself, at the kernel's settings.

use crate::escapes::attempt::{Escape, nothing_escapes, py, sh, they_are_real};

pub(crate) const TABLE: &[Escape] = &[
    py("write another's memory", "def run():\n  \
        fd = os.open('/proc/%d/mem' % VICTIM, os.O_RDWR); os.pwrite(fd, b'pwned', int(os.environ['ADDRESS']))\ntried(run)"),
    py("read another's memory", "def run():\n  \
        fd = os.open('/proc/%d/mem' % VICTIM, os.O_RDONLY); print(os.pread(fd, 64, int(os.environ['HIDDEN'])))\ntried(run)"),
    sh("read another's environment", "tr '\\0' '\\n' < /proc/$VICTIM/environ"),
    sh("read another's maps", "grep -q r-xp /proc/$VICTIM/maps && echo ESCAPED"),
    sh("read another's descriptor", "cat /proc/$VICTIM/fd/9"),
    sh("write through another's root", "echo pwned > /proc/$VICTIM/root$OUT/victim.txt"),
    sh("write through another's current directory", "echo pwned > /proc/$VICTIM/cwd/../outside/victim.txt; echo pwned > /proc/1/root$OUT/victim.txt"),
    sh("another's chance to be killed", "echo 500 > /proc/$VICTIM/oom_score_adj"),
    sh("another's name", "printf pwned > /proc/$VICTIM/comm; printf pwned > /proc/$VICTIM/task/$VICTIM/comm").untried(),
    sh("another's limits and maps", "echo 0 > /proc/$VICTIM/coredump_filter && echo ESCAPED; echo 0 > /proc/$VICTIM/uid_map && echo ESCAPED; echo 1 > /proc/$VICTIM/clear_refs && echo ESCAPED"),
    sh("the reaper's and Haft's environment", "tr '\\0' '\\n' < /proc/$REAPER/environ; tr '\\0' '\\n' < /proc/$HAFT/environ; cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -a KEY").untried(),
    sh("the reaper's and Haft's memory", "for p in $REAPER $HAFT; do (exec 3<>/proc/$p/mem) 2>/dev/null && echo ESCAPED; (exec 3</proc/$p/mem) 2>/dev/null && echo ESCAPED; done").untried(),
    sh("Haft's maps", "grep -q r-xp /proc/$HAFT/maps && echo ESCAPED; grep -q r-xp /proc/$REAPER/maps && echo ESCAPED").untried(),
    sh("Haft's descriptors", "for p in $REAPER $HAFT; do for f in /proc/$p/fd/*; do readlink $f | grep -q ledger && echo ESCAPED; head -c 16 $f 2>/dev/null | grep -a SQLite && echo ESCAPED; done; done").untried(),
    sh("Haft's root and current directory", "for p in $REAPER $HAFT; do echo pwned > /proc/$p/root$OUT/victim.txt; echo pwned > /proc/$p/cwd/../outside/victim.txt; cat /proc/$p/root$USER_HOME/.ssh/id_rsa; done").untried(),
    sh("Haft's chance to be killed", "for p in $REAPER $HAFT; do a=$(cat /proc/$p/oom_score_adj); echo 999 > /proc/$p/oom_score_adj; test \"$a\" = \"$(cat /proc/$p/oom_score_adj)\" || echo ESCAPED; done").untried(),
    sh("Haft's name in place of one's own", "a=$(cat /proc/$HAFT/comm); printf pwned > /proc/self/comm; printf pwned > /proc/thread-self/comm; cat /proc/$HAFT/task/*/comm /proc/$REAPER/comm | grep pwned && echo ESCAPED").untried(),
    sh("Haft's chance in place of one's own", "echo 777 > /proc/self/oom_score_adj; grep -l 777 /proc/$HAFT/oom_score_adj /proc/$REAPER/oom_score_adj && echo ESCAPED").untried(),
    py("Haft's descriptors in place of one's own", "for fd in range(3, 60):\n  \
        for base in ('/proc/self/fd/', '/dev/fd/', '/proc/thread-self/fd/'):\n    \
        try:\n      f = os.open(base + str(fd), os.O_RDWR)\n      print('ESCAPED', base, fd, os.readlink('/proc/self/fd/%d' % f))\n    \
        except OSError: pass").untried(),
    py("Haft's memory in place of one's own", "cell = ctypes.create_string_buffer(b'before')\n\
        fd = tried(os.open, '/proc/self/mem', os.O_RDWR)\n\
        if fd:\n  tried(os.pwrite, fd, b'after', ctypes.addressof(cell))\n  print('own' if cell.value == b'after' else 'ESCAPED')").untried(),
    sh("Haft's files in place of one's own", "echo pwned > /proc/self/cwd/../outside/victim.txt; echo pwned > /proc/self/root$OUT/new; cat /proc/self/environ | tr '\\0' '\\n' | grep -a canary").untried(),
    sh("a setting of the kernel", "echo pwned > /proc/sys/kernel/domainname").untried(),
    sh("what the kernel runs on a crash", "echo '|/bin/true' > /proc/sys/kernel/core_pattern").untried(),
    sh("settings of the kernel by sysctl", "sysctl -w kernel.domainname=pwned; sysctl -w vm.overcommit_memory=1").untried(),
    py("a setting opened only", "for name in ('kernel/hostname', 'kernel/modprobe', 'vm/drop_caches', 'kernel/printk', 'net/ipv4/ip_forward', 'fs/suid_dumpable'):\n  \
        try: os.open('/proc/sys/' + name, os.O_WRONLY); print('ESCAPED', name)\n  \
        except OSError as error: print(name, error)").as_root(),
    py("the big red button", "try: os.open('/proc/sysrq-trigger', os.O_WRONLY); print('ESCAPED')\nexcept OSError as error: print(error)").untried(),
    py("the kernel's memory", "for name in ('/proc/kcore', '/proc/kmsg'):\n  \
        try: fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK); os.read(fd, 4096); print('ESCAPED', name)\n  \
        except BlockingIOError: print('ESCAPED', name)\n  \
        except OSError as error: print(name, error)").as_root(),
    py("the kernel's objects", "import glob\n\
        for name in ['/sys/kernel/uevent_helper', '/sys/power/state', '/sys/fs/cgroup/cgroup.procs'] + glob.glob('/sys/fs/cgroup/*/cgroup.procs') + glob.glob('/sys/block/*/queue/read_ahead_kb'):\n  \
        try: os.open(name, os.O_WRONLY); print('ESCAPED', name)\n  \
        except OSError as error: print(name, error)").as_root(),
    sh("a cgroup of its own", "for c in /sys/fs/cgroup /sys/fs/cgroup/*; do mkdir $c/haft-escape 2>/dev/null && echo ESCAPED && rmdir $c/haft-escape; echo $$ > $c/cgroup.procs && echo ESCAPED; done 2>/dev/null").untried(),
    sh("the maps of identities", "echo '0 0 1' > /proc/self/uid_map && echo ESCAPED; echo deny > /proc/self/setgroups && echo ESCAPED; true").untried(),
];

#[test]
fn nothing_is_reached_through_proc() {
    nothing_escapes("procfs", TABLE);
}

#[test]
fn it_would_be_without_a_sandbox() {
    they_are_real("procfs", TABLE);
}
