//! A server's process as its client needs it.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use haft_sandbox::{Companion, Life, Parting};
use haft_tool::Exit;

use haft_mcp::client::{ProcessHandle, ProcessPipes};

/// The pipes of a server that Haft has started, and its life.
pub(super) fn pipes(companion: Companion) -> ProcessPipes {
    let Companion { input, output, errors, life } = companion;
    ProcessPipes { stdin: input, stdout: output, stderr: errors, process: Box::new(Process(life)) }
}

/// Its keeper asks first and forces then, and ends whatever it has started; to terminate and to kill are the same here.
struct Process(Arc<Life>);

impl ProcessHandle for Process {
    fn exit_fd(&self) -> Option<BorrowedFd<'_>> {
        // Haft holds the far ends of its pipes until it has ended, so they end with it.
        None
    }

    fn wait(&self, limit: Duration) -> Option<String> {
        self.0.wait(limit).map(|parting| words(&parting))
    }

    fn terminate(&self) {
        self.0.end();
    }

    fn kill(&self) {
        self.0.end();
    }
}

fn words(parting: &Parting) -> String {
    let mut words = match parting.exit {
        Some(Exit::Code(code)) => format!("exit status {code}"),
        Some(Exit::Signal(signal)) => format!("signal {signal}"),
        Some(Exit::Cancelled | Exit::TimedOut) => "ended by Haft".to_owned(),
        None => "not started".to_owned(),
    };
    if let Some(why) = &parting.why {
        words.push_str(&format!("; {why}"));
    }
    // What it was refused is often why it ended.
    for denial in parting.denials.iter().take(3) {
        words.push_str(&format!("; {}", denial.line()));
    }
    words
}
