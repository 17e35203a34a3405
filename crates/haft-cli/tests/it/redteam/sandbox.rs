//! The command sandbox, with and without namespaces, as root and as an ordinary user.

use std::os::unix::net::{UnixDatagram, UnixListener};

use haft::{CallOptions, Runtime, json};

use crate::fixture::cli::RunOutput;
use crate::fixture::runtime::Directories;
use crate::fixture::sandbox::{SandboxFixture, User};

/// Runs `test` for every user, with and without namespaces.
pub(super) fn in_every_mode(test: impl Fn(&SandboxFixture, &str)) {
    for user in User::all() {
        for namespaces in ["true", "false"] {
            test(&SandboxFixture::new(*user), namespaces);
        }
    }
}

pub(super) fn run(fixture: &SandboxFixture, namespaces: &str, script: &str) -> RunOutput {
    fixture.run(fixture.sandboxed(&[], script).env("HAFT_NAMESPACES", namespaces))
}

pub(super) fn python(fixture: &SandboxFixture, namespaces: &str, script: &str) -> RunOutput {
    fixture.file("programs/probe.py", script);
    let path = fixture.path("programs/probe.py");
    run(fixture, namespaces, &format!("python3 -IS {}", path.display()))
}

#[test]
fn e01_devices_are_not_opened_again_through_their_handle() {
    in_every_mode(|fixture, namespaces| {
        let ran = python(
            fixture,
            namespaces,
            "import os\n\
             def reopened(path, flags):\n    \
                 try: fd = os.open(path, os.O_PATH)\n    \
                 except OSError: return False\n    \
                 try: os.open('/proc/self/fd/%d' % fd, flags); return True\n    \
                 except OSError: return False\n\
             found = [path for path in ('/dev/kmsg', '/dev/console', '/dev/mem', '/dev/kvm', '/dev/tty0', '/dev/net/tun', '/dev/loop-control', '/dev/fuse')\n         \
                 for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR) if reopened(path, flags)]\n\
             print('found', found, reopened('/dev/null', os.O_RDWR), reopened('/dev/urandom', os.O_RDONLY))\n",
        );
        assert_eq!(ran.stdout, "found [] True True\n", "{namespaces}: {}", ran.stderr);
    });
}

#[test]
fn e05_names_in_the_shared_temporary_directory_cannot_be_taken() {
    in_every_mode(|fixture, namespaces| {
        let taken = format!("/tmp/{}-tmux", fixture.mark());
        let script = format!("mkdir {taken}; mv notthere {taken}; echo x > {taken}; true");
        let ran = run(fixture, namespaces, &script);
        assert!(!std::path::Path::new(&taken).exists(), "{namespaces}: {}", ran.stderr);
        // What the user makes there later is neither seen nor reached.
        std::fs::create_dir(&taken).unwrap();
        let socket = UnixListener::bind(format!("{taken}/default")).unwrap();
        socket.set_nonblocking(true).unwrap();
        open_to_all(&taken);
        let ran = python(
            fixture,
            namespaces,
            &format!("import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('{taken}/default')\n"),
        );
        let contacted = socket.accept().is_ok();
        std::fs::remove_dir_all(&taken).unwrap();
        assert!(!contacted && ran.code != 0, "{namespaces}: {}", ran.stderr);
    });
}

/// Lets every user connect to the sockets in a directory.
fn open_to_all(directory: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let all = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(directory, all.clone()).unwrap();
    for entry in std::fs::read_dir(directory).unwrap() {
        std::fs::set_permissions(entry.unwrap().path(), all.clone()).unwrap();
    }
}

#[test]
fn e07_address_without_a_family_does_not_serve_on_every_interface() {
    in_every_mode(|fixture, namespaces| {
        let ran = python(
            fixture,
            namespaces,
            "import ctypes, socket, sys\n\
             libc = ctypes.CDLL(None, use_errno=True)\n\
             s = socket.socket()\n\
             bound = libc.bind(s.fileno(), bytes(16), 16) == 0\n\
             print(s.getsockname()[0] if bound else 'refused')\n\
             s.listen(); print(s.getsockname()[0])\n",
        );
        let expected = if namespaces == "true" { "0.0.0.0\n0.0.0.0\n" } else { "refused\n127.0.0.1\n" };
        assert_eq!(ran.stdout, expected, "{namespaces}: {}", ran.stderr);
    });
}

#[test]
fn e09_number_of_a_closed_terminal_opens_no_other_terminal() {
    in_every_mode(|fixture, namespaces| {
        // The command frees a number and waits; the test's own terminal then gets it.
        let ran = python(
            fixture,
            namespaces,
            "import os, pty\n\
         master, slave = pty.openpty()\n\
         name = os.ttyname(slave)\n\
         os.close(slave); os.close(master)\n\
         # A sandboxed child of another command stands for the user's next terminal: the number is free, so opening it fails.\n\
         try: os.open(name, os.O_RDWR | os.O_NOCTTY); print('opened')\n\
         except OSError as error: print(type(error).__name__)\n\
         master, slave = pty.openpty(); print(os.isatty(os.open(os.ttyname(slave), os.O_RDWR | os.O_NOCTTY)))\n",
        );
        assert!(
            ran.stdout.ends_with("True\n") && !ran.stdout.contains("opened"),
            "{namespaces}: {}{}",
            ran.stdout,
            ran.stderr
        );
    });
}

#[test]
fn e18_datagrams_reach_no_socket_of_another_program() {
    in_every_mode(|fixture, namespaces| {
        let path = fixture.path("outside/log.sock");
        fixture.file("outside/there", "");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_nonblocking(true).unwrap();
        open_to_all(fixture.path("outside").to_str().unwrap());
        let script = format!(
            "import socket\n\
             for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):\n    \
                 for make in (lambda: socket.socket(socket.AF_UNIX, kind), lambda: socket.socketpair(socket.AF_UNIX, kind)[0]):\n        \
                     try: s = make(); s.sendto(b'x', {path:?})\n        \
                     except OSError as error: print(error)\n        \
                     try: s = make(); s.connect({path:?}); s.send(b'x')\n        \
                     except OSError as error: print(error)\n\
             a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\n\
             a.send(b'one'); a.send(b'two'); print(b.recv(9), b.recv(9))\n"
        );
        let ran = python(fixture, namespaces, &script);
        assert!(ran.stdout.ends_with("b'one' b'two'\n"), "{namespaces}: {}{}", ran.stdout, ran.stderr);
        assert!(socket.recv(&mut [0; 8]).is_err(), "{namespaces}: contacted");
    });
}

#[test]
fn e26_sockets_of_other_programs_in_the_workspace_are_not_connected_to() {
    in_every_mode(|fixture, namespaces| {
        fixture.file("work/db/there", "");
        let path = fixture.path("work/db/.s.PGSQL.5432");
        let socket = UnixListener::bind(&path).unwrap();
        socket.set_nonblocking(true).unwrap();
        open_to_all(fixture.path("work/db").to_str().unwrap());
        let script = "import os, socket\n\
             def tried(path):\n    \
                 try: socket.socket(socket.AF_UNIX).connect(path); return True\n    \
                 except OSError: return False\n\
             path = 'db/.s.PGSQL.5432'\n\
             found = [tried(path)]\n\
             os.rename(path, 'moved'); found.append(tried('moved'))\n\
             os.symlink('moved', 'linked'); found.append(tried('linked'))\n\
             server = socket.socket(socket.AF_UNIX); server.bind('own'); server.listen()\n\
             print(found, tried('own'), tried(os.getcwd() + '/own'))\n";
        let ran = python(fixture, namespaces, script);
        assert_eq!(ran.stdout, "[False, False, False] True True\n", "{namespaces}: {}", ran.stderr);
        assert!(socket.accept().is_err(), "{namespaces}: contacted");
    });
}

#[test]
fn what_a_command_writes_to_tmp_is_what_read_returns() {
    let directories = Directories::new();
    let haft = Runtime::builder()
        .workspace(directories.folder.path())
        .home(directories.home.path())
        .dialect(haft::claude())
        .build()
        .unwrap();
    let call = |tool: &str, arguments| {
        haft.run_blocking(haft::Call::new("call_1", tool, arguments), CallOptions::default()).output
    };
    let path = format!("/tmp/haft-test-{}-{}", std::process::id(), line!());
    let wrote = call("Bash", json!({"command": format!("echo inside > {path}")}));
    assert!(!wrote.is_error(), "{}", wrote.as_text());
    let read = call("Read", json!({"file_path": path}));
    assert!(read.as_text().contains("inside"), "{}", read.as_text());
    std::fs::write(&path, "outside\n").unwrap();
    let own = call("Read", json!({"file_path": path})).as_text();
    let other = format!("{path}-2");
    std::fs::write(&other, "outside\n").unwrap();
    let users = call("Read", json!({"file_path": other})).as_text();
    for path in [&path, &other] {
        std::fs::remove_file(path).unwrap();
    }
    assert!(own.contains("inside") && users.contains("outside"), "{own}, {users}");
}

#[test]
fn mount_points_and_the_workspace_keep_their_names() {
    in_every_mode(|fixture, namespaces| {
        fixture.file("home/deep/proj/important", "mine");
        fixture.dir("home/deep/empty");
        let script = "import os\n\
             home = os.environ['REAL_HOME']\n\
             def tried(act, *paths):\n    \
                 try: act(*[home + path for path in paths]); return 'done'\n    \
                 except OSError as error: return error.strerror\n\
             print(tried(os.rename, '/deep/proj', '/deep/other'), tried(os.rename, '/deep', '/other'))\n\
             os.remove('important'); print(tried(os.rmdir, '/deep/proj'))\n";
        fixture.file("programs/probe.py", script);
        let program = format!("python3 -IS {}", fixture.path("programs/probe.py").display());
        let mut command =
            fixture.sandboxed(&["--env", &format!("REAL_HOME={}", fixture.path("home").display())], &program);
        command.current_dir(fixture.path("home/deep/proj")).env("HAFT_NAMESPACES", namespaces);
        let ran = fixture.run(&mut command);
        assert!(!ran.stdout.contains("done"), "{namespaces}: {} {}", ran.stdout, ran.stderr);
        assert_eq!(ran.code, 0, "{namespaces}: {}", ran.stderr);
        assert!(fixture.path("home/deep/proj").is_dir(), "{namespaces}");
    });
}

#[test]
fn links_in_the_home_show_no_secret() {
    in_every_mode(|fixture, namespaces| {
        fixture.file("home/.ssh/id_rsa", "canary");
        fixture.file("home/notes/text", "visible");
        for (target, link) in [(".ssh", "keys"), (".ssh/id_rsa", "key"), (".", "all"), ("notes", "linked")] {
            std::os::unix::fs::symlink(target, fixture.path("home").join(link)).unwrap();
        }
        let home = fixture.path("home").display().to_string();
        let script =
            format!("cd {home}; cat keys/id_rsa key all/.ssh/id_rsa .ssh/id_rsa; cat linked/text; true");
        let ran = run(fixture, namespaces, &script);
        assert_eq!(ran.stdout, "visible", "{namespaces}: {}", ran.stderr);
    });
}

#[test]
fn address_that_a_command_had_leads_to_no_other_program() {
    in_every_mode(|fixture, namespaces| {
        let host = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        host.set_nonblocking(true).unwrap();
        let port = host.local_addr().unwrap().port();
        let script = format!(
            "import socket\n\
             def tried(address, family=socket.AF_INET):\n    \
                 try: socket.socket(family).connect(address); return True\n    \
                 except OSError: return False\n\
             near = socket.create_server(('127.0.0.9', {port}))\n\
             print(tried(('127.0.0.1', {port})), tried(('127.0.0.9', {port})))\n\
             own = socket.create_server(('127.0.0.1', 0)); address = own.getsockname()\n\
             print(tried(address)); own.close(); print(tried(address))\n"
        );
        let ran = python(fixture, namespaces, &script);
        assert_eq!(ran.stdout, "False True\nTrue\nFalse\n", "{namespaces}: {}", ran.stderr);
        assert!(host.accept().is_err(), "{namespaces}: contacted");
    });
}

#[test]
fn older_landlock_does_not_let_files_be_truncated() {
    for user in User::all() {
        for (namespaces, abi) in [("true", "1"), ("false", "1"), ("false", "2"), ("false", "3")] {
            let fixture = SandboxFixture::new(*user);
            fixture.file("outside/data", "kept");
            fixture.file("work/data", "gone");
            let script = format!(
                "import os\n\
                 for path in ('{}', 'data', os.environ['TMPDIR'] + '/x'):\n    \
                     try: os.open(path, os.O_RDONLY | os.O_TRUNC | os.O_CREAT); print('open')\n    \
                     except OSError: print('refused')\n",
                fixture.path("outside/data").display()
            );
            fixture.file("programs/probe.py", &script);
            let program = format!("python3 -IS {}", fixture.path("programs/probe.py").display());
            let mut command = fixture.sandboxed(&[], &program);
            let ran = fixture.run(command.env("HAFT_NAMESPACES", namespaces).env("HAFT_LANDLOCK_ABI", abi));
            assert_eq!(ran.stdout, "refused\nopen\nopen\n", "{namespaces} {abi}: {}", ran.stderr);
            assert_eq!(std::fs::read_to_string(fixture.path("outside/data")).unwrap(), "kept");
        }
    }
}

#[test]
fn file_given_as_input_is_not_written() {
    in_every_mode(|fixture, namespaces| {
        fixture.file("home/docs/input", "mine");
        let path = fixture.path("home/docs/input");
        let script = "import os\n\
             def tried(act):\n    \
                 try: act(); return 'done'\n    \
                 except OSError: return 'refused'\n\
             print(tried(lambda: os.open('/proc/self/fd/0', os.O_RDWR | os.O_TRUNC)), tried(lambda: os.open('/dev/stdin', os.O_WRONLY)),\n    \
                 tried(lambda: os.fchmod(0, 0o777)), tried(lambda: os.setxattr(0, 'user.x', b'y')), os.read(0, 9))\n";
        fixture.file("programs/probe.py", script);
        let program = format!("exec python3 -IS {}", fixture.path("programs/probe.py").display());
        let mut command = fixture.sandboxed(&[], &program);
        command.env("HAFT_NAMESPACES", namespaces).stdin(std::fs::File::open(&path).unwrap());
        let ran = command.output().unwrap();
        let stdout = String::from_utf8_lossy(&ran.stdout);
        let stderr = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(stdout, "refused refused refused refused b'mine'\n", "{namespaces}: {stderr}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    });
}

#[test]
fn e28_home_that_is_mounted_elsewhere_is_the_home_there() {
    if !User::is_root() {
        // Only root can mount it.
        return;
    }
    for namespaces in ["true", "false"] {
        let fixture = SandboxFixture::new(User::Current);
        for (name, text) in [(".ssh/id_custom", "needle"), (".config/x/token", "hidden"), ("notes", "open")] {
            fixture.file(&format!("home/{name}"), text);
        }
        fixture.dir("else where");
        let script = "mount --bind ../home '../else where' || exit\n\
            for d in ../home '../else where'; do for f in .ssh/id_custom .config/x/token notes; do\n\
            \"$0\" sandbox -- cat \"$d/$f\"; \"$0\" call Read file_path=\"$PWD/$d/.ssh/id_custom\"; done; done";
        let mut command = fixture.command("unshare");
        command.args(["-m", "bash", "-c", script, &fixture.program()]);
        let ran = fixture.run(command.env("HAFT_NAMESPACES", namespaces));
        if ran.stderr.contains("unshare failed") || ran.stderr.contains("mount:") {
            return;
        }
        assert!(!ran.stdout.contains("needle"), "{namespaces}: {}", ran.stdout);
        assert_eq!(ran.stdout.matches("open").count(), 2, "{namespaces}: {}{}", ran.stdout, ran.stderr);
        assert!(namespaces == "false" || !ran.stdout.contains("hidden"), "{}", ran.stdout);
    }
}
