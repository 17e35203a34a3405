//! What the user chooses for commands: variables, limits, served ports, and what they see.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;

use crate::fixture::sandbox::{SandboxFixture, User};
use crate::fixture::tree::{differences, walk};

fn run(fixture: &SandboxFixture, flags: &[&str], script: &str) -> (i32, String, String) {
    let ran = fixture.run(fixture.sandboxed(flags, script).env("DEPLOY_TOKEN", "t0").env("PLAIN", "p"));
    (ran.code, ran.stdout, ran.stderr)
}

#[test]
fn variables_are_passed_on_request() {
    let fixture = SandboxFixture::new(User::Current);
    let show = "echo \"[$DEPLOY_TOKEN|$PLAIN|$NEW]\"";
    let (_, stdout, stderr) = run(&fixture, &[], show);
    assert_eq!(stdout, "[||]\n");
    assert!(stderr.contains("DEPLOY_TOKEN, PLAIN are set, but not passed"), "{stderr}");
    let flags = ["--env", "DEPLOY_TOKEN", "--env", "NEW=a=b", "--env", "MISSING"];
    assert_eq!(run(&fixture, &flags, show).1, "[t0||a=b]\n");
    let (code, _, stderr) = run(&fixture, &["--env", "=x"], show);
    assert_eq!(code, 125, "{stderr}");
    // The user's settings do the same, a project's do not.
    fixture.file("work/haft.toml", "[sandbox]\nenv = [\"DEPLOY_TOKEN\"]\n");
    let (_, stdout, stderr) = run(&fixture, &[], show);
    assert_eq!(stdout, "[||]\n");
    assert!(stderr.contains("sandbox.env is ignored in a project's file"), "{stderr}");
    fixture.file("home/.config/haft/haft.toml", "[sandbox]\nenv = [\"PLAIN\", \"NEW=1\"]\nprocesses = 500\n");
    assert_eq!(run(&fixture, &[], show).1, "[|p|1]\n");
}

#[test]
fn receipts_say_what_is_weaker_than_it_could_be() {
    let fixture = SandboxFixture::new(User::Current);
    let enforcement = |abi: &str, namespaces: &str| {
        let mut command = fixture.sandboxed(&["--json"], "true");
        let ran = fixture.run(command.env("HAFT_NAMESPACES", namespaces).env("HAFT_LANDLOCK_ABI", abi));
        let said: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        let shown = fixture.haft(&["show", &said["receipt"]["id"].to_string()]).stdout;
        let how = said["receipt"]["enforcement"].as_str().unwrap().to_owned();
        assert!(shown.contains(&how), "{shown}");
        how
    };
    let how = enforcement("5", "false");
    for words in [
        "weaker: commands see the machine's processes, /tmp, /run",
        "UDP, System V IPC",
        "no Landlock for signals and abstract sockets",
    ] {
        assert!(how.contains(words), "{words}: {how}");
    }
    assert!(enforcement("3", "false").contains("no Landlock for TCP ports, device ioctls, signals"));
    let how = enforcement("5", "true");
    assert!(
        how.starts_with("no namespaces")
            || how.ends_with("commands of the session can send each other signals"),
        "{how}"
    );
    let how = enforcement("6", "true");
    assert_eq!(how.contains("weaker"), !how.starts_with("namespaces, Landlock 6"), "{how}");
}

#[test]
fn processes_of_a_session_leave_some_to_the_machine() {
    let fixture = SandboxFixture::new(User::Current);
    let read = "cat /proc/sys/kernel/pid_max";
    let outside = fixture.unsandboxed(read).stdout;
    let (_, inside, _) = run(&fixture, &["--max-processes", "500"], read);
    // Kernels before 6.14, and machines without namespaces, have one limit for everything.
    let has_own = fixture.unsandboxed(&format!("unshare -Urpf --mount-proc {read}")).stdout != outside;
    assert_eq!(inside, if has_own { "1024\n" } else { outside.as_str() });
}

#[test]
fn limits_end_a_command() {
    let fixture = SandboxFixture::new(User::Current);
    let (_, _, stderr) =
        run(&fixture, &["--max-file-size", "1M"], "head -c 3M /dev/zero > big; wc -c < big >&2");
    assert!(stderr.contains("1048576"), "{stderr}");
    let many = "for i in $(seq 300); do sleep 1000 & done; wait";
    let (code, _, stderr) = run(&fixture, &["--max-processes", "100"], many);
    assert!(code != 0 && stderr.contains("100 are allowed"), "{code}: {stderr}");
    for flags in [["--max-memory", "1k"], ["--max-processes", "0"], ["--serve", "0"], ["--timeout", "0"]] {
        let (code, _, stderr) = run(&fixture, &flags, "true");
        assert!(code == 125 && stderr.contains(flags[0]), "{flags:?}: {code}: {stderr}");
    }
    let (code, _, stderr) = run(&fixture, &["--timeout", "100"], "sleep 1000");
    assert!(code == 124 && stderr.contains("ended after 100 ms"), "{code}: {stderr}");
    let (code, _, stderr) = run(&fixture, &["--max-memory", "lots"], "true");
    assert!(code == 125 && stderr.contains("is not a size such as 512M or 4G"), "{code}: {stderr}");
}

#[test]
fn served_port_is_reached_from_outside() {
    for user in User::all() {
        for namespaces in ["true", "false"] {
            let fixture = SandboxFixture::new(*user);
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let program = format!(
                "import socket\n\
                 server = socket.create_server(('0.0.0.0', {port})); print('ready', flush=True)\n\
                 while True:\n    \
                     client, _ = server.accept(); data = b''\n    \
                     while chunk := client.recv(65536): data += chunk\n    \
                     client.sendall(data[::-1]); client.close()\n"
            );
            fixture.file("work/server.py", &program);
            let port_text = port.to_string();
            let mut command = fixture.bare(&fixture.program());
            command.args(["sandbox", "--serve", &port_text, "--", "python3", "-IS", "server.py"]);
            command.env("HAFT_NAMESPACES", namespaces).stdout(Stdio::piped());
            let mut server = command.spawn().unwrap();
            let mut line = String::new();
            BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
            for _ in 0..3 {
                let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
                let sent: Vec<u8> = (0..300_000_u32).map(|at| at.to_le_bytes()[1]).collect();
                client.write_all(&sent).unwrap();
                client.shutdown(std::net::Shutdown::Write).unwrap();
                let mut received = Vec::new();
                client.read_to_end(&mut received).unwrap();
                received.reverse();
                assert!(received == sent, "{line} {namespaces}: {} bytes", received.len());
            }
            server.kill().unwrap();
            server.wait().unwrap();
        }
    }
}

#[test]
fn port_in_use_is_not_served() {
    let fixture = SandboxFixture::new(User::Current);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (code, stdout, stderr) = run(&fixture, &["--serve", &port], "echo ran");
    assert!(code != 0 && stdout.is_empty() && stderr.contains(&format!("serve port {port}")), "{stderr}");
}

#[test]
fn home_entries_are_shown_on_request_and_reads_can_be_confined() {
    let fixture = SandboxFixture::new(User::Current);
    fixture.file("home/.config/tool/settings", "s");
    fixture.file("home/notes", "n");
    let show = "cat ~/.config/tool/settings ~/notes 2>/dev/null; ls ../outside >/dev/null 2>&1 && echo outside; cat /etc/hostname >/dev/null && echo system";
    fixture.file("outside/x", "x");
    assert_eq!(run(&fixture, &[], show).1, "noutside\nsystem\n");
    assert_eq!(run(&fixture, &["--show-home", ".config/tool"], show).1, "snoutside\nsystem\n");
    let confined = "cat ~/notes 2>/dev/null; ls -A /root /home /srv 2>/dev/null | grep -v '^/\\|^$'; echo x > made; cat made; cat /etc/hostname >/dev/null && echo system";
    assert_eq!(run(&fixture, &["--read", "workspace"], confined).1, "x\nsystem\n");
    // Of directories that also have credentials, what tools need is there.
    let tools = [".cabal/bin/tool", ".rye/shims/tool", ".local/share/uv/tools/tool", ".stack/programs/tool"];
    for tool in tools {
        fixture.file(&format!("home/{tool}"), "t");
    }
    assert_eq!(run(&fixture, &[], &format!("cd; cat {}", tools.join(" "))).1, "tttt");
    let mut command = fixture.sandboxed(&["--read", "workspace"], "true");
    let ran = fixture.run(command.env("HAFT_NAMESPACES", "false"));
    assert!(ran.code != 0 && ran.stderr.contains("Reads cannot be confined"), "{}", ran.stderr);
    let outside = fixture.path("outside/x").display().to_string();
    let read = |flags: &[&str]| {
        let arguments = format!("{{\"file_path\": \"{outside}\"}}");
        fixture.haft(&[&["call"], flags, &["Read", &arguments]].concat())
    };
    assert_eq!(read(&[]).code, 0);
    let ran = read(&["--read", "workspace"]);
    assert!(ran.code != 0, "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn preview_lists_what_would_change_and_changes_nothing() {
    for user in User::all() {
        let fixture = SandboxFixture::new(*user);
        fixture.file("work/kept", "same\n");
        fixture.file("work/edited", "one\ntwo\n");
        fixture.file("work/dir/removed", "gone\n");
        fixture.file("work/replaced/inside", "x\n");
        let before = walk(&fixture.work(), &[]);
        let script = "set -e; cat kept; sed -i s/two/three/ edited; rm dir/removed; rm -r replaced; mkdir replaced; \
                      echo new > replaced/new; chmod 700 dir; echo a >> kept; printf 'same\\n' > kept; cat edited";
        let (code, stdout, stderr) = run(&fixture, &["--preview"], script);
        assert_eq!(code, 0, "{stderr}");
        assert!(stdout.starts_with("same\none\nthree\n"), "{stdout}{stderr}");
        for expected in [
            "change edited",
            "-two",
            "+three",
            "remove dir/removed",
            "create replaced/new",
            "remove replaced/inside",
        ] {
            assert!(stdout.contains(expected), "{expected}: {stdout}");
        }
        assert!(!stdout.contains("kept"), "{stdout}");
        assert!(stderr.contains("Nothing was changed"), "{stderr}");
        assert_eq!(differences(&before, &walk(&fixture.work(), &[])), Vec::<String>::new());
        // Nothing to undo, and nothing left in the temporary directory.
        let log = fixture.haft(&["log", "--changes"]);
        assert!(!log.stdout.contains("Sandbox"), "{}", log.stdout);
        let (code, _, stderr) = {
            let mut command = fixture.sandboxed(&["--preview"], "true");
            let ran = fixture.run(command.env("HAFT_NAMESPACES", "false"));
            (ran.code, ran.stdout, ran.stderr)
        };
        assert!(code != 0 && stderr.contains("needs an overlay"), "{stderr}");
    }
}
