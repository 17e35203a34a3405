//! Attempts to live on after the command has ended, was ended, or Haft itself was killed.

use std::process::Stdio;

use crate::escapes::attempt::{Escape, nothing_escapes, py, sh, they_are_real};
use crate::fixture::sandbox::{SandboxFixture, User};
use crate::fixture::wait_until;

pub(crate) const TABLE: &[Escape] = &[
    sh("in the background", "sleep 9999 >/dev/null 2>&1 &"),
    sh("disowned", "sleep 9999 >/dev/null 2>&1 & disown -a"),
    sh("deaf to hang-ups", "nohup sleep 9999 >/dev/null 2>&1 &"),
    sh("in its own session", "setsid -f sleep 9999 >/dev/null 2>&1 </dev/null"),
    sh("forked twice", "(setsid sh -c '(sleep 9999 & touch ready) &' &) >/dev/null 2>&1; until test -e ready; do :; done"),
    sh("holding the pipe", "sleep 9999 &"),
    sh("deaf to everything but the last word", "bash -c 'trap \"\" TERM INT HUP QUIT USR1; while :; do sleep 9999; done' >/dev/null 2>&1 &"),
    sh("in its own group", "set -m; sleep 9999 >/dev/null 2>&1 & set +m; disown -a"),
    sh("without a working directory or name", "(cd / && exec -a '' env -i $BIN/flood noise 0 x=$WORK >/dev/null 2>&1 &)"),
    py("a daemon", "if os.fork() == 0:\n  \
        os.setsid()\n  \
        if os.fork() == 0:\n    \
        n = os.open('/dev/null', os.O_RDWR); [os.dup2(n, i) for i in (0, 1, 2)]\n    \
        os.execvp('sleep', ['sleep', '9999'])\n  os._exit(0)"),
    py("a reaper of orphans", "libc.prctl(36, 1, 0, 0, 0)\n\
        if os.fork() == 0:\n  os.setsid(); libc.prctl(36, 1, 0, 0, 0)\n  \
        if os.fork() == 0:\n    os.setsid(); n = os.open('/dev/null', os.O_RDWR); [os.dup2(n, i) for i in (0, 1, 2)]\n    \
        os.execvp('sleep', ['sleep', '9999'])\n  os._exit(0)"),
    py("without a death signal", "libc.prctl(1, 0, 0, 0, 0)\n\
        if os.fork() == 0:\n  libc.prctl(1, 0, 0, 0, 0); n = os.open('/dev/null', os.O_RDWR); [os.dup2(n, i) for i in (0, 1, 2)]; os.setsid(); os.execvp('sleep', ['sleep', '9999'])"),
    py("always a step ahead", "if os.fork() == 0:\n  os.setsid(); n = os.open('/dev/null', os.O_RDWR); [os.dup2(n, i) for i in (0, 1, 2)]\n  \
        while True:\n    \
        if os.fork(): os._exit(0)\n    time.sleep(0.0005); os.setsid()").untried(),
    py("a stopped one", "import signal\nif os.fork() == 0:\n  n = os.open('/dev/null', os.O_RDWR); [os.dup2(n, i) for i in (0, 1, 2)]; os.setsid(); os.kill(os.getpid(), signal.SIGSTOP)"),
    py("a clone without a signal", "pid = libc.syscall(56, 0, 0, 0, 0, 0)\n\
        if pid == 0:\n  n = os.open('/dev/null', os.O_RDWR); [os.dup2(n, i) for i in (0, 1, 2)]; os.execvp('sleep', ['sleep', '9999'])"),
    sh("after the time is up", "setsid -f sleep 9999 >/dev/null 2>&1; trap '' TERM; sleep 9999; sleep 9999").with(&["--timeout", "1500"]).ends_with(124).untried(),
    sh("after the time is up, many", "for i in $(seq 200); do setsid -f sleep 9999 >/dev/null 2>&1; done; while :; do :; done").with(&["--timeout", "4000"]).ends_with(124).untried(),
];

#[test]
fn nothing_lives_on() {
    nothing_escapes("survivors", TABLE);
}

#[test]
fn they_would_without_a_sandbox() {
    they_are_real("survivors", TABLE);
}

/// Kills Haft while a command of many kinds of processes is running.
#[test]
fn nothing_lives_on_when_haft_is_killed() {
    for user in User::all() {
        for script in [
            "sleep 9999",
            "setsid -f sleep 9999 >/dev/null 2>&1; (setsid sh -c '(sleep 9999 &) &' &); touch ready; trap '' TERM INT HUP; while :; do sleep 9999; done",
            "python3 -c 'import ctypes,os,time; ctypes.CDLL(None).prctl(1,0); os.setsid() if os.fork() == 0 else 0; open(\"ready\", \"w\"); time.sleep(9999)'",
            "touch ready; while :; do echo x > busy; rm busy; done",
        ] {
            let fixture = SandboxFixture::new(*user);
            let mut command = fixture.bare(&fixture.program());
            let script =
                if script.contains("ready") { script.to_owned() } else { format!("touch ready; {script}") };
            command
                .args(["sandbox", "--", "bash", "-c", &script])
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let mut child = command.spawn().unwrap();
            let ready = fixture.path("work/ready");
            wait_until(|| ready.exists() || !std::path::Path::new(&format!("/proc/{}", child.id())).exists());
            child.kill().unwrap();
            child.wait().unwrap();
            // The reaper ends them; that takes a moment, but nothing stays.
            wait_until(|| fixture.processes().is_empty());
            let log = fixture.haft(&["log", "--json"]);
            assert_eq!(log.code, 0, "{}: the ledger still answers: {}", user.word(), log.stderr);
            let undo = fixture.haft(&["undo", "--yes"]);
            assert_eq!(undo.code, 0, "{} {script}: {}{}", user.word(), undo.stdout, undo.stderr);
            assert!(!ready.exists(), "{} {script}: what the command created is undone", user.word());
        }
    }
}
