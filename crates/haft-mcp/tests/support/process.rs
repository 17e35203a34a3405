//! A process as the client needs it, in a group of its own.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use haft_mcp::client::{ProcessHandle, ProcessPipes};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};

/// Starts it. `pids` names a file in which it writes down what it starts, if it does.
pub(crate) fn start(command: &mut Command, pids: PathBuf) -> ProcessPipes {
    let command =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().unwrap();
    let stdin = OwnedFd::from(child.stdin.take().unwrap());
    let stdout = OwnedFd::from(child.stdout.take().unwrap());
    let stderr = OwnedFd::from(child.stderr.take().unwrap());
    let group = Pid::from_child(&child);
    let death = pidfd_open(group, PidfdFlags::empty()).unwrap();
    let started = Started { child: Mutex::new(child), group, death, pids };
    ProcessPipes { stdin, stdout, stderr, process: Box::new(started) }
}

struct Started {
    child: Mutex<Child>,
    group: Pid,
    death: OwnedFd,
    pids: PathBuf,
}

impl ProcessHandle for Started {
    fn exit_fd(&self) -> Option<BorrowedFd<'_>> {
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

    /// The sandbox finds what left the group by itself; here it has been written down.
    fn kill(&self) {
        let _ = kill_process_group(self.group, Signal::KILL);
        for pid in written(&self.pids) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Whether all processes that are written down there end within `limit`.
pub(crate) fn all_end(pids: &Path, limit: Duration) -> bool {
    let ends = |pid| pidfd_open(pid, PidfdFlags::empty()).map_or(true, |death| readable(&death, limit));
    written(pids).into_iter().all(ends)
}

fn written(pids: &Path) -> Vec<Pid> {
    let text = std::fs::read_to_string(pids).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok().and_then(Pid::from_raw)).collect()
}

fn readable(descriptor: &OwnedFd, limit: Duration) -> bool {
    let limit = limit.try_into().unwrap();
    poll(&mut [PollFd::new(descriptor, PollFlags::IN)], Some(&limit)).unwrap() > 0
}
