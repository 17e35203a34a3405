// A process outside of the sandbox that an escape would touch: it tells at its end what was done to it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static char memory[64] = "untouched";
static char hidden[128];
static volatile sig_atomic_t signalled;
static char *shared;

static void noticed(int number) { signalled = number; }

static int bound(int family, int type, const struct sockaddr *address, socklen_t size) {
    int fd = socket(family, type, 0), on = 1;
    if (family != AF_UNIX) setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    if (fd < 0 || bind(fd, address, size)) { perror("bind"); exit(1); }
    if (type == SOCK_STREAM && listen(fd, 8)) { perror("listen"); exit(1); }
    return fd;
}

static int inet(int type, int *port) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int fd = bound(AF_INET, type, (struct sockaddr *)&at, size);
    getsockname(fd, (struct sockaddr *)&at, &size);
    *port = ntohs(at.sin_port);
    return fd;
}

static int local(int type, const char *dir, const char *name, int abstract) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char *path = at.sun_path;
    if (abstract) path++;
    snprintf(path, sizeof at.sun_path - 1, abstract ? "%.0s%s" : "%s/%s", dir, name);
    return bound(AF_UNIX, type, (struct sockaddr *)&at,
                 offsetof(struct sockaddr_un, sun_path) + strlen(path) + (abstract ? 1 : 0));
}

static void status(void) {
    struct rlimit files;
    cpu_set_t cpus;
    char oom[16] = "?", name[32] = "?";
    getrlimit(RLIMIT_NOFILE, &files);
    sched_getaffinity(0, sizeof cpus, &cpus);
    FILE *file = fopen("/proc/self/oom_score_adj", "r");
    if (file && fgets(oom, sizeof oom, file)) oom[strcspn(oom, "\n")] = 0;
    if (file) fclose(file);
    file = fopen("/proc/self/comm", "r");
    if (file && fgets(name, sizeof name, file)) name[strcspn(name, "\n")] = 0;
    if (file) fclose(file);
    printf("status memory=%s shared=%s nice=%d files=%llu cpus=%d scheduler=%d oom=%s name=%s signal=%d\n", memory,
           shared, getpriority(PRIO_PROCESS, 0), (unsigned long long)files.rlim_cur, CPU_COUNT(&cpus),
           sched_getscheduler(0), oom, name, (int)signalled);
}

// Arguments: a directory, a name for the abstract socket, a file to hold open. HIDDEN is what its memory hides.
int main(int count, char **arguments) {
    if (count < 4 || !getenv("HIDDEN")) return 2;
    int tcp, udp;
    signal(SIGURG, noticed);
    signal(SIGUSR1, noticed);
    signal(SIGCONT, noticed);
    snprintf(hidden, sizeof hidden, "%s", getenv("HIDDEN"));
    if (dup2(open(arguments[3], O_RDONLY), 9) < 0) return 3;
    int segment = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600), queue = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    shared = segment < 0 ? "none" : shmat(segment, NULL, 0);
    if (segment >= 0) strcpy(shared, "untouched");
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    grantpt(terminal);
    unlockpt(terminal);
    struct pollfd watched[] = {
        {0, POLLIN, 0},
        {inet(SOCK_STREAM, &tcp), POLLIN, 0},
        {inet(SOCK_DGRAM, &udp), POLLIN, 0},
        {local(SOCK_STREAM, arguments[1], "stream.sock", 0), POLLIN, 0},
        {local(SOCK_DGRAM, arguments[1], "datagram.sock", 0), POLLIN, 0},
        {local(SOCK_STREAM, "", arguments[2], 1), POLLIN, 0},
        {local(SOCK_DGRAM, "", strcat(strcpy(malloc(99), arguments[2]), "-datagram"), 1), POLLIN, 0},
        {terminal, POLLIN, 0},
    };
    const char *names[] = {"stdin", "tcp", "udp", "stream", "datagram", "abstract", "abstract-datagram", "terminal"};
    printf("ready VICTIM=%d ADDRESS=%lu HIDDEN=%lu TCP=%d UDP=%d SEGMENT=%d QUEUE=%d TERMINAL=%s ABSTRACT=%s\n",
           getpid(), (unsigned long)memory, (unsigned long)hidden, tcp, udp, segment, queue, ptsname(terminal),
           arguments[2]);
    status();
    fflush(stdout);
    for (;;) {
        if (poll(watched, 8, -1) < 0 && errno != EINTR) break;
        if (watched[0].revents) break;
        for (int i = 1; i < 8; i++) {
            // A terminal that nobody has open only reports a hang-up.
            if (!(watched[i].revents & POLLIN)) { if (watched[i].revents) watched[i].fd = -1; continue; }
            printf("contacted %s\n", names[i]);
            watched[i].fd = -1;
        }
    }
    status();
    if (msgrcv(queue, &(struct { long type; char text[64]; }){0}, 64, 0, IPC_NOWAIT) >= 0) printf("contacted queue\n");
    shmctl(segment, IPC_RMID, NULL);
    msgctl(queue, IPC_RMID, NULL);
    return 0;
}
