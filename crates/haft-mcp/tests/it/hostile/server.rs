//! The hostile server as a child process.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use haft_mcp::client::ServerTransport;
use tempfile::TempDir;

use crate::fixture::process::{all_exited, start};

/// How long a killed process may take to exit.
const EXIT_TIMEOUT: Duration = Duration::from_secs(20);

/// One hostile server.
pub(crate) struct HostileServer {
    state: TempDir,
    mode: String,
    family: &'static str,
}

impl HostileServer {
    pub(crate) fn new(mode: &str, family: &'static str) -> Self {
        Self { state: tempfile::tempdir().unwrap(), mode: mode.to_owned(), family }
    }

    pub(crate) fn script() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/hostile_server.py")
    }

    pub(crate) fn start(&self) -> ServerTransport {
        let mut command = Command::new("python3");
        command.args([Self::script().as_os_str(), self.mode.as_ref(), self.state.path().as_os_str()]);
        ServerTransport::Stdio(start(command.args(["--versions", self.family]), self.pids()))
    }

    /// Asserts that all processes that were started have exited.
    pub(crate) fn assert_no_processes_left(&self) {
        assert!(all_exited(&self.pids(), EXIT_TIMEOUT), "{}: a process is left", self.mode);
    }

    fn pids(&self) -> PathBuf {
        self.state.path().join("pids")
    }
}
