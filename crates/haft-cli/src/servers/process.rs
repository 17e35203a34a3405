//! Connects a server process of the sandbox with the MCP client.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use haft_sandbox::{ServerControl, ServerExit, ServerProcess};
use haft_tool::Exit;

use haft_mcp::client::{ProcessHandle, ProcessPipes};

use super::refusals::ServerRemedies;

/// How long a server may take to start after a connection was refused to it.
const REFUSED_START_TIMEOUT: Duration = Duration::from_secs(5);
/// A server that takes longer than this to start has failed in any case.
const START_TIMEOUT: Duration = Duration::from_mins(3);

/// The pipes of a server process and the handle that ends it.
pub(super) fn pipes(process: ServerProcess, remedies: ServerRemedies) -> ProcessPipes {
    let ServerProcess { input, output, errors, control } = process;
    ProcessPipes {
        stdin: input,
        stdout: output,
        stderr: errors,
        process: Box::new(ServerProcessExit { control, remedies }),
    }
}

/// Ends a server that does not start because a connection was refused to it. Dropped when the server has started.
pub(super) struct EndIfRefused {
    _started: Sender<()>,
}

impl EndIfRefused {
    pub(super) fn watch(control: &Arc<ServerControl>) -> Self {
        let (started, on_start) = channel();
        let control = Arc::clone(control);
        std::thread::spawn(move || {
            let refused = control.wait_for_refusal(START_TIMEOUT);
            if refused && on_start.recv_timeout(REFUSED_START_TIMEOUT) == Err(RecvTimeoutError::Timeout) {
                control.stop();
            }
        });
        Self { _started: started }
    }
}

/// The sandbox sends SIGTERM first and SIGKILL later, to the whole process tree, so terminate and kill are the same.
struct ServerProcessExit {
    control: Arc<ServerControl>,
    remedies: ServerRemedies,
}

impl ProcessHandle for ServerProcessExit {
    fn exit_fd(&self) -> Option<BorrowedFd<'_>> {
        // The pipes reach EOF when the process tree has ended.
        None
    }

    fn wait(&self, limit: Duration) -> Option<String> {
        self.control.wait(limit).map(|exit| describe_exit(&exit, &self.remedies))
    }

    fn terminate(&self) {
        self.control.stop();
    }

    fn kill(&self) {
        self.control.stop();
    }
}

fn describe_exit(ended: &ServerExit, remedies: &ServerRemedies) -> String {
    let mut words = match ended.exit {
        Some(Exit::Code(code)) => format!("exit status {code}"),
        Some(Exit::Signal(signal)) => format!("signal {signal}"),
        Some(Exit::Cancelled | Exit::TimedOut) => "ended by Haft".to_owned(),
        None => "not started".to_owned(),
    };
    if let Some(why) = &ended.reason {
        words.push_str(&format!("; {why}"));
    }
    // A refusal by the sandbox is often the reason for the exit.
    for denial in ended.denials.iter().take(3) {
        words.push_str(&format!("; {}", remedies.line(denial)));
    }
    words
}
