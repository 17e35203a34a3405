//! What was judged is what is acted on: paths through `/proc`, directories of another mount namespace, links.

use std::fs::{self, File};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use super::sandbox::{in_every_mode, python};

#[test]
fn paths_above_the_own_proc_directory_stay_in_the_commands_view() {
    in_every_mode(|fixture, namespaces| {
        // With a secret in the workspace the witness opens every file.
        fixture.file("work/.env", "CANARY\n");
        fixture.file("home/.hidden", "CANARY\n");
        let name = format!("{}-own-proc", fixture.mark());
        let shared = std::path::Path::new("/tmp").join(&name);
        let socket = UnixListener::bind(&shared).unwrap();
        socket.set_nonblocking(true).unwrap();
        let ran = python(
            fixture,
            namespaces,
            &format!(
                "import os, socket\n\
                 home = {home:?}\n\
                 def tried(act, *a):\n    \
                     try: return act(*a)\n    \
                     except OSError: return None\n\
                 for up in ('/proc/self/../..', '/proc/thread-self/../../../..', '/dev/fd/../../..', '/proc/self/task/../../..', '/proc/self/root/..', '/proc/self/fd/../../..'):\n    \
                     tried(os.mkdir, up + '/tmp/{name}-made')\n    \
                     tried(os.mkdir, up + home + '/.made')\n    \
                     tried(os.symlink, '/x', up + home + '/.linked')\n    \
                     tried(os.unlink, up + '/tmp/{name}')\n    \
                     tried(socket.socket(socket.AF_UNIX).connect, up + '/tmp/{name}')\n    \
                     tried(lambda: print(open(up + home + '/.hidden').read()))\n\
                 print('end', open('/proc/self/stat').read() != '')\n",
                home = fixture.path("home"),
            ),
        );
        assert!(
            ran.stdout == "end True\n" || namespaces == "false",
            "{namespaces}: {}{}",
            ran.stdout,
            ran.stderr
        );
        let made = fs::metadata(shared.with_file_name(format!("{name}-made"))).is_ok();
        let _ = fs::remove_dir(shared.with_file_name(format!("{name}-made")));
        let (removed, contacted) = (!shared.exists(), socket.accept().is_ok());
        let _ = fs::remove_file(&shared);
        assert!(!made && !removed && !contacted, "{namespaces}: {}", ran.stderr);
        for name in ["home/.made", "home/.linked"] {
            assert!(fs::symlink_metadata(fixture.path(name)).is_err(), "{namespaces}: {name} {}", ran.stderr);
        }
    });
}

#[test]
fn descriptors_of_other_processes_are_not_opened() {
    in_every_mode(|fixture, namespaces| {
        fixture.file("work/.env", "CANARY\n");
        let mut outside = fixture.bare("cat");
        let mut outside = outside.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let ran = python(
            fixture,
            namespaces,
            &format!(
                "import os\n\
                 def opened(path, flags):\n    \
                     try: os.close(os.open(path, flags | os.O_NONBLOCK)); return True\n    \
                     except OSError: return False\n\
                 print([opened('/proc/%s/../{pid}/fd/%d' % (own, fd), flags) for own in ('self', 'thread-self/../..') for fd in (0, 1) for flags in (os.O_RDONLY, os.O_WRONLY)])\n\
                 r, w = os.pipe()\n\
                 print(opened('/proc/self/fd/%d' % w, os.O_WRONLY), opened('/dev/fd/%d' % r, os.O_RDONLY), opened('/proc/thread-self/fd/%d' % r, os.O_RDONLY))\n",
                pid = outside.id(),
            ),
        );
        outside.kill().unwrap();
        outside.wait().unwrap();
        let refused = "[False, False, False, False, False, False, False, False]\nTrue True True\n";
        assert_eq!(ran.stdout, refused, "{namespaces}: {}", ran.stderr);
    });
}

#[test]
fn directory_given_as_standard_input_is_not_taken_for_one_of_the_command() {
    in_every_mode(|fixture, namespaces| {
        let script = "import os\ntry: os.mkdir('made', dir_fd=0)\nexcept OSError: pass\n";
        fixture.file("programs/probe.py", script);
        let script = format!("python3 -IS {}", fixture.path("programs/probe.py").display());
        let mut command: Command = fixture.sandboxed(&[], &script);
        command.stdin(File::open(fixture.path("home")).unwrap()).env("HAFT_NAMESPACES", namespaces);
        let ran = fixture.run(&mut command);
        assert!(!fixture.path("home/made").exists(), "{namespaces}: {}", ran.stderr);
    });
}

#[test]
fn devices_and_directories_of_the_session_are_not_replaced() {
    in_every_mode(|fixture, namespaces| {
        fixture.file("outside/secret", "CANARY\n");
        let outside = fixture.path("outside");
        // In a session that goes on, the next command finds what the previous one left.
        let first = format!(
            "rm -f /dev/null; ln -s {0}/secret /dev/null; rm -f /dev/null; mkfifo /dev/null; mv $HOME $TMPDIR/old; ln -s {0} $HOME; \
             mv $TMPDIR old; ln -s {0} $TMPDIR; rmdir $TMPDIR/shm; ln -s {0} $TMPDIR/shm; mv /dev/shm /dev/old; true",
            outside.display()
        );
        let second = "head -c 100 <&0; cat /dev/null; touch $HOME/made $TMPDIR/made; echo x > /dev/null && test -c /dev/null && echo device";
        let mut session = fixture.session(namespaces);
        let ran = [&first, second].map(|script| session.bash(script));
        drop(session);
        assert_eq!(ran[1].trim(), "device", "{namespaces}: {ran:?}");
        let made: Vec<_> = fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(made, ["secret"], "{namespaces}: {ran:?}");
        // The home without namespaces persists.
        let ran = super::sandbox::run(
            fixture,
            namespaces,
            "touch $HOME/made; readlink $HOME; test -d $HOME && echo there",
        );
        assert_eq!(ran.stdout, "there\n", "{namespaces}: {}", ran.stderr);
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1, "{namespaces}: {}", ran.stderr);
    });
}

#[test]
fn links_with_a_slash_at_the_end_are_judged_by_what_they_lead_to() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    in_every_mode(|fixture, namespaces| {
        // With a secret in the workspace the witness opens terminals, too.
        fixture.file("work/.env", "CANARY\n");
        fixture.file("outside/dir/file", "kept\n");
        let outside = fixture.path("outside/dir");
        fs::set_permissions(&outside, fs::Permissions::from_mode(0o755)).unwrap();
        let state = || {
            let meta = fs::metadata(&outside).unwrap();
            (meta.mode(), meta.ctime(), meta.ctime_nsec(), fs::read(outside.join("file")).unwrap())
        };
        let before = state();
        fixture.dir("work/own");
        let ran = python(
            fixture,
            namespaces,
            &format!(
                "import ctypes, os\n\
                 libc = ctypes.CDLL(None)\n\
                 os.symlink({outside:?}, 'link'); os.symlink('own', 'inside')\n\
                 for link in (b'link/', b'link//'):\n    \
                     libc.lchown(link, os.getuid(), os.getgid()); libc.syscall(452, -100, link, 0o700, 0x100)\n    \
                     libc.utimensat(-100, link, None, 0x100); libc.lsetxattr(link, b'user.a', b'x', 1, 0); libc.lremovexattr(link, b'user.a')\n\
                 os.system('rm -f /dev/ptmx; ln -s {0}/file /dev/ptmx; echo evil > /dev/ptmx')\n\
                 print(libc.utimensat(-100, b'inside/', (ctypes.c_long * 4)(5, 0, 5, 0), 0x100), os.stat('own').st_mtime)\n",
                outside.display(),
            ),
        );
        assert_eq!(state(), before, "{namespaces}: {}", ran.stderr);
        assert_eq!(ran.stdout, "0 5.0\n", "{namespaces}: {}", ran.stderr);
    });
}

#[test]
fn secrets_are_not_read_through_descriptors_that_only_write() {
    in_every_mode(|fixture, namespaces| {
        fixture.file("work/.env", "CANARY\n");
        let ran = python(
            fixture,
            namespaces,
            "import os\n\
             fd = os.open('.env', os.O_WRONLY | os.O_APPEND)\n\
             def read(path, flags):\n    \
                 try: return os.read(os.open(path, flags), 100)\n    \
                 except OSError as error: return error.errno\n\
             names = ['/proc/self/fd/%d' % fd, '/dev/fd/%d' % fd]\n\
             print([read(name, flags) for name in names for flags in (os.O_RDONLY, os.O_RDWR, os.O_RDONLY | os.O_CREAT, os.O_RDWR | os.O_APPEND)])\n\
             os.write(os.open(names[0], os.O_WRONLY | os.O_APPEND), b'more\\n')\n",
        );
        assert_eq!(ran.stdout, "[13, 13, 13, 13, 13, 13, 13, 13]\n", "{namespaces}: {}", ran.stderr);
        assert_eq!(fs::read_to_string(fixture.path("work/.env")).unwrap(), "CANARY\nmore\n");
    });
}

#[test]
fn sockets_and_terminals_of_a_command_take_no_descriptors_of_haft() {
    in_every_mode(|fixture, namespaces| {
        let probe = "import os, socket\n\
             for n in range(600):\n    \
                 s = socket.socket(socket.AF_UNIX); s.bind('s%d' % n); s.close()\n    \
                 os.close(os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY))\n\
             print('bound')\n";
        fixture.file("programs/probe.py", probe);
        let probe = fixture.path("programs/probe.py");
        let script =
            format!("ulimit -n 300; exec {} sandbox -- python3 -IS {}", fixture.program(), probe.display());
        let mut command = fixture.command("bash");
        command.args(["-c", &script]).env("HAFT_NAMESPACES", namespaces);
        let ran = fixture.run(&mut command);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "bound\n"), "{namespaces}: {}", ran.stderr);
    });
}
