//! Attempts to use up what there is: they end with a clear result, and Haft and everybody else go on.

use std::io::{Read as _, Write as _};
use std::process::Stdio;

use crate::escapes::attempt::{Escape, nothing_escapes, py, sh};
use crate::escapes::pids_limit::PidsLimit;
use crate::fixture::sandbox::{SandboxFixture, User};
use crate::fixture::wait_until;

// Without a sandbox none of these is tried.
pub(crate) const TABLE: &[Escape] = &[
    sh("processes", "$BIN/flood forks 24000 >/dev/null 2>&1").with(&["--timeout", "30000"]).ends_with(137).says("Ended, with all that it had started: it had").limits_pids().untried(),
    sh("processes by the shell", "bomb() { bomb | bomb & }; ulimit -u 3000; bomb 2>/dev/null; sleep 9999").with(&["--timeout", "30000"]).ends_with(137).says("Ended, with all that it had started: it had").limits_pids().untried(),
    sh("memory", "$BIN/flood memory 4000000 | grep -q '^held' || echo ESCAPED").untried(),
    sh("a huge file", "$BIN/flood grow 1000000 | grep '^held' || echo ESCAPED; rm -f grown").untried(),
    sh("descriptors", "ulimit -n $(ulimit -Hn); $BIN/flood descriptors 2000000 | grep '^held' || echo ESCAPED").untried(),
    sh("deep folders", "$BIN/flood deep 400; rm -rf d; test -e d && echo ESCAPED; true").untried(),
    sh("long names", "n=$(printf 'x%.0s' $(seq 5000)); echo y > $n; mkdir $n; ln -s $n l; echo y > l; rm -f $n; mv notes.txt $n; cd /; echo y > $WORK/$(printf 'a/%.0s' $(seq 4000))b; true").untried(),
    sh("calls without end", "$BIN/flood noise 24").with(&["--timeout", "3000"]).ends_with(124).untried(),
    sh("a core", "ulimit -c unlimited 2>/dev/null; bash -c 'kill -SEGV $$'; find . -name 'core*' | grep . && echo ESCAPED; true").untried(),
    py("odd arguments", "bad = ctypes.c_void_p(1)\n\
        for number in (2, 257, 437, 82, 264, 316, 86, 265, 88, 266, 87, 263, 83, 258, 84, 133, 259, 76, 90, 268, 92, 260, 280, 188, 189, 197, 42, 49, 44, 46, 56, 435, 62, 234):\n  \
        for args in ((-100, bad, bad, bad), (bad, bad, bad, bad), (-1, b'x', bad, 2**63), (0, None, None, None), (-100, b'', 2**32-1, 2**64-1), (2**31, b'notes.txt', -1, -1)):\n    \
        if number not in (56, 62, 234): libc.syscall(number, *args)\n\
        print('still here')").untried(),
    py("threads that die in the middle", "import signal, subprocess\n\
        for i in range(150):\n  \
        p = subprocess.Popen([os.environ['BIN'] + '/flood', 'noise', '4']); p.kill(); p.wait()\n\
        print('still here')").untried(),
    py("a path at the end of memory", "m = mmap.mmap(-1, 8192); libc.mprotect(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(m)) + 4096), 4096, 0)\n\
        at = ctypes.addressof(ctypes.c_char.from_buffer(m)); m[4091:4096] = b'edge\\0'\n\
        fd = libc.open(ctypes.c_void_p(at + 4091), os.O_WRONLY | os.O_CREAT, 0o644); print(fd)\n\
        m[4092:4096] = b'open'; print(libc.open(ctypes.c_void_p(at + 4092), os.O_WRONLY | os.O_CREAT, 0o644), ctypes.get_errno())\n\
        print('fine' if os.path.exists('edge') else 'ESCAPED: no edge')").untried(),
    sh("files", "mkdir many; cd many; $BIN/flood files 30000; cd ..; ls many | wc -l; rm -rf many").with(&["--timeout", "200000"]).untried(),
];

#[test]
fn everything_ends_with_a_clear_result() {
    nothing_escapes("exhaustion", TABLE);
}

/// Five gigabytes of output pass while Haft stays small.
#[test]
fn a_flood_of_output_passes() {
    const GIBIBYTES: u64 = 5;
    for user in User::all() {
        let fixture = SandboxFixture::new(*user);
        let mut command = fixture.bare(&fixture.program());
        command.args(["sandbox", "--timeout", "200000", "--", "head", "-c", "5G", "/dev/zero"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        let (mut buffer, mut total, mut most) = (vec![0; 1 << 20], 0_u64, 0_u64);
        while let Ok(read @ 1..) = out.read(&mut buffer) {
            let before = total >> 28;
            total += read as u64;
            if total >> 28 != before {
                most = most.max(peak(child.id()));
            }
        }
        assert_eq!(child.wait().unwrap().code(), Some(0), "{}", user.word());
        assert_eq!(total, GIBIBYTES << 30, "{}", user.word());
        assert!(most < 64 << 10, "{}: Haft took {most} KiB", user.word());
    }
}

/// Memory is given out until most of it is held, by however many processes; then all of them end.
#[test]
fn a_hog_of_memory_is_ended() {
    // It takes its time, so one user has to do.
    let user = *User::all().last().unwrap();
    let fixture = SandboxFixture::new(user);
    let hog = format!("{}/flood touched $((4 << 20))", fixture.programs().display());
    let ran = fixture.inside(&format!("for i in 1 2 3 4; do {hog} & done; wait; wait"));
    assert!(ran.stderr.contains("MiB of memory"), "{}: exit {}, {}", user.word(), ran.code, ran.stderr);
    assert!(fixture.processes().is_empty());
}

/// A disk is never filled up: something is left for everybody else.
#[test]
fn a_disk_is_not_filled() {
    if !User::is_root() {
        writeln!(std::io::stderr(), "left out: only root can make a small disk").unwrap();
        return;
    }
    let fixture = SandboxFixture::new(User::Current);
    // The small disk is seen by this command alone, and is gone with it.
    let script = "mount -t tmpfs -o size=1g none . && cd \"$PWD\" && \"$0\" sandbox -- bash -c \
        'for i in 1 2 3 4; do head -c 900M /dev/zero > fill$i; done; sleep 9999'; code=$?; df --output=avail -k . | tail -1; exit $code";
    let ran = fixture.run(fixture.command("unshare").args(["-m", "sh", "-c", script, &fixture.program()]));
    if ran.stderr.contains("permission denied") || ran.stderr.contains("unshare failed") {
        writeln!(std::io::stderr(), "left out: no small disk can be made here: {}", ran.stderr).unwrap();
        return;
    }
    let free: u64 = ran.stdout.trim().parse().unwrap_or(0);
    assert!(ran.stderr.contains("Ended, with all that it had started"), "exit {}: {}", ran.code, ran.stderr);
    assert!(free > 100 << 10, "{free} KiB are left");
    assert!(fixture.processes().is_empty());
}

/// When the ledger's disk is full, a change that cannot be recorded is refused, and all others can be undone.
#[test]
fn full_ledger_disk_refuses_the_change_and_keeps_the_rest_reversible() {
    if !User::is_root() {
        writeln!(std::io::stderr(), "left out: only root can make a small disk").unwrap();
        return;
    }
    let fixture = SandboxFixture::new(User::Current);
    let script = "mount -t tmpfs -o size=3m none \"$1\" && export HAFT_HOME=\"$1/small\" && mkdir -m 700 \"$HAFT_HOME\" &&\n\
        mkdir d && echo deep > d/deep && echo text > precious && head -c 6000000 /dev/urandom > big &&\n\
        \"$0\" sandbox -- bash -c 'rm -r d; echo x >> big || echo refused; rm precious' && ls && \"$0\" undo --yes >/dev/null &&\n\
        cat d/deep precious && wc -c < big";
    fixture.dir("disk");
    let mut command = fixture.command("unshare");
    let ran =
        fixture.run(command.args(["-m", "bash", "-c", script, &fixture.program()]).arg(fixture.path("disk")));
    if ran.stderr.contains("permission denied") || ran.stderr.contains("unshare failed") {
        writeln!(std::io::stderr(), "left out: no small disk can be made here: {}", ran.stderr).unwrap();
        return;
    }
    let stdout: Vec<&str> = ran.stdout.lines().filter(|line| !line.starts_with('.')).collect();
    assert_eq!(stdout, ["refused", "big", "deep", "text", "6000000"], "{}", ran.stderr);
    let said = ran.stderr.contains("/big: the previous state could not be stored");
    assert!(said, "{}", ran.stderr);
}

/// On a full disk calls say that nothing was done, `haft doctor` notices it, and `haft gc` makes room. A workspace that cannot be
/// written is noticed too.
#[test]
fn full_ledger_disk_is_noticed_and_can_be_collected() {
    if !User::is_root() {
        writeln!(std::io::stderr(), "left out: only root can make a small disk").unwrap();
        return;
    }
    let fixture = SandboxFixture::new(User::Current);
    let script = "mount -t tmpfs -o size=6m none \"$1\" && export HAFT_HOME=\"$1/small\" && mkdir -m 700 \"$HAFT_HOME\" || exit\n\
        for i in 1 2 3; do head -c 900000 /dev/urandom > big; \"$0\" sandbox sh -c 'echo x > big'; done\n\
        cat /dev/zero > \"$1/filler\" 2>/dev/null\n\
        \"$0\" call Write file_path=new content=x; test -e new && echo made\n\
        \"$0\" doctor | grep ledger; \"$0\" gc --max-size 100K && \"$0\" doctor | grep ledger\n\
        mkdir \"$1/ro\" && mount -t tmpfs -o ro none \"$1/ro\" && cd \"$1/ro\" && \"$0\" doctor | grep read-only";
    fixture.dir("disk");
    let mut command = fixture.command("unshare");
    let ran =
        fixture.run(command.args(["-m", "bash", "-c", script, &fixture.program()]).arg(fixture.path("disk")));
    if ran.stderr.contains("permission denied") || ran.stderr.contains("unshare failed") {
        writeln!(std::io::stderr(), "left out: no small disk can be made here: {}", ran.stderr).unwrap();
        return;
    }
    let stdout: Vec<&str> = ran.stdout.lines().collect();
    let [write, full, collected, room, read_only] = stdout[..] else {
        assert_eq!(stdout, [""; 5], "{}", ran.stderr);
        return;
    };
    assert!(write.contains("It changed nothing"), "{write}");
    assert!(!ran.stderr.contains("(call 0)"), "{}", ran.stderr);
    assert!(full.starts_with("missing") && full.contains("cannot be written"), "{full}");
    assert!(collected.starts_with("Deleted 2 calls"), "{collected}");
    assert!(room.starts_with("ok"), "{room}");
    assert!(read_only.starts_with("missing") && read_only.contains("is read-only"), "{read_only}");
}

/// Where the leader of Haft's process group is in a pid namespace above Haft's own, the group has no number.
#[test]
fn limits_hold_where_the_own_process_group_has_no_number() {
    let flags = if User::is_root() { "-pf" } else { "-Urpf" };
    for namespaces in ["true", "false"] {
        let fixture = SandboxFixture::new(User::Current);
        let fill = "for i in $(seq 200); do sleep 1000 & done; wait";
        let script = format!("\"$0\" sandbox --max-processes 60 -- bash -c '{fill}'; echo \"ended with $?\"");
        let mut command = fixture.command("unshare");
        command.args([flags, "--mount-proc", "bash", "-c", &script, &fixture.program()]);
        let ran = fixture.run(command.env("HAFT_NAMESPACES", namespaces));
        if ran.stderr.contains("unshare failed") {
            writeln!(std::io::stderr(), "left out: no pid namespace can be made here: {}", ran.stderr)
                .unwrap();
            return;
        }
        assert!(ran.stdout.starts_with("ended with "), "{namespaces}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains("60 are allowed"), "{namespaces}: {}", ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{namespaces}: {}", ran.stderr);
    }
}

/// While a command uses up all it can, others are served.
#[test]
fn others_go_on_meanwhile() {
    for user in User::all() {
        for flood in [["forks", "24000"], ["noise", "24"]] {
            let fixture = SandboxFixture::new(*user);
            let mut command = fixture.bare(&fixture.program());
            command
                .args(["sandbox", "--timeout", "60000", "--"])
                .arg(fixture.programs().join("flood"))
                .args(flood);
            let pids_limit = PidsLimit::new();
            pids_limit.hold(&mut command);
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let other = SandboxFixture::new(*user);
            for round in 0..3 {
                let ran = other.inside(&format!("echo hello > greeting-{round} && cat greeting-{round}"));
                assert_eq!(
                    (ran.code, ran.stdout.trim()),
                    (0, "hello"),
                    "{} {flood:?}: {}",
                    user.word(),
                    ran.stderr
                );
            }
            child.kill().unwrap();
            child.wait().unwrap();
            wait_until(|| fixture.processes().is_empty());
        }
    }
}

/// The most memory a process has had, in KiB.
fn peak(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or_default()
}
