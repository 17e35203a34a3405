//! The witness cannot be stalled, deceived or avoided.

use super::sandbox::{in_every_mode, python, run};
use crate::fixture::sandbox::{SandboxFixture, User};

#[test]
fn e08_socket_of_a_thread_is_the_one_that_is_judged() {
    in_every_mode(|fixture, namespaces| {
        // The thread has a table of descriptors of its own: the number of the bound socket is another socket there.
        let ran = python(
            fixture,
            namespaces,
            "import ctypes, os, socket, threading\n\
             libc = ctypes.CDLL(None)\n\
             bound = socket.socket(); bound.bind(('127.0.0.1', 0))\n\
             def work():\n    \
                 assert libc.unshare(0x400) == 0\n    \
                 other = socket.socket(); os.dup2(other.fileno(), bound.fileno())\n    \
                 print(libc.listen(bound.fileno(), 1), other.getsockname()[0])\n\
             thread = threading.Thread(target=work); thread.start(); thread.join()\n",
        );
        let address = if namespaces == "true" { "0.0.0.0" } else { "127.0.0.1" };
        assert_eq!(ran.stdout, format!("0 {address}\n"), "{namespaces}: {}", ran.stderr);
    });
}

#[test]
fn e14_no_signal_leaves_the_session_on_older_kernels() {
    for user in User::all() {
        for (namespaces, abi) in [("true", "1"), ("false", "1"), ("false", "5"), ("false", "7")] {
            let fixture = SandboxFixture::new(*user);
            let mut victim = fixture.bare("sleep").arg("1000").spawn().unwrap();
            // Signal 0 is not delivered to any process, but permission for it is checked as for any other.
            let script = format!(
                "import fcntl, os, signal, socket\n\
                 def tried(act):\n    \
                     try: act(); return True\n    \
                     except OSError: return False\n\
                 signal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
                 everything = tried(lambda: os.kill(-1, 0)); group = tried(lambda: os.kill(0, signal.SIGTERM))\n\
                 tried(lambda: os.kill({victim}, signal.SIGKILL)); tried(lambda: os.kill(-{victim}, signal.SIGKILL))\n\
                 a, b = socket.socketpair()\n\
                 tried(lambda: fcntl.fcntl(a, 10, signal.SIGKILL)); tried(lambda: fcntl.fcntl(a, fcntl.F_SETOWN, {victim}))\n\
                 tried(lambda: fcntl.ioctl(a, 0x8901, ({victim}).to_bytes(4, 'little')))\n\
                 signal.signal(signal.SIGIO, signal.SIG_IGN); fcntl.fcntl(a, fcntl.F_SETFL, os.O_ASYNC); b.send(b'x')\n\
                 child = os.fork()\n\
                 if child == 0: signal.signal(signal.SIGTERM, signal.SIG_DFL); signal.pause()\n\
                 os.kill(child, signal.SIGKILL)\n\
                 print(everything, group, os.waitpid(child, 0)[1])\n",
                victim = victim.id(),
            );
            fixture.file("programs/probe.py", &script);
            let program = format!("exec python3 -IS {}", fixture.path("programs/probe.py").display());
            let mut command = fixture.sandboxed(&[], &program);
            let ran = fixture.run(command.env("HAFT_NAMESPACES", namespaces).env("HAFT_LANDLOCK_ABI", abi));
            let is_scoped = namespaces == "true" || abi == "7";
            let expected = if is_scoped { "True True 9\n" } else { "False True 9\n" };
            assert_eq!(ran.stdout, expected, "{namespaces} {abi}: {}", ran.stderr);
            assert!(victim.try_wait().unwrap().is_none(), "{namespaces} {abi}: {}", ran.stderr);
            victim.kill().unwrap();
            victim.wait().unwrap();
        }
    }
}

#[test]
fn e20_full_backlog_and_leases_stop_only_their_own_process() {
    in_every_mode(|fixture, namespaces| {
        let ran = python(
            fixture,
            namespaces,
            "import fcntl, os, signal, socket\n\
             server = socket.socket(socket.AF_UNIX); server.bind('backlog'); server.listen(0)\n\
             full = []\n\
             while True:\n    \
                 client = socket.socket(socket.AF_UNIX); client.setblocking(False); full.append(client)\n    \
                 try: client.connect('backlog')\n    \
                 except BlockingIOError: break\n\
             read, write = os.pipe()\n\
             child = os.fork()\n\
             if child == 0:\n    \
                 os.write(write, b'x'); socket.socket(socket.AF_UNIX).connect('backlog'); os._exit(1)\n\
             os.read(read, 1)\n\
             for number in range(200): open('made-%d' % number, 'w').close()\n\
             os.kill(child, signal.SIGKILL); print('child', os.waitpid(child, 0)[1])\n\
             leased = os.open('made-1', os.O_RDONLY)\n\
             try: fcntl.fcntl(leased, fcntl.F_SETLEASE, fcntl.F_RDLCK); print('leased')\n\
             except OSError: print('no lease')\n\
             open('made-1', 'w').close()\n",
        );
        assert_eq!(ran.stdout, "child 9\nno lease\n", "{namespaces}: {}", ran.stderr);
        assert!(fixture.path("work/made-199").exists(), "{namespaces}");
    });
}

#[test]
fn e21_file_is_not_extended_beyond_the_limits_of_the_command() {
    in_every_mode(|fixture, namespaces| {
        let ran = python(
            fixture,
            namespaces,
            "import os, resource, signal\n\
             signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n\
             def tried(size):\n    \
                 try: os.truncate('big', size); return os.stat('big').st_size\n    \
                 except OSError as error: return error.strerror\n\
             open('big', 'w').close()\n\
             print(tried(15 << 40))\n\
             resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n\
             print(tried(1 << 21), tried(1 << 19))\n",
        );
        assert_eq!(ran.stdout, "File too large\nFile too large 524288\n", "{namespaces}: {}", ran.stderr);
    });
}

#[test]
fn e22_blocked_opens_are_bounded_and_end_with_their_callers() {
    in_every_mode(|fixture, namespaces| {
        let ran = python(
            fixture,
            namespaces,
            "import errno, os, signal, threading\n\
             os.mkfifo('pipe')\n\
             children, results = [], []\n\
             read, write = os.pipe()\n\
             for _ in range(100):\n    \
                 child = os.fork()\n    \
                 if child == 0:\n        \
                     try: os.open('pipe', os.O_WRONLY)\n        \
                     except OSError as error: os.write(write, b'x'); os._exit(error.errno)\n        \
                     os._exit(0)\n    \
                 children.append(child)\n\
             # Those above the bound fail at once.\n\
             refused = b''\n\
             while len(refused) < 36: refused += os.read(read, 100)\n\
             open('made', 'w').close()\n\
             for child in children: os.kill(child, signal.SIGKILL)\n\
             codes = [os.waitpid(child, 0)[1] for child in children]\n\
             print(len(refused), codes.count(9), codes.count(errno.EAGAIN << 8))\n\
             # A signal interrupts a blocked call.\n\
             class Interrupted(Exception): pass\n\
             def handler(*_): raise Interrupted\n\
             signal.signal(signal.SIGALRM, handler); signal.setitimer(signal.ITIMER_REAL, 0.05)\n\
             try: os.open('pipe', os.O_WRONLY)\n\
             except Interrupted: print('interrupted')\n\
             # And one that is answered later goes on.\n\
             reader = os.fork()\n\
             if reader == 0: os._exit(len(open('pipe').read()))\n\
             with open('pipe', 'w') as pipe: pipe.write('seven b')\n\
             print(os.waitpid(reader, 0)[1] >> 8)\n",
        );
        assert_eq!(ran.stdout, "36 64 36\ninterrupted\n7\n", "{namespaces}: {}", ran.stderr);
        assert!(fixture.path("work/made").exists(), "{namespaces}");
    });
}

#[test]
fn umask_of_an_ended_process_is_not_used_for_another() {
    in_every_mode(|fixture, namespaces| {
        // Threads that share their umask, and processes that end after they have changed theirs.
        let ran = run(
            fixture,
            namespaces,
            "for i in $(seq 60); do (umask 077; : > private-$i); : > plain-$i; (umask 0; : > open-$i); done\n\
             stat -c %a private-* | sort -u; stat -c %a plain-* | sort -u; stat -c %a open-* | sort -u",
        );
        assert_eq!(ran.stdout, "600\n644\n666\n", "{namespaces}: {}", ran.stderr);
    });
}

#[test]
fn semaphores_and_shared_memory_are_the_sessions_own() {
    in_every_mode(|fixture, namespaces| {
        let name = fixture.mark();
        let ran = python(
            fixture,
            namespaces,
            &format!(
                "from multiprocessing import shared_memory, get_context\n\
                 made = shared_memory.SharedMemory('{name}', create=True, size=100)\n\
                 again = shared_memory.SharedMemory('{name}')\n\
                 made.buf[0] = 7; print(again.buf[0], get_context('fork').Lock().acquire())\n\
                 again.close(); made.close(); open('/dev/shm/kept-{name}', 'w').write('x')\n"
            ),
        );
        assert_eq!(ran.stdout, "7 True\n", "{namespaces}: {}", ran.stderr);
        for made in [name.clone(), format!("kept-{name}")] {
            assert!(!std::path::Path::new("/dev/shm").join(made).exists(), "{namespaces}");
        }
    });
}

#[test]
fn e19_shared_memory_counts() {
    in_every_mode(|fixture, namespaces| {
        for (kind, make) in [
            ("memfd", "fd = os.memfd_create('x')\nfor _ in range(400): os.write(fd, bytes(1 << 20))"),
            ("mapping", "m = mmap.mmap(-1, 400 << 20)\nfor at in range(0, 400 << 20, 4096): m[at] = 1"),
            (
                "in flight",
                "kept = []\n\
                 for _ in range(40):\n    \
                     fd = os.memfd_create('x'); os.write(fd, bytes(10 << 20)); pair = socket.socketpair()\n    \
                     socket.send_fds(pair[0], [b'x'], [fd]); os.close(fd); kept.append(pair)",
            ),
            (
                "page tables",
                "m = mmap.mmap(-1, 200 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, mmap.PROT_READ)\n\
                 m.madvise(mmap.MADV_NOHUGEPAGE)\n\
                 for at in range(0, 200 << 30, 2 << 20): m[at]",
            ),
            (
                "file",
                "fd = os.open('/dev/shm/x', os.O_CREAT | os.O_RDWR)\nfor _ in range(400): os.write(fd, bytes(1 << 20))",
            ),
        ] {
            if kind == "file" && namespaces == "false" {
                // There it is a file on the disk.
                continue;
            }
            fixture.file(
                "programs/probe.py",
                &format!("import mmap, os, signal, socket\n{make}\nsignal.pause()\n"),
            );
            let script = format!("python3 -IS {}", fixture.path("programs/probe.py").display());
            let mut command = fixture.sandboxed(&["--max-memory", "200M", "--timeout", "100000"], &script);
            let ran = fixture.run(command.env("HAFT_NAMESPACES", namespaces));
            assert!(
                ran.stderr.contains("it used more than 200 MiB of memory"),
                "{kind} {namespaces}: {} {}",
                ran.code,
                ran.stderr
            );
        }
    });
}
