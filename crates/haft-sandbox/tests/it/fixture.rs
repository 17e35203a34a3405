//! A workspace for commands, and ways to find the processes that they started.

use std::collections::BTreeSet;
use std::fs::{self};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use haft_sandbox::{Environment, LocalProcesses};
use haft_tool::{Cancel, Finished, Processes, RunRequest, ToolError};
use tempfile::TempDir;

/// Never expires.
pub(crate) const LONG_TIMEOUT: Duration = Duration::from_mins(10);
/// For commands that time out.
pub(crate) const SHORT_TIMEOUT: Duration = Duration::from_secs(1);
/// For commands that do something before they time out.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);
pub(crate) const MARK_VARIABLE: &str = "HAFT_TEST_MARK";

/// A workspace, and a mark in the environment by which the processes of one test are found.
pub(crate) struct Fixture {
    pub(crate) directory: TempDir,
    pub(crate) mark: String,
    pub(crate) cancel: Cancel,
    pub(crate) request: RunRequest,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        Self {
            directory: TempDir::new().unwrap(),
            mark: format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::SeqCst)),
            cancel: Cancel::new(),
            request: RunRequest {
                argv: Vec::new(),
                cwd: None,
                timeout: LONG_TIMEOUT,
                input: Vec::new(),
                merge: false,
                quiet_stderr: false,
                inherit: false,
                keep_bytes: 1 << 20,
            },
        }
    }

    pub(crate) fn with(edit: impl FnOnce(&mut RunRequest)) -> Self {
        let mut fixture = Self::new();
        edit(&mut fixture.request);
        fixture
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn processes(&self) -> LocalProcesses {
        let environment = Environment::inherited().with(MARK_VARIABLE, &self.mark);
        LocalProcesses::new(self.directory.path(), environment, self.cancel.clone())
    }

    pub(crate) fn run(&self, argv: &[&str]) -> Result<Finished, ToolError> {
        let argv = argv.iter().map(|word| (*word).into()).collect();
        self.processes().run(&RunRequest { argv, ..self.request.clone() })
    }

    pub(crate) fn bash(&self, script: &str) -> Finished {
        self.run(&["bash", "-c", script]).unwrap()
    }

    /// A FIFO in the workspace: its end comes exactly when the last process that holds it open is gone.
    pub(crate) fn fifo(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, 0o600.into()).unwrap();
        path
    }

    pub(crate) fn assert_no_processes_left(&self) {
        assert_eq!(marked(&self.mark), BTreeSet::new(), "processes are left");
    }
}

pub(crate) fn bash(script: &str) -> Finished {
    Fixture::new().bash(script)
}

pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The processes whose environment holds `mark`.
pub(crate) fn marked(mark: &str) -> BTreeSet<u32> {
    let entry = format!("{MARK_VARIABLE}={mark}");
    let pids =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    pids.filter(|pid| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|variable| variable == entry.as_bytes())
    })
    .collect()
}

/// This test again, in a process of its own; there `ALONE` holds its name.
pub(crate) fn rerun_command(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]).env("ALONE", name);
    command
}

/// Runs `body` in a process where no other test runs.
pub(crate) fn run_in_own_process(name: &str, body: impl FnOnce()) {
    if std::env::var_os("ALONE").is_some() {
        return body();
    }
    check(&rerun_command(name).output().unwrap());
}

/// Checks that the test ran in the other process and passed.
pub(crate) fn check(output: &Output) {
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && shown.contains("1 passed"),
        "{shown}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

pub(crate) fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}
