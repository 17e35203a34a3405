// Single system calls that nothing inside a sandbox may do. Says ESCAPED where the kernel let one through.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_open_tree
#define SYS_open_tree 428
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

static long number(const char *text) { return text ? strtol(text, NULL, 0) : 0; }

// What a call answered; ESCAPED is what the test looks for.
static int told(const char *name, long answer) {
    if (answer >= 0) printf("ESCAPED by %s: %ld\n", name, answer);
    else printf("%s: %s\n", name, strerror(errno));
    return 0;
}

static long clone_with(unsigned long flags) {
    struct { unsigned long long flags, rest[10]; } how = {.flags = flags, .rest = {0, 0, 0, SIGCHLD}};
    long child = syscall(SYS_clone3, &how, 88UL);
    if (child == 0) _exit(0);
    if (child > 0) waitpid(child, NULL, __WALL);
    return child;
}

static long old_clone_with(unsigned long flags) {
    long child = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
    if (child == 0) _exit(0);
    if (child > 0) waitpid(child, NULL, __WALL);
    return child;
}

static long own_listener(const char *path) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    long listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    if (listener < 0) return listener;
    if (fork() == 0) {
        int fd = openat(AT_FDCWD, path, O_WRONLY | O_TRUNC);
        if (fd >= 0 && write(fd, "pwned", 5)) {}
        _exit(0);
    }
    struct { struct seccomp_notif notice; } got = {0};
    ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &got.notice);
    struct seccomp_notif_resp answer = {.id = got.notice.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    wait(NULL);
    return -1;
}

static long bpf_map(void) {
    union bpf_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.map_type = BPF_MAP_TYPE_ARRAY;
    attributes.key_size = attributes.value_size = 4;
    attributes.max_entries = 1;
    return syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof attributes);
}

static long measured(long process) {
    struct perf_event_attr attributes = {.type = PERF_TYPE_SOFTWARE, .size = sizeof attributes};
    attributes.config = PERF_COUNT_SW_CPU_CLOCK;
    return syscall(SYS_perf_event_open, &attributes, process, -1, -1, 0);
}

static long by_handle(const char *path) {
    struct { struct file_handle head; unsigned char bytes[128]; } handle = {.head.handle_bytes = 128};
    int mount_id;
    if (name_to_handle_at(AT_FDCWD, path, &handle.head, &mount_id, 0)) return -1;
    int root = open("/", O_RDONLY | O_DIRECTORY);
    long fd = open_by_handle_at(root, &handle.head, O_WRONLY | O_TRUNC);
    if (fd >= 0 && write(fd, "pwned", 5)) {}
    return fd;
}

static long moved_into(const char *from, const char *into) {
    long tree = syscall(SYS_open_tree, AT_FDCWD, from, 1UL);
    if (tree < 0) return -1;
    return syscall(SYS_move_mount, tree, "", AT_FDCWD, into, 4UL);
}

#ifdef __x86_64__
// The 32-bit door: number 5 is open there, and 10 is unlink.
static long old_door(long call, const void *low, long a, long b) {
    long answer;
    __asm__ volatile("int $0x80" : "=a"(answer) : "a"(call), "b"(low), "c"(a), "d"(b) : "memory", "r8", "r9", "r10", "r11");
    if (answer < 0 && answer > -4096) { errno = -answer; return -1; }
    return (int)answer;
}
static const char *below_4g(const char *text) {
    char *low = (char *)syscall(SYS_mmap, 0x10000000, 4096, 3, 0x32, -1, 0);
    return low == (char *)-1 ? NULL : strcpy(low, text);
}
#endif

static long poke(long process, unsigned long address) {
    char text[] = "pwned";
    struct iovec mine = {text, 6}, theirs = {(void *)address, 6};
    return process_vm_writev(process, &mine, 1, &theirs, 1, 0);
}

static long peek(long process, unsigned long address) {
    char text[129] = "";
    struct iovec mine = {text, 128}, theirs = {(void *)address, 128};
    long got = process_vm_readv(process, &mine, 1, &theirs, 1, 0);
    printf("read: %s\n", text);
    return got;
}

static long traced(long process, unsigned long address, int seize) {
    if (ptrace(seize ? PTRACE_SEIZE : PTRACE_ATTACH, process, 0, 0)) return -1;
    if (seize) ptrace(PTRACE_INTERRUPT, process, 0, 0);
    waitpid(process, NULL, __WALL);
    if (address) ptrace(PTRACE_POKEDATA, process, address, 0x64656e7770L);
    return ptrace(PTRACE_DETACH, process, 0, 0);
}

static long taken(long process, long fd) {
    char text[200] = "";
    long handle = syscall(SYS_pidfd_open, process, 0);
    long mine = syscall(SYS_pidfd_getfd, handle, fd, 0);
    if (mine >= 0 && pread(mine, text, 199, 0) > 0) printf("read: %s\n", text);
    return mine;
}

static long into_namespace(long process, const char *kind) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/ns/%s", process, kind);
    int fd = open(path, O_RDONLY);
    return fd < 0 ? -1 : setns(fd, 0);
}

int main(int count, char **arguments) {
    const char *name = count > 1 ? arguments[1] : "", *a = count > 2 ? arguments[2] : NULL, *b = count > 3 ? arguments[3] : NULL;
#define CALL(word, expression) if (!strcmp(name, word)) return told(name, expression)
    CALL("unshare", unshare(number(a)));
    CALL("clone", old_clone_with(number(a)));
    CALL("clone3", clone_with(number(a)));
    CALL("setns", into_namespace(number(a), b));
    CALL("setns-pidfd", setns(syscall(SYS_pidfd_open, number(a), 0), number(b)));
    CALL("mount", mount("none", a, "tmpfs", 0, NULL));
    CALL("bind", mount(a, b, NULL, MS_BIND, NULL));
    CALL("remount", mount(NULL, a, NULL, MS_REMOUNT | MS_BIND, NULL));
    CALL("umount", umount2(a, number(b)));
    CALL("pivot_root", syscall(SYS_pivot_root, a, a));
    CALL("chroot", chroot(a));
    CALL("fsopen", syscall(SYS_fsopen, "tmpfs", 0));
    CALL("open_tree", syscall(SYS_open_tree, AT_FDCWD, a, 1UL));
    CALL("move_mount", moved_into(a, b));
    CALL("mount_setattr", syscall(SYS_mount_setattr, AT_FDCWD, a, 0, (unsigned long long[4]){0, 1, 0, 0}, 32));
    CALL("keyctl", syscall(SYS_keyctl, 0L, -3L, 1L));
    CALL("add_key", syscall(SYS_add_key, "user", "haft-escape", "x", 1UL, -2L));
    CALL("request_key", syscall(SYS_request_key, "user", "haft-escape", "x", -2L));
    CALL("bpf", bpf_map());
    CALL("perf_event_open", measured(number(a)));
    CALL("userfaultfd", syscall(SYS_userfaultfd, number(a)));
    CALL("io_uring_setup", syscall(SYS_io_uring_setup, 8, (char[240]){0}));
    CALL("kexec_load", syscall(SYS_kexec_load, 0, 0, NULL, 0));
    CALL("init_module", syscall(SYS_init_module, "", 0, ""));
    CALL("finit_module", syscall(SYS_finit_module, open("/dev/null", O_RDONLY), "", 0));
    CALL("open_by_handle_at", by_handle(a));
    CALL("syslog", syscall(SYS_syslog, 10, NULL, 0));
    CALL("sethostname", sethostname(a, strlen(a)));
    CALL("setdomainname", setdomainname(a, strlen(a)));
    CALL("settimeofday", settimeofday(NULL, &(struct timezone){0}));
    CALL("swapon", syscall(SYS_swapon, a, 0));
    CALL("acct", syscall(SYS_acct, a));
    CALL("quotactl", syscall(SYS_quotactl, 0x80000100, NULL, 0, NULL));
    // The numbers are wrong on purpose: who may not reboot is told so before they are looked at.
    if (!strcmp(name, "reboot")) {
        syscall(SYS_reboot, 1, 2, 3, NULL);
        return printf(errno == EINVAL ? "ESCAPED\n" : "reboot: refused\n") < 0;
    }
    CALL("setuid", setuid(0) ? -1 : mkdir(a, 0700));
    CALL("seccomp", own_listener(a));
    CALL("writev", poke(number(a), number(b)));
    CALL("readv", peek(number(a), number(b)));
    CALL("attach", traced(number(a), number(b), 0));
    CALL("seize", traced(number(a), number(b), 1));
    CALL("getfd", taken(number(a), number(b)));
    CALL("kill", kill(number(a), number(b)));
    CALL("tgkill", syscall(SYS_tgkill, number(a), number(a), number(b)));
    CALL("tkill", syscall(SYS_tkill, number(a), number(b)));
    CALL("sigqueue", sigqueue(number(a), number(b), (union sigval){0}));
    CALL("tgsigqueue", syscall(SYS_rt_tgsigqueueinfo, number(a), number(a), number(b), (int[32]){number(b), 0, -1}));
    CALL("pidfd_send_signal", syscall(SYS_pidfd_send_signal, syscall(SYS_pidfd_open, number(a), 0), number(b), NULL, 0));
    CALL("setpriority", setpriority(PRIO_PROCESS, number(a), 19));
    CALL("setpriority-user", setpriority(PRIO_USER, getuid(), 1));
    CALL("ioprio_set", syscall(SYS_ioprio_set, 1, number(a), 3 << 13));
    CALL("prlimit", prlimit(number(a), RLIMIT_NOFILE, &(struct rlimit){17, 17}, NULL));
    CALL("affinity", sched_setaffinity(number(a), sizeof(cpu_set_t), &(cpu_set_t){{1}}));
    CALL("scheduler", sched_setscheduler(number(a), SCHED_BATCH, &(struct sched_param){0}));
    // The owner of a descriptor's events is sent signals by the kernel.
    if (!strcmp(name, "setown")) {
        int ends[2];
        if (pipe(ends)) return 1;
        fcntl(ends[0], F_SETSIG, (int)number(b));
        fcntl(ends[0], F_SETOWN, (int)number(a));
        fcntl(ends[0], F_SETFL, O_ASYNC | O_NONBLOCK);
        return write(ends[1], "x", 1) != 1;
    }
#ifdef __x86_64__
    CALL("int80-open", old_door(5, below_4g(a), O_WRONLY | O_TRUNC, 0));
    CALL("int80-unlink", old_door(10, below_4g(a), 0, 0));
    CALL("int80-socket", old_door(359, (void *)2, 1, 0));
    CALL("x32-open", syscall(0x40000000L | 2, a, O_WRONLY | O_TRUNC, 0));
    CALL("x32-ptrace", syscall(0x40000000L | 521, PTRACE_SEIZE, number(a), 0, 0));
#else
    if (!strncmp(name, "int80", 5) || !strncmp(name, "x32", 3)) return 0;
#endif
    fprintf(stderr, "no such attempt: %s\n", name);
    return 99;
}
