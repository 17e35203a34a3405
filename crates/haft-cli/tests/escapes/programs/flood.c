// Programs that use up what there is: processes, memory, descriptors, files, notifications. Each one is bounded, so
// that a sandbox that does not hold it leaves a machine that still answers.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static long most;

static void forks(void) {
    long *count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    while (__atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST) <= most)
        if (fork() < 0) break;
    if (__atomic_load_n(count, __ATOMIC_SEQ_CST) < most) printf("held at %ld\n", *count);
    fflush(stdout);
    pause();
}

static void slabs(int touch) {
    for (long mebibytes = 0; mebibytes < most; mebibytes += 64) {
        char *slab = mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (touch ? 0 : MAP_NORESERVE), -1, 0);
        if (slab == MAP_FAILED) {
            printf("held at %ld MiB: %s\n", mebibytes, strerror(errno));
            return;
        }
        if (touch) {
            // Large pages, since small ones take most of the time.
            madvise(slab, 64 << 20, MADV_HUGEPAGE);
            for (long at = 0; at < 64 << 20; at += 4096) slab[at] = 1;
        }
    }
    puts("not held");
}

static void *noise(void *own) {
    char name[64];
    snprintf(name, sizeof name, "noise-%ld", (long)own);
    for (;;) {
        close(open(name, O_CREAT | O_WRONLY, 0644));
        chmod(name, 0600);
        unlink(name);
    }
    return NULL;
}

int main(int count, char **arguments) {
    const char *kind = count > 1 ? arguments[1] : "";
    most = count > 2 ? atol(arguments[2]) : 0;
    if (!strcmp(kind, "forks")) forks();
    if (!strcmp(kind, "memory")) slabs(0);
    if (!strcmp(kind, "touched")) slabs(1);
    if (!strcmp(kind, "descriptors")) {
        long got = 0;
        while (got < most && open("/dev/null", O_RDONLY) >= 0) got++;
        printf(got < most ? "held at %ld\n" : "not held at %ld\n", got);
    }
    if (!strcmp(kind, "files"))
        for (long i = 0; i < most; i++) {
            char name[32];
            snprintf(name, sizeof name, "f%ld", i);
            int fd = open(name, O_CREAT | O_WRONLY, 0644);
            if (fd < 0) return perror(name), 1;
            close(fd);
        }
    if (!strcmp(kind, "deep"))
        for (long i = 0; i < most; i++)
            if (mkdir("d", 0755) || chdir("d")) return perror("deep"), 1;
    if (!strcmp(kind, "noise")) {
        for (long i = 0; i < most; i++) pthread_create(&(pthread_t){0}, NULL, noise, (void *)i);
        pause();
    }
    if (!strcmp(kind, "grow")) {
        struct stat at;
        int fd = open("grown", O_CREAT | O_RDWR, 0644);
        signal(SIGXFSZ, SIG_IGN);
        int failed = ftruncate(fd, most << 30);
        fstat(fd, &at);
        printf(failed ? "held: %s\n" : "not held: %s\n", failed ? strerror(errno) : "");
    }
    return 0;
}
