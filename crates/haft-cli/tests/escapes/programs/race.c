// Threads that change what a system call is about while it is looked at. Whatever they reach, the test sees outside.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static char good[4096], bad[4096];
static char path[4096];
static const char *op;
static int rounds = 1500;
static volatile int done;
static struct sockaddr_in address, mine, theirs;
static struct { unsigned long long flags, mode, resolve; } how;
static struct { unsigned long long flags, rest[10]; } child;
static int hand = 200, inside, outside;

static void change(const char *at, int number) {
    char other[64];
    snprintf(other, sizeof other, "other-%d-%d", gettid(), number);
    int fd = -1;
    if (!strcmp(op, "open")) fd = open(at, O_WRONLY | O_TRUNC);
    else if (!strcmp(op, "append")) fd = open(at, O_WRONLY | O_APPEND);
    else if (!strcmp(op, "create")) fd = open(at, O_WRONLY | O_CREAT, 0644);
    else if (!strcmp(op, "creat")) fd = creat(at, 0644);
    else if (!strcmp(op, "truncate")) truncate(at, 1);
    else if (!strcmp(op, "unlink")) unlink(at);
    else if (!strcmp(op, "mkdir")) mkdir(at, 0755);
    else if (!strcmp(op, "rmdir")) rmdir(at);
    else if (!strcmp(op, "chmod")) chmod(at, 0777);
    else if (!strcmp(op, "chown")) chown(at, 12345, 12345);
    else if (!strcmp(op, "utime")) utimes(at, (struct timeval[2]){{1, 0}, {1, 0}});
    else if (!strcmp(op, "setxattr")) setxattr(at, "user.pwned", "pwned", 5, 0);
    else if (!strcmp(op, "mknod")) mknod(at, S_IFIFO | 0644, 0);
    else if (!strcmp(op, "symlink")) symlink("pwned", at);
    else if (!strcmp(op, "rename-onto")) {
        close(open(other, O_WRONLY | O_CREAT, 0644));
        rename(other, at);
        unlink(other);
    } else if (!strcmp(op, "rename-away")) {
        rename(at, other);
    } else if (!strcmp(op, "link-in")) {
        if (!link(at, other)) {
            fd = open(other, O_WRONLY | O_TRUNC);
            unlink(other);
        }
    } else if (!strcmp(op, "read")) {
        char text[256] = "";
        int from = open(at, O_RDONLY);
        if (from >= 0 && read(from, text, 255) > 0 && strstr(text, "anary")) printf("read: %s\n", text);
        if (from >= 0) close(from);
    }
    if (fd >= 0) {
        if (write(fd, "pwned\n", 6)) {}
        close(fd);
    }
}

static void *swap(void *none) {
    // Two names change places all the time: a directory and a link that leads out.
    while (!done) syscall(SYS_renameat2, AT_FDCWD, good, AT_FDCWD, bad, 2);
    return none;
}
static void *flip(void *none) {
    // Byte for byte, as a compiler's memcpy may be seen half done.
    for (int turn = 0; !done; turn++) strcpy(path, turn & 1 ? good : bad);
    return none;
}
static void *flip_address(void *none) {
    for (int turn = 0; !done; turn++) *(volatile struct sockaddr_in *)&address = turn & 1 ? mine : theirs;
    return none;
}
static void *flip_flags(void *none) {
    for (int turn = 0; !done; turn++) *(volatile unsigned long long *)&how.flags = turn & 1 ? O_RDONLY : O_WRONLY;
    return none;
}
static void *flip_clone(void *none) {
    for (int turn = 0; !done; turn++) *(volatile unsigned long long *)&child.flags = turn & 1 ? 0 : CLONE_NEWUSER;
    return none;
}
static void *flip_hand(void *none) {
    for (int turn = 0; !done; turn++) dup2(turn & 1 ? inside : outside, hand);
    return none;
}
static void *flip_cwd(void *none) {
    for (int turn = 0; !done; turn++) fchdir(turn & 1 ? inside : outside);
    return none;
}
static void *flip_names(void *none) {
    // A harmless directory takes a guarded name for moments.
    while (!done) {
        rename(good, bad);
        rename(bad, good);
    }
    return none;
}

// A kernel alone is so fast that the other thread would hardly come to its turn.
static int on(int round) {
    static struct timespec start;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!start.tv_sec) start = now;
    return round < rounds || (now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < 300;
}
static void *by_path(void *at) {
    for (int i = 0; on(i); i++) change(at, i);
    return NULL;
}
static void *by_hand(void *none) {
    for (int i = 0; on(i); i++) {
        int fd = openat(hand, "victim.txt", O_WRONLY | O_TRUNC);
        if (fd < 0) continue;
        if (write(fd, "pwned\n", 6)) {}
        close(fd);
    }
    return none;
}
static void *by_address(void *none) {
    for (int i = 0; on(i); i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        connect(fd, (struct sockaddr *)&address, sizeof address);
        close(fd);
        fd = socket(AF_INET, SOCK_DGRAM, 0);
        sendto(fd, "pwned", 5, MSG_DONTWAIT, (struct sockaddr *)&address, sizeof address);
        close(fd);
    }
    return none;
}
static void *by_flags(void *at) {
    for (int i = 0; on(i); i++) {
        int fd = syscall(SYS_openat2, AT_FDCWD, at, &how, sizeof how);
        if (fd < 0) continue;
        if (write(fd, "pwned\n", 6)) {}
        close(fd);
    }
    return NULL;
}
static void *by_clone(void *none) {
    struct stat before, after;
    stat("/proc/self/ns/user", &before);
    for (int i = 0; i < rounds / 10; i++) {
        child.rest[3] = SIGCHLD;
        long got = syscall(SYS_clone3, &child, 88UL);
        if (got == 0) _exit(stat("/proc/self/ns/user", &after) == 0 && after.st_ino != before.st_ino);
        int status = 0;
        if (got > 0 && waitpid(got, &status, __WALL) == got && WIFEXITED(status) && WEXITSTATUS(status)) puts("ESCAPED");
    }
    return none;
}

// Arguments: the kind of race, the operation, the good path, the bad path, the path to work on, and how often.
int main(int count, char **arguments) {
    if (count < 6) return 2;
    const char *kind = arguments[1];
    op = arguments[2];
    snprintf(good, sizeof good, "%s", arguments[3]);
    snprintf(bad, sizeof bad, "%s", arguments[4]);
    char *at = arguments[5];
    if (count > 6) rounds = atoi(arguments[6]);
    void *(*upset)(void *) = swap, *(*act)(void *) = by_path;
    if (!strcmp(kind, "memory")) { upset = flip; at = path; strcpy(path, good); }
    if (!strcmp(kind, "flags")) { upset = flip_flags; act = by_flags; }
    if (!strcmp(kind, "clone")) { upset = flip_clone; act = by_clone; }
    if (!strcmp(kind, "names")) upset = flip_names;
    if (!strcmp(kind, "hand") || !strcmp(kind, "cwd")) {
        inside = open(good, O_PATH | O_DIRECTORY);
        outside = open(bad, O_PATH | O_DIRECTORY);
        dup2(inside, hand);
        upset = !strcmp(kind, "hand") ? flip_hand : flip_cwd;
        if (!strcmp(kind, "hand")) act = by_hand;
    }
    if (!strcmp(kind, "address")) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        socklen_t size = sizeof mine;
        mine = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        theirs = mine;
        theirs.sin_port = htons(atoi(at));
        if (bind(fd, (struct sockaddr *)&mine, size) || listen(fd, 1000)) perror("listen");
        getsockname(fd, (struct sockaddr *)&mine, &size);
        address = mine;
        upset = flip_address;
        act = by_address;
    }
    pthread_t upsetting, acting[2];
    pthread_create(&upsetting, NULL, upset, NULL);
    for (int i = 0; i < 2; i++) pthread_create(&acting[i], NULL, act, at);
    for (int i = 0; i < 2; i++) pthread_join(acting[i], NULL);
    done = 1;
    pthread_join(upsetting, NULL);
    puts("raced");
    return 0;
}
