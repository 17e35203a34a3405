//! Calls that fail fail inside as they do outside, and those that succeed leave the same.

use crate::workloads::work::{Work, all_work, work};

const ERRORS: &str = r"cat > /dev/null; cat > p.py <<'X'
import os, errno, ctypes, stat, socket, signal, time, threading
libc = ctypes.CDLL(None, use_errno=True)
def t(name, act, *a, **k):
    try: r = act(*a, **k); print(name, 'fine', r if isinstance(r, (int, bytes)) and name[0] != '!' else '')
    except OSError as e: print(name, errno.errorcode[e.errno])
    except Exception as e: print(name, type(e).__name__)
open('f', 'w').write('12345'); os.mkdir('d'); os.mkdir('full'); open('full/x', 'w').close(); os.symlink('loop', 'loop'); os.symlink('f', 'l'); os.symlink('nowhere', 'n'); os.symlink('d', 'ld')
W, R, C, X, T = os.O_WRONLY, os.O_RDONLY, os.O_CREAT, os.O_EXCL, os.O_TRUNC
long, deep = 'x' * 300, 'a/' * 3000
for name in ('f', 'd', 'l', 'n', 'loop', 'none', 'none/x', 'f/x', 'f/', 'd/', 'ld', 'ld/', 'd/x', 'd/x/', '', '.', './', long, deep, 'd/../f', 'l/x', 'loop/x'):
    k = name[:12]
    t('open w ' + k, lambda: os.close(os.open(name, W)))
    t('open rw trunc ' + k, lambda: os.close(os.open(name, os.O_RDWR | T)))
    t('open nofollow ' + k, lambda: os.close(os.open(name, W | os.O_NOFOLLOW)))
    t('open dir w ' + k, lambda: os.close(os.open(name, W | os.O_DIRECTORY)))
    t('create excl ' + k, lambda: os.close(os.open(name, W | C | X)))
    t('open path ' + k, lambda: os.close(os.open(name, os.O_PATH | W)))
    t('creat ' + k, lambda: print(libc.creat(name.encode(), 0o600) >= 0, ctypes.get_errno() if 0 else ''))
    t('unlink ' + k, os.unlink, name) if name not in ('f', 'l', 'n', 'loop', 'ld') else None
    t('rmdir ' + k, os.rmdir, name) if name not in ('d', 'd/') else None
    t('mkdir ' + k, os.mkdir, name)
    t('symlink ' + k, os.symlink, 'x', name)
    t('link from ' + k, os.link, name, 'new-link')
    t('link to ' + k, os.link, 'f', name)
    t('rename from ' + k, os.rename, name, 'none/y')
    t('rename to ' + k, os.rename, 'nothing', name)
    t('mknod ' + k, os.mknod, name)
    t('truncate ' + k, os.truncate, name, 3)
    t('chmod ' + k, os.chmod, name, 0o700)
    t('chown ' + k, os.chown, name, -1, -1)
    t('utime ' + k, os.utime, name)
    t('setxattr ' + k, os.setxattr, name, 'user.a', b'b')
    t('removexattr ' + k, os.removexattr, name, 'user.zz')
    t('bind ' + k, lambda: socket.socket(socket.AF_UNIX).bind(name)) if len(name) < 90 and name else None
    t('connect ' + k, lambda: socket.socket(socket.AF_UNIX).connect(name)) if len(name) < 90 and name else None
    print(k, sorted(os.listdir('.')))
    for new in sorted(set(os.listdir('.')) - {'f', 'd', 'full', 'loop', 'l', 'n', 'ld', 'p.py'}):
        p = new
        os.rmdir(p) if os.path.isdir(p) and not os.path.islink(p) else os.unlink(p)
    for new in os.listdir('d'):
        p = 'd/' + new
        os.rmdir(p) if os.path.isdir(p) and not os.path.islink(p) else os.unlink(p)
for a, b in (('full', 'd'), ('d', 'full'), ('f', 'd'), ('d', 'f'), ('d', 'd/x'), ('d', 'd'), ('f', 'f'), ('.', 'z'), ('d', '..'), ('f', 'none/x'), ('f', 'f/x'), ('f', 'z/'), ('d/.', 'z'), ('l', 'l/x')):
    t('rename %s %s' % (a, b), os.rename, a, b); print(sorted(os.listdir('.')))
    if not os.path.isdir('d'): os.mkdir('d')
for a, b, flag in (('f', 'd', 1), ('f', 'full', 2), ('full', 'f', 2), ('f', 'none', 2), ('f', 'z', 1), ('z', 'f', 3), ('z', 'f', 8), ('d', 'full/deeper', 2), ('z', 'f', 0)):
    ctypes.set_errno(0); print('renameat2', a, b, flag, libc.renameat2(-100, a.encode(), -100, b.encode(), flag), ctypes.get_errno(), sorted(os.listdir('.')))
import shutil; shutil.rmtree('f') if os.path.isdir('f') else None; open('f', 'w').write('12345')
for fd in (-1, 999, 0):
    for name in ('fchmod', 'fchown', 'ftruncate', 'fsync'):
        ctypes.set_errno(0); getattr(libc, name)(fd, *([0] if name != 'fchown' else [-1, -1])) if fd != 0 else None; print(name, fd, ctypes.get_errno())
t('dirfd bad', os.open, 'x', W | C, dir_fd=999); t('dirfd file', os.open, 'x', W | C, dir_fd=os.open('f', R))
t('null', libc.open, None, W); t('fault', lambda: (ctypes.set_errno(0), libc.open(ctypes.c_void_p(1), W), ctypes.get_errno())[2])
t('rmdir full', os.rmdir, 'full'); t('rmdir dot', os.rmdir, 'd/.'); t('unlink dir', os.unlink, 'd'); t('unlink slash', os.unlink, 'f/')
t('unlinkat flags', lambda: (ctypes.set_errno(0), libc.unlinkat(-100, b'f', 0x9999), ctypes.get_errno())[2])
t('linkat flags', lambda: (ctypes.set_errno(0), libc.linkat(-100, b'f', -100, b'g', 0x9999), ctypes.get_errno())[2])
t('link dir', os.link, 'd', 'dd'); t('link follow', os.link, 'l', 'followed', follow_symlinks=True); t('link self', os.link, 'l', 'kept', follow_symlinks=False); print(os.path.islink('kept') if os.path.lexists('kept') else None, os.path.islink('followed') if os.path.lexists('followed') else None)
t('access', os.access, 'f', os.W_OK); t('access 2', os.access, 'none', os.W_OK); t('faccessat2', lambda: libc.faccessat(-100, b'd', 2, 0x200))
t('tmpfile', lambda: os.fstat(os.open('.', os.O_TMPFILE | os.O_RDWR, 0o600)).st_nlink); t('tmpfile in file', os.open, 'f', os.O_TMPFILE | os.O_RDWR); t('tmpfile ro', os.open, '.', os.O_TMPFILE | R)
t('negative', os.truncate, 'f', -1); t('mknod dir', os.mknod, 'zz', stat.S_IFDIR | 0o755); t('mknod link', os.mknod, 'zz', stat.S_IFLNK | 0o755); t('mkfifo', os.mkfifo, 'pipe'); t('nonblock', os.open, 'pipe', W | os.O_NONBLOCK); t('chmod link', lambda: os.chmod('l', 0o600, follow_symlinks=False))
fd = os.open('f', os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | C, 0o644); import fcntl
print(oct(fcntl.fcntl(fd, fcntl.F_GETFL)), fcntl.fcntl(fd, fcntl.F_GETFD)); fd = os.open('f', os.O_RDWR); print(oct(fcntl.fcntl(fd, fcntl.F_GETFL)), os.get_inheritable(fd)); low = libc.open(b'f', W | os.O_SYNC | os.O_NOATIME, 0); print(oct(fcntl.fcntl(low, fcntl.F_GETFL)) if low >= 0 else low, fcntl.fcntl(low, fcntl.F_GETFD) if low >= 0 else '')
os.close(5) if 0 else None
a = os.open('f', R); b = os.open('f', os.O_RDWR); print(b - a); os.close(a); c = os.open('f', W); print(c == a)
signal.signal(signal.SIGALRM, lambda *a: None); signal.siginterrupt(signal.SIGALRM, False); signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005); count = 0
for i in range(3000):
    os.close(os.open('sig', W | C | X)); os.rename('sig', 'sig2'); os.unlink('sig2'); count += 1
signal.setitimer(signal.ITIMER_REAL, 0); print('signals', count)
X
python3 p.py";

pub(crate) const TABLE: &[Work] = &[
    // Before Linux 6.2 the kernel would truncate what it opens, so that Haft itself says why it does not, less exactly.
    work("errors of calls", ERRORS).leaves_anything().needs_landlock(3),
    work("working in a removed folder", "mkdir d; cd d; rmdir ../d; (echo x > f) 2>/dev/null || echo no; mkdir x 2>/dev/null || echo no; cd ..; ls"),
    work("descriptors of moved and removed files", "exec 5> f; rm f; echo x >&5; cat /proc/self/fd/5 2>/dev/null || true; exec 5>&-; exec 6> g; mv g h; echo y >&6; exec 6>&-; cat h; echo z > h; exec 7< h; mv h i; cat <&7"),
    work("locked folders", "mkdir d; chmod 555 d; if [ $(id -u) != 0 ]; then (touch d/x) 2>/dev/null || echo refused; (rmdir d/none) 2>/dev/null || echo refused; else echo refused; echo refused; fi; chmod 755 d; touch f; chmod 444 f; if [ $(id -u) != 0 ]; then (echo x > f) 2>/dev/null || echo refused; else echo refused; fi; chmod 644 f"),
    work("limits of one's own", "ulimit -f 1; (head -c 100000 /dev/zero > f) 2>/dev/null || echo held; stat -c %s f; (ulimit -n 10; exec 3>a 4>b; echo fine); (ulimit -v 200000; true); ulimit -S -c; nice -n 5 true; echo ok"),
    work("exit codes", "for i in 0 1 2 126 127 255; do (exit $i) && echo 0 || echo $?; done; sh -c 'kill -9 $$' || echo $?; sh -c 'kill -TERM $$' || echo $?; /nonexistent 2>/dev/null || echo $?; ./ 2>/dev/null || echo $?"),
    work("many threads on many files", "cat > t.c <<'X'\n#include <pthread.h>\n#include <stdio.h>\n#include <fcntl.h>\n#include <unistd.h>\nvoid *f(void *n){char a[32],b[32];for(int i=0;i<200;i++){sprintf(a,\"a%ld-%d\",(long)n,i);sprintf(b,\"b%ld-%d\",(long)n,i);int fd=open(a,O_CREAT|O_WRONLY|O_EXCL,0644);if(fd<0||write(fd,a,3)!=3)perror(a);close(fd);if(rename(a,b)||unlink(b))perror(b);}return 0;}\nint main(){pthread_t t[16];for(long i=0;i<16;i++)pthread_create(t+i,0,f,(void*)i);for(int i=0;i<16;i++)pthread_join(t[i],0);puts(\"done\");}\nX\ncc -pthread t.c -o t; ./t; rm t"),
    work("vfork and spawn", "cat > v.c <<'X'\n#include <spawn.h>\n#include <stdio.h>\n#include <sys/wait.h>\n#include <unistd.h>\nextern char **environ;\nint main(){pid_t p;char *a[]={\"touch\",\"spawned\",0};posix_spawnp(&p,\"touch\",0,0,a,environ);int s;waitpid(p,&s,0);printf(\"%d\\n\",s);if(!(p=vfork())){execlp(\"touch\",\"touch\",\"vforked\",(char*)0);_exit(1);}waitpid(p,&s,0);printf(\"%d\\n\",s);}\nX\ncc v.c -o v; ./v; ls; rm v"),
    work("an added folder", "echo x > ../home/../outside/added.txt; cat ../outside/added.txt; mkdir ../outside/d; rm -r ../outside/d").with(&["--add-dir", "../outside"]),
    work("a scope that only reads", "cat /etc/passwd > /dev/null; ls / > /dev/null; echo fine; python3 -c 'print(1)'; git --version > /dev/null; f=$(mktemp); echo t > $f; cat $f").with(&["--sandbox", "read-only"]),
];

#[test]
fn calls_answer_as_they_do_outside() {
    all_work(TABLE);
}
