//! What programs with demands of their own do: servers, terminals, debuggers, copies, runtimes.

use crate::workloads::work::{Work, all_work, work};

const TMUX: &str = "command -v tmux && true";
const SCREEN: &str = "command -v screen && true";
const POSTGRES: &str = "ls /usr/lib/postgresql/*/bin/initdb && true";

pub(crate) const TABLE: &[Work] = &[
    work("rsync of files with the names of secrets", "mkdir -p src/d; echo 1 > src/env.js; echo 2 > src/d/env.production; echo 3 > src/.env.example; echo 4 > src/env.x; chmod 640 src/env.x; rsync -a src/ dst/; diff -r src dst; echo 5 >> src/env.js; rsync -ai --delete src/ dst/ | cut -c1-4; rsync -a --inplace src/ dst2/; rsync -a --link-dest=$PWD/dst src/ dst3/; stat -c %h dst3/env.x; find dst | sort").needs(&["rsync"]),
    work("tmux", "export SHELL=/bin/sh; tmux new-session -d -s one 'echo hello > f; tmux wait-for -S done; cat'; tmux wait-for done; cat f; tmux list-sessions -F '#S'; tmux kill-server; tmux -S own.sock new-session -d -s two cat; tmux -S own.sock ls -F '#S'; tmux -S own.sock kill-server; rm -f own.sock").needs(&[TMUX]),
    work("screen", "export SHELL=/bin/sh; mkfifo done; screen -dmS one sh -c 'echo hello > f; echo x > done; cat'; cat done; cat f; screen -ls | grep -c one; screen -S one -X quit; rm done").needs(&[SCREEN]),
    work("attaching a debugger to one's own", "sleep 1000 & p=$!; gdb -batch -p $p -ex 'info proc' 2>/dev/null | grep -c exe; kill $p; wait $p || echo $?").needs(&["gdb"]),
    work("valgrind", "printf '#include <stdlib.h>\\nint main(void) {char *p=malloc(3); p[3]=1; return 7;}' > e.c; cc -g e.c -o e; (valgrind -q ./e || echo $?) 2>&1 | sed 's/==[0-9]*==//' | grep -e 'Invalid write' -e '^7'; rm e").needs(&["valgrind"]),
    work("a database server", "export PATH=$(ls -d /usr/lib/postgresql/*/bin | tail -1):$PATH; if [ $(id -u) = 0 ]; then echo 'it does not run as root'; exit; fi; initdb -D data -A trust -U me > log1 2>&1 || { cat log1; exit 1; }; pg_ctl -D data -w -o \"-c listen_addresses= -k $PWD\" -l log start > /dev/null || { cat log; exit 1; }; psql -h $PWD -U me postgres -Atc 'create table t(a int); insert into t select generate_series(1,1000); select sum(a) from t'; pg_ctl -D data -w stop -m fast > /dev/null; pg_ctl -D data -w -o \"-c listen_addresses=127.0.0.1 -p 54329 -k $PWD -c dynamic_shared_memory_type=sysv -c shared_memory_type=sysv\" -l log start > /dev/null || { cat log; exit 1; }; psql -h 127.0.0.1 -p 54329 -U me postgres -Atc 'select count(*) from t'; pg_ctl -D data -w stop > /dev/null").needs(&[POSTGRES]).needs_namespaces().leaves_anything(),
    work("datagrams", r"cat > p.py <<'X'
import socket
a, b = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
a.bind(('127.0.0.1', 0)); b.sendto(b'one', a.getsockname()); print(a.recv(9))
b.connect(a.getsockname()); b.send(b'two'); print(a.recv(9))
X
python3 p.py").needs_namespaces(),
    work("pairs of datagram sockets", "python3 -c \"import socket; a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.send(b'1'); a.send(b'22'); print(b.recv(9), b.recv(9))\""),
    work("network interfaces of python", "python3 -c 'import socket; print([name for _, name in socket.if_nameindex()][:1])'").needs_namespaces(),
    work("all network interfaces", "python3 -c 'import socket; print(socket.if_nameindex())'").with(&["--network", "all"]),
    work("all network interfaces of node", "node -p 'Object.keys(os.networkInterfaces()).join()'").needs(&["node"]).with(&["--network", "all"]),
    work("network interfaces of node", "node -p \"JSON.stringify(require('os').networkInterfaces().lo)\"; node -e \"const d = require('dgram').createSocket('udp4'); d.on('message', m => { console.log(String(m)); d.close() }); d.bind(0, '127.0.0.1', () => d.send('hi', d.address().port, '127.0.0.1'))\"").needs(&["node"]).needs_namespaces(),
    work("network interfaces of java", r#"cat > I.java <<'X'
import java.net.*;
class I { public static void main(String[] a) throws Exception {
    System.out.println(NetworkInterface.getByName("lo").isLoopback() + " " + InetAddress.getLoopbackAddress());
    System.out.println(System.getProperty("user.home") + " " + System.getProperty("user.name")); } }
X
java I.java"#).needs(&["java -version && true", "command -v javac && true"]).needs_namespaces(),
    work("gradle", r#"mkdir -p $HOME/.gradle/caches/modules-2 src/main/java; export GRADLE_USER_HOME=$HOME/.gradle
echo 'class A { public static void main(String[] a) { System.out.println(1); } }' > src/main/java/A.java; echo 'apply plugin: "java"' > build.gradle
gradle --offline --no-daemon -q build > /dev/null 2>&1; java -cp build/classes/java/main A"#).needs(&["command -v gradle && true", "command -v javac && true"]).leaves_anything().needs_namespaces(),
    work("go", "mkdir m; cd m; go mod init example.org/m 2> /dev/null; printf 'package main\\nimport (\"fmt\";\"net\")\\nfunc main() { i, err := net.Interfaces(); fmt.Println(len(i) > 0, err, i[0].Name) }\\n' > main.go; printf 'package main\\nimport \"testing\"\\nfunc TestX(t *testing.T) {}\\n' > x_test.go; go run .; go test 2>&1 | grep -c ok; go vet; go env GOPATH GOMODCACHE").needs(&["go version && true"]).needs_namespaces(),
    work("exchanged folders", r"cat > p.py <<'X'
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def exchange(a, b):
    ctypes.set_errno(0); print(a, b, libc.renameat2(-100, a.encode(), -100, b.encode(), 2), ctypes.get_errno())
os.makedirs('a/x'); os.makedirs('b/y/z'); os.makedirs('c/d'); os.symlink('f', 'l')
for name in ('a/x/1', 'b/y/2', 'f'): open(name, 'w').write(name)
for pair in (('a', 'b'), ('a', 'f'), ('f', 'a'), ('a', 'a/y'), ('a/y', 'a'), ('l', 'b'), ('l', 'b'), ('a', 'none'), ('a/y', 'b/x'), ('c/d', 'a/y'), ('f', 'l'), ('f', 'l'), ('a', 'a'), ('a/', 'b/'), ('.', 'a'), ('f/', 'a')): exchange(*pair)
X
python3 p.py; find . | sort"),
    work("paths that are too long for one call", r"cat > p.py <<'X'
import os, socket
top = os.open('.', os.O_RDONLY)
for i in range(30): os.mkdir('d' * 200); os.chdir('d' * 200)
open('f', 'w').write('x'); open('f', 'a').write('y'); os.mkdir('m'); os.rename('f', 'g'); os.rename('m', 'm2'); os.link('g', 'h'); os.symlink('g', 's')
os.chmod('g', 0o600); os.utime('g', (5, 5)); os.fchmod(os.open('g', os.O_RDWR), 0o640); os.truncate('g', 1); os.setxattr('g', 'user.a', b'x'); print(open('s').read())
here = os.open('.', os.O_RDONLY); os.close(os.open('new', os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=here)); os.unlink('h'); os.rmdir('m2'); print(sorted(os.listdir('.')))
os.fchdir(top); os.rename('d' * 200, 'e')
X
python3 p.py; find e | wc -l; rm -r e"),
    work("names that look removed", r"cat > p.py <<'X'
import os
os.mkdir('d (deleted)'); open('d (deleted)/f', 'w').write('x'); open('x (deleted)', 'w').write('x'); os.chmod('x (deleted)', 0o600)
f = os.open('x (deleted)', os.O_RDWR); os.fchmod(f, 0o640); os.utime(f, (5, 5))
os.chdir('d (deleted)'); open('g', 'w').write('x'); os.mkdir('h'); os.rename('h', 'i (deleted)'); d = os.open('i (deleted)', os.O_RDONLY); os.mkdir('q', dir_fd=d); os.unlink('g')
os.chdir('i (deleted)'); os.rmdir('q'); os.rmdir('../i (deleted)'); os.mkdir('../i (deleted)')
try: open('x', 'w')
except FileNotFoundError: print('gone')
X
python3 p.py; find . | sort; stat -c %a x*"),
    work("errors of rare calls", r"cat > p.py <<'X'
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *a):
    ctypes.set_errno(0); r = getattr(libc, name)(*a); print(name, a, r < 0, errno.errorcode.get(ctypes.get_errno()))
def attribute(act, *a, **k):
    try: act(*a, **k); print('fine')
    except OSError as e: print(a[:2], errno.errorcode[e.errno])
open('f', 'w').close(); os.mkdir('d'); os.symlink('f', 'l'); os.mkfifo('p')
for a in (('p', 'user.a', b'x'), ('f', 'bogus.a', b'x'), ('f', 'user.', b'x'), ('f', 'user.a', b'x', os.XATTR_REPLACE), ('f', 'user.b', b'x' * 70000)): attribute(os.setxattr, *a)
attribute(os.removexattr, 'f', 'bogus.x'); attribute(os.setxattr, 'l', 'user.a', b'x', follow_symlinks=False)
AT, W, C = -100, os.O_WRONLY, os.O_WRONLY | os.O_CREAT
call('syscall', 452, AT, b'l', 0o600, 0x100); call('syscall', 452, AT, b'f', 0o600, 0x4000); call('fchownat', AT, b'f', -1, -1, 7); call('utimensat', AT, b'f', None, 7); call('utimensat', AT, b'', None, 0x1000); call('utimensat', AT, b'', None, 0); call('fchownat', 0, b'', -1, -1, 0)
call('truncate', b'd', 0); call('truncate', b'p', 0); call('mknod', b'n', 0o10600, 0); call('mknod', b'n3', 0o170000, 0); call('mknod', b'n4', 0o50000, 0)
for path in (b'f/', b'd', b'new/', b'f/x', b'l/', b'd/.', b'/', b'/etc/passwd/x', b'/etc/none/x', b'/dev/null/x', b'/proc/self/fd/99'): call('open', path, C, 0o644)
call('open', b'nn', C | os.O_DIRECTORY, 0o644); call('open', b'f', W | os.O_DIRECTORY); call('mkdir', b'/etc', 0o755); call('mkdir', b'/', 0o755); call('mkdir', b'/etc/passwd/x', 0o755); call('unlink', b'/none/x'); call('rename', b'f', b'/none/x'); call('rename', b'f', b'/etc/passwd/x'); call('unlink', b'/'); call('rmdir', b'/'); call('rename', b'/', b'x'); call('link', b'/etc', b'x'); call('symlink', b'', b'x')
call('rename', b'd', b'l'); call('rename', b'f', b'd/'); call('rename', b'f/', b'g'); call('rename', b'd/', b'e/'); call('rename', b'e', b'd'); call('renameat2', AT, b'f', AT, b'l', 1); call('renameat2', AT, b'f', AT, b'q', 16); call('renameat2', AT, b'd', AT, b'd', 2)
call('linkat', AT, b'l', AT, b'd/', 0x400); call('link', b'f', b'd/x/'); call('link', b'f/', b'x'); call('symlinkat', b'x', AT, b'y/'); call('unlinkat', AT, b'd', 0); call('unlinkat', AT, b'f', 0x200); call('unlinkat', AT, b'l/', 0); call('rmdir', b'l'); call('rmdir', b'..'); call('rmdir', b'.'); call('kill', 999999, 0); call('kill', -999999, 0)
X
python3 p.py"),
];

#[test]
fn programs_work() {
    all_work(TABLE);
}
