//! A workspace and a ledger of their own for each test, and the built program to call.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

pub(crate) mod terminal;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A workspace and a ledger.
pub(crate) struct House {
    folder: TempDir,
    home: TempDir,
    config: TempDir,
}

/// What came out of a run.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl House {
    pub(crate) fn new() -> Self {
        let new = || tempfile::tempdir().unwrap();
        Self { folder: new(), home: new(), config: new() }
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Where the user's settings are, if there are any.
    pub(crate) fn config(&self) -> PathBuf {
        self.config.path().join("haft.toml")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_haft"));
        command.args(args).current_dir(self.root()).env("HAFT_HOME", self.home()).stdin(Stdio::null());
        command.env("HAFT_CONFIG", self.config());
        command
    }

    pub(crate) fn haft(&self, args: &[&str]) -> Ran {
        self.command(args).output().unwrap().into()
    }

    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Ran {
        self.haft(&["call", tool, &arguments.to_string()])
    }

    /// Runs it with these bytes on standard input.
    pub(crate) fn pipe(&self, args: &[&str], input: &[u8]) -> Ran {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A program that has seen enough may close its end early.
        let _ = child.stdin.take().unwrap().write_all(input);
        child.wait_with_output().unwrap().into()
    }

    /// Runs it and tells its peak memory in KiB, children not counted.
    pub(crate) fn peak(&self, args: &[&str]) -> (Ran, i64) {
        let (out, err) = (self.path("peak.out"), self.path("peak.err"));
        let mut command = self.command(args);
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        let (status, peak) = wait(command.spawn().unwrap().id());
        let text = |path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
        (Ran { code: status, stdout: text(out), stderr: text(err) }, peak)
    }
}

/// Waits for a child and gives its exit code and its peak memory in KiB, which std does not.
#[expect(unsafe_code, reason = "wait4 is the only way to a child's peak memory")]
fn wait(pid: u32) -> (i32, i64) {
    let mut status = 0;
    // SAFETY: rusage is plain numbers, for which zero is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let pid = libc::pid_t::try_from(pid).unwrap();
    // SAFETY: both pointers are to live locals; the pid is a child that nobody else waits for.
    let got = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
    assert_eq!(got, pid);
    (libc::WEXITSTATUS(status), usage.ru_maxrss)
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Whether a process with `mark` in its command line is running.
pub(crate) fn is_running(mark: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        std::fs::read(entry.path().join("cmdline")).is_ok_and(|line| line.starts_with(mark.as_bytes()))
    })
}

/// Waits for something that will happen.
pub(crate) fn until(happened: impl Fn() -> bool) {
    while !happened() {
        std::thread::yield_now();
    }
}

/// Presses Ctrl-C for a process.
pub(crate) fn interrupt(pid: u32) {
    assert!(Command::new("kill").args(["-INT", &pid.to_string()]).status().unwrap().success());
}
