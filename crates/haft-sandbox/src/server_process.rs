//! A long-running process with pipes to Haft, such as an MCP server.
//!
//! It is sandboxed like every command, and ends with everything it has started when it is stopped, when it exits, and
//! when Haft ends.

use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use haft_tool::{CallEnd, Cancel, Denial, Exit, Record, RunRequest, ToolError, lock};

use crate::LocalProcesses;
use crate::process::pipe;

/// A process with pipes to Haft.
#[derive(Debug)]
pub struct ServerProcess {
    /// The write end of its standard input.
    pub input: OwnedFd,
    /// The read end of its standard output.
    pub output: OwnedFd,
    /// The read end of its standard error.
    pub errors: OwnedFd,
    /// Stops it and waits for its exit.
    pub control: Arc<ServerControl>,
}

/// How a server process ended.
#[derive(Debug, Clone)]
pub struct ServerExit {
    /// Its exit; `None` if it never started.
    pub exit: Option<Exit>,
    /// What the sandbox refused.
    pub denials: Vec<Denial>,
    /// Why it did not start, or was ended.
    pub reason: Option<String>,
}

/// Stops a server process and waits for its exit.
#[derive(Debug, Default)]
pub struct ServerControl {
    cancel: Cancel,
    exit: Mutex<Option<ServerExit>>,
    exited: Condvar,
}

impl ServerControl {
    /// Ends the process and everything it has started: SIGTERM first, then SIGKILL. Does not wait for it.
    pub fn stop(&self) {
        self.cancel.cancel();
    }

    /// Waits for the exit for at most `timeout`.
    pub fn wait(&self, timeout: Duration) -> Option<ServerExit> {
        let deadline = Instant::now() + timeout;
        let mut exit = lock(&self.exit);
        while exit.is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let woken = self.exited.wait_timeout(exit, left);
            exit = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        exit.clone()
    }

    fn set_exit(&self, exit: ServerExit) {
        *lock(&self.exit) = Some(exit);
        self.exited.notify_all();
    }
}

/// Starts a server process; what it changes is reported to `record`.
pub fn start_server_process(
    processes: &LocalProcesses,
    request: RunRequest,
    record: Arc<dyn Record>,
) -> Result<ServerProcess, ToolError> {
    let new_pipe = || pipe().map_err(|error| ToolError::io("create a pipe to a server", &error.into()));
    let ((its_input, input), (output, its_output), (errors, its_errors)) =
        (new_pipe()?, new_pipe()?, new_pipe()?);
    let control = Arc::<ServerControl>::default();
    let processes = processes.for_task(Arc::clone(&record), control.cancel.clone());
    let its_control = Arc::clone(&control);
    let thread = std::thread::Builder::new().name("server".to_owned()).spawn(move || {
        // Kept open until the exit is known, so that no reader sees EOF before it.
        let streams = [its_input, its_output, its_errors];
        let ran = catch_unwind(AssertUnwindSafe(|| processes.run_with_streams(&request, &streams)));
        let ran = ran.unwrap_or_else(|_| Err(ToolError::internal("the server's supervisor panicked")));
        let recorded = record.finish_task(CallEnd::of_process(ran.as_ref()));
        its_control.set_exit(match ran {
            Ok(finished) => ServerExit {
                exit: Some(finished.exit),
                denials: finished.denials,
                reason: finished.exhausted.or_else(|| recorded.err().map(|error| error.message)),
            },
            Err(error) => ServerExit { exit: None, denials: Vec::new(), reason: Some(error.message) },
        });
    });
    thread.map_err(|error| ToolError::io("create a thread for a server", &error))?;
    Ok(ServerProcess { input, output, errors, control })
}
