//! The hostile server as a process, and whether anything of it is left.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use haft_mcp::client::ServerTransport;
use tempfile::TempDir;

use super::process::{all_end, start};

/// How long the end of a process that was killed may take.
const END: Duration = Duration::from_secs(20);

/// One run of the hostile server.
pub(crate) struct Run {
    state: TempDir,
    mode: String,
    era: &'static str,
}

impl Run {
    pub(crate) fn new(mode: &str, era: &'static str) -> Self {
        Self { state: tempfile::tempdir().unwrap(), mode: mode.to_owned(), era }
    }

    /// Starts it.
    pub(crate) fn start(&self) -> ServerTransport {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile/server.py");
        let mut command = Command::new("python3");
        command.args([script.as_os_str(), self.mode.as_ref(), self.state.path().as_os_str()]);
        ServerTransport::Stdio(start(command.args(["--era", self.era]), self.pids()))
    }

    /// Nothing that was started is there any more.
    pub(crate) fn nothing_is_left(&self) {
        assert!(all_end(&self.pids(), END), "{}: a process is left", self.mode);
    }

    fn pids(&self) -> PathBuf {
        self.state.path().join("pids")
    }
}
