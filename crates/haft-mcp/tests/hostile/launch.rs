//! The hostile server as a process, and whether anything of it is left.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use haft_mcp::client::{Ended, Pipes, Transport};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};
use tempfile::TempDir;

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
    pub(crate) fn start(&self) -> Transport {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile/server.py");
        let mut child = Command::new("python3")
            .args([script.as_os_str(), self.mode.as_ref(), self.state.path().as_os_str()])
            .args(["--era", self.era])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let input = OwnedFd::from(child.stdin.take().unwrap());
        let output = OwnedFd::from(child.stdout.take().unwrap());
        let errors = OwnedFd::from(child.stderr.take().unwrap());
        let group = Pid::from_child(&child);
        let death = pidfd_open(group, PidfdFlags::empty()).unwrap();
        let started =
            Started { child: Mutex::new(child), group, death, pids: self.state.path().join("pids") };
        Transport::Stdio(Pipes { input, output, errors, process: Box::new(started) })
    }

    /// Nothing that was started is there any more.
    pub(crate) fn nothing_is_left(&self) {
        for pid in pids(&self.state.path().join("pids")) {
            if let Ok(death) = pidfd_open(pid, PidfdFlags::empty()) {
                assert!(readable(&death, END), "{}: process {pid:?} is left", self.mode);
            }
        }
    }
}

struct Started {
    child: Mutex<Child>,
    group: Pid,
    death: OwnedFd,
    pids: PathBuf,
}

impl Ended for Started {
    fn signal(&self) -> Option<BorrowedFd<'_>> {
        Some(self.death.as_fd())
    }

    fn wait(&self, limit: Duration) -> Option<String> {
        readable(&self.death, limit).then(|| {
            let status = self.child.lock().unwrap().wait().unwrap();
            match (status.code(), status.signal()) {
                (Some(code), _) => format!("exit status {code}"),
                (_, signal) => format!("signal {}", signal.unwrap_or_default()),
            }
        })
    }

    fn terminate(&self) {
        let _ = kill_process_group(self.group, Signal::TERM);
    }

    /// The sandbox finds what left the group by itself; here the server has written down what it started.
    fn kill(&self) {
        let _ = kill_process_group(self.group, Signal::KILL);
        for pid in pids(&self.pids) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

fn pids(file: &Path) -> Vec<Pid> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok().and_then(Pid::from_raw)).collect()
}

fn readable(descriptor: &OwnedFd, limit: Duration) -> bool {
    let limit = limit.try_into().unwrap();
    poll(&mut [PollFd::new(descriptor, PollFlags::IN)], Some(&limit)).unwrap() > 0
}
