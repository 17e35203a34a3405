//! What compilers, interpreters and package managers do.

use crate::workloads::work::{Work, all_work, work};

/// Fails where the machine has no IPv6.
const IPV6: &str =
    r#"python3 -c 'import socket; socket.create_server(("::1", 0), family=socket.AF_INET6)' && true"#;

pub(crate) const TABLE: &[Work] = &[
    work("a compiler", "printf '#include <stdio.h>\\nint main(){puts(\"hi\");return 0;}' > a.c; cc -O2 a.c -o a; ./a; cc -c a.c; cc a.o -o b; ./b; ar rcs liba.a a.o; ls").leaves_anything(),
    work("make with many jobs", "for i in $(seq 20); do echo \"int f$i(void){return $i;}\" > f$i.c; done; printf 'all: $(patsubst %%.c,%%.o,$(wildcard *.c))\\n%%.o: %%.c\\n\\tcc -c $< -o $@\\n' > Makefile; make -sj8; ls *.o | wc -l; make -q && echo current").needs(&["make"]).leaves_anything(),
    work("python threads and asyncio", r"cat > p.py <<'X'
import asyncio, threading, subprocess, signal, os, selectors
async def main():
    loop = asyncio.get_running_loop()
    await asyncio.gather(*(asyncio.sleep(0.01) for _ in range(10)))
    print(await loop.run_in_executor(None, lambda: 6 * 7))
    p = await asyncio.create_subprocess_exec('echo', 'child', stdout=asyncio.subprocess.PIPE)
    print((await p.communicate())[0].decode().strip())
    server = await asyncio.start_server(lambda r, w: w.write(b'hello') or w.close(), '127.0.0.1', 0)
    r, w = await asyncio.open_connection(*server.sockets[0].getsockname())
    print(await r.read())
    loop.call_soon_threadsafe(lambda: None)
asyncio.run(main())
t = [threading.Thread(target=lambda i=i: open(f't{i}', 'w').write('x')) for i in range(16)]
[x.start() for x in t]; [x.join() for x in t]
print(len([n for n in os.listdir() if n.startswith('t')]))
X
python3 p.py"),
    work("python processes", r"cat > p.py <<'X'
import multiprocessing as m, os
from multiprocessing import shared_memory
from concurrent.futures import ProcessPoolExecutor
def square(x): return x * x
def put(q, lock, value):
    with lock: value.value += 1
    q.put(os.getpid() != os.getppid())
if __name__ == '__main__':
    for method in ('fork', 'spawn', 'forkserver'):
        c = m.get_context(method)
        with c.Pool(3) as pool: print(method, sum(pool.map(square, range(10))))
        q, lock, value = c.Queue(), c.Lock(), c.Value('i', 0)
        ps = [c.Process(target=put, args=(q, lock, value)) for _ in range(4)]
        [p.start() for p in ps]; print(all(q.get() for _ in ps)); [p.join() for p in ps]; print(value.value)
    s = shared_memory.SharedMemory(create=True, size=4096); s.buf[0] = 7
    other = shared_memory.SharedMemory(name=s.name); print(other.buf[0]); other.close(); s.close(); s.unlink()
    with m.Manager() as manager:
        d = manager.dict(); d['a'] = 1; print(dict(d))
    with ProcessPoolExecutor(2) as e: print(list(e.map(square, [1, 2, 3])))
X
python3 p.py"),
    work("python files", r"cat > p.py <<'X'
import ctypes, mmap, os, sqlite3, tempfile, shutil, pathlib, fcntl, errno
with open('m', 'wb') as f: f.write(bytes(8192))
with open('m', 'r+b') as f:
    m = mmap.mmap(f.fileno(), 0); m[0:4] = b'head'; m[-4:] = b'tail'; m.flush(); m.resize(16384); m[-1:] = b'!'; m.close()
print(os.path.getsize('m'), open('m', 'rb').read(4))
c = sqlite3.connect('s.db'); c.execute('create table t(a)'); c.executemany('insert into t values(?)', [(i,) for i in range(1000)]); c.commit()
print(c.execute('select sum(a) from t').fetchone()); c.execute('pragma journal_mode=wal'); c.execute('delete from t'); c.commit(); c.close(); os.unlink('s.db')
with tempfile.TemporaryDirectory() as d: pathlib.Path(d, 'x').write_text('y'); shutil.copytree(d, 'copied')
with tempfile.NamedTemporaryFile(dir='.') as f: f.write(b'x'); f.flush(); print(os.path.exists(f.name))
with tempfile.TemporaryFile(dir='.') as f: f.write(b'x'); f.seek(0); print(f.read())
fd = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o640); os.write(fd, b'nameless'); ctypes.CDLL(None).linkat(-100, b'/proc/self/fd/%d' % fd, -100, b'linked', 0x400); print(open('linked').read(), oct(os.stat('linked').st_mode))
os.replace('linked', 'replaced'); os.rename('replaced', 'renamed')
d = os.open('copied', os.O_RDONLY); os.mkdir('in', dir_fd=d); os.rename('x', 'in/z', src_dir_fd=d, dst_dir_fd=d); print(sorted(os.listdir('copied/in')))
with open('lock', 'w') as f: fcntl.flock(f, fcntl.LOCK_EX); fcntl.lockf(f, fcntl.LOCK_EX)
os.truncate('m', 10); os.posix_fallocate(os.open('m', os.O_RDWR), 0, 100); print(os.path.getsize('m'))
os.setxattr('m', 'user.note', b'mine'); print(os.getxattr('m', 'user.note'), os.listxattr('m')); os.removexattr('m', 'user.note')
fd = os.open('m', os.O_RDWR | os.O_DIRECT | os.O_SYNC); os.fsync(fd); os.fdatasync(fd); os.close(fd)
a = os.open('m', os.O_RDONLY); b = os.open('n', os.O_CREAT | os.O_RDWR); print(os.copy_file_range(a, b, 10), os.sendfile(b, a, 0, 10))
r = os.open('/proc/self/fd/%d' % b, os.O_RDWR); print(os.read(r, 4)); os.memfd_create('x')
print(open('/dev/fd/%d' % b, 'r+').read(2).encode())
X
python3 p.py").leaves_anything(),
    work("python's own environments", "python3 -m venv v > /dev/null; v/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'; v/bin/pip --version | cut -c1-3; rm -r v").needs(&["python3 -m venv -h;true"]),
    work("a server and its client", r"cat > s.py <<'X'
import http.server, threading, urllib.request, subprocess, socket
open('page', 'w').write('served')
s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)
s.RequestHandlerClass.log_message = lambda *a: None
threading.Thread(target=s.serve_forever, daemon=True).start()
port = s.server_address[1]
print(urllib.request.urlopen(f'http://127.0.0.1:{port}/page').read())
print(subprocess.run(['curl', '-s', f'http://127.0.0.1:{port}/page'], capture_output=True).stdout)
print(subprocess.run(['curl', '-s', f'http://localhost:{port}/page'], capture_output=True).stdout)
w = socket.socket(socket.AF_UNIX); w.bind('own.sock'); w.listen(1); x = socket.socket(socket.AF_UNIX); x.connect('own.sock'); x.send(b'unix'); print(w.accept()[0].recv(9))
a = socket.socket(socket.AF_UNIX); a.bind('\0haft-own'); a.listen(1); b = socket.socket(socket.AF_UNIX); b.connect('\0haft-own'); print('abstract')
p, q = socket.socketpair(); p.send(b'pair'); print(q.recv(9)); p.sendmsg([b'fd'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, b'\0\0\0\0')]); print(q.recvmsg(9, 99)[0])
X
python3 s.py; rm own.sock").needs(&["curl"]),
    work("a server on IPv6", r#"python3 -c 'import socket; i = socket.create_server(("::1", 0), family=socket.AF_INET6); j = socket.create_connection(i.getsockname()[:2]); print("six")'"#).needs(&[IPV6]),
    work("a server in one process, a client in another", ": > log; echo hi > page; python3 -u -m http.server --bind 127.0.0.1 0 >> log 2>&1 & p=$!; for i in $(seq 20000); do port=$(sed -n 's/.*port \\([0-9]*\\).*/\\1/p' log); [ -n \"$port\" ] && curl -sf http://127.0.0.1:$port/page && break; done; kill $p; wait || true").needs(&["curl"]).leaves_anything(),
    work("node", "node -e \"const h=require('http'); const s=h.createServer((q,r)=>r.end('ok')).listen(0,'127.0.0.1',async()=>{const r=await fetch('http://127.0.0.1:'+s.address().port); console.log(await r.text()); require('fs').writeFileSync('n','x'); const {Worker}=require('worker_threads'); new Worker('require(\\\"worker_threads\\\").parentPort.postMessage(1)',{eval:true}).on('message',m=>{console.log(m); console.log(require('child_process').execSync('echo child').toString().trim()); process.exit()})})\"").needs(&["node"]),
    work("npm", "mkdir -p dep app; echo '{\"name\":\"dep\",\"version\":\"1.0.0\",\"main\":\"i.js\"}' > dep/package.json; echo 'module.exports=42' > dep/i.js; cd app; echo '{\"name\":\"app\",\"version\":\"1.0.0\",\"scripts\":{\"go\":\"node -p \\\"require(\\x27dep\\x27)\\\"\",\"postinstall\":\"touch installed\"}}' | sed \"s/\\\\\\\\x27/'/g\" > package.json; npm install --offline --no-audit --no-fund --no-update-notifier ../dep > /dev/null; npm run -s go; ls").needs(&["npm"]).leaves_anything(),
    work("perl", "perl -e 'open(F, \">f\"); print F \"x\"; close F; rename(\"f\",\"g\"); print -s \"g\", \"\\n\"; fork or exit; wait; print \"ok\\n\"; system(\"echo sub\")'").needs(&["perl"]),
    work("cargo", "cargo new -q --vcs none one; cd one; cargo build -q --offline; ./target/debug/one; cargo test -q --offline 2>&1 | grep -c 'test result: ok'; cargo run -q --offline --release; cargo clean -q").needs(&["cargo"]).leaves_anything(),
    work("cargo with a build script and a dependency", "cargo new -q --vcs none --lib dep; cargo new -q --vcs none app; cd app; echo 'dep = { path = \"../dep\" }' >> Cargo.toml; echo 'fn main(){ std::fs::write(std::env::var(\"OUT_DIR\").unwrap() + \"/g.rs\", \"pub const X: u8 = 7;\").unwrap(); }' > build.rs; echo 'include!(concat!(env!(\"OUT_DIR\"), \"/g.rs\")); fn main(){ println!(\"{} {}\", X, dep::add(1, 2)); }' > src/main.rs; cargo run -q --offline -j2").needs(&["cargo"]).leaves_anything(),
    work("java, go, ruby and php as they are there", "for p in 'java -version' 'go version' 'ruby --version' 'php --version'; do if command -v ${p%% *} > /dev/null; then $p > /dev/null 2>&1; fi; done; echo fine"),
];

#[test]
fn languages_work() {
    all_work(TABLE);
}
