//! Connects a server process of the sandbox with the MCP client.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use haft_sandbox::{Companion, Life, Parting};
use haft_tool::Exit;

use haft_mcp::client::{ProcessHandle, ProcessPipes};

/// The pipes of a server process and the handle that ends it.
pub(super) fn pipes(companion: Companion) -> ProcessPipes {
    let Companion { input, output, errors, life } = companion;
    ProcessPipes { stdin: input, stdout: output, stderr: errors, process: Box::new(ServerProcessExit(life)) }
}

/// The sandbox sends SIGTERM first and SIGKILL later, to the whole process tree, so terminate and kill are the same.
struct ServerProcessExit(Arc<Life>);

impl ProcessHandle for ServerProcessExit {
    fn exit_fd(&self) -> Option<BorrowedFd<'_>> {
        // The pipes reach EOF when the process tree has ended.
        None
    }

    fn wait(&self, limit: Duration) -> Option<String> {
        self.0.wait(limit).map(|parting| describe_exit(&parting))
    }

    fn terminate(&self) {
        self.0.end();
    }

    fn kill(&self) {
        self.0.end();
    }
}

fn describe_exit(parting: &Parting) -> String {
    let mut words = match parting.exit {
        Some(Exit::Code(code)) => format!("exit status {code}"),
        Some(Exit::Signal(signal)) => format!("signal {signal}"),
        Some(Exit::Cancelled | Exit::TimedOut) => "ended by Haft".to_owned(),
        None => "not started".to_owned(),
    };
    if let Some(why) = &parting.why {
        words.push_str(&format!("; {why}"));
    }
    // A refusal by the sandbox is often the reason for the exit.
    for denial in parting.denials.iter().take(3) {
        words.push_str(&format!("; {}", denial.line()));
    }
    words
}
