//! A long-running process with pipes to Haft, such as an MCP server.
//!
//! It is sandboxed like every command, and ends with everything it has started when it is stopped, when it exits, and
//! when Haft ends.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use haft_tool::{CallEnd, Cancel, Denial, Exit, Record, RunRequest, ToolError, lock};

use crate::process::pipe;
use crate::{CommandHooks, LocalProcesses};

/// Of more refusals that no call was told of, the newest are kept.
const MAX_REFUSALS: usize = 100;

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
    state: Mutex<ServerProcessState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct ServerProcessState {
    exit: Option<ServerExit>,
    /// Whether a connection was refused to it.
    refused: bool,
    /// Its newest refusals, numbered from 1.
    refusals: VecDeque<(u64, Denial)>,
    /// How many there were, repeated ones included.
    refusal_count: u64,
    /// The last one that a call was told of.
    last_told: u64,
}

impl ServerProcessState {
    fn add_refusal(&mut self, denial: &Denial) {
        let is_same = |known: &Denial| (&known.what, &known.place) == (&denial.what, &denial.place);
        self.refusals.retain(|(_, known)| !is_same(known));
        if self.refusals.len() == MAX_REFUSALS {
            self.refusals.pop_front();
        }
        self.refusal_count += 1;
        self.refusals.push_back((self.refusal_count, Denial { times: 1, ..denial.clone() }));
    }
}

impl ServerControl {
    /// Ends the process and everything it has started: SIGTERM first, then SIGKILL. Does not wait for it.
    pub fn stop(&self) {
        self.cancel.cancel();
    }

    /// Waits for the exit for at most `timeout`.
    pub fn wait(&self, timeout: Duration) -> Option<ServerExit> {
        self.wait_until(timeout, |state| state.exit.is_some()).exit.clone()
    }

    /// Waits for a refused connection for at most `timeout`; false if the server has exited.
    pub fn wait_for_refusal(&self, timeout: Duration) -> bool {
        let state = self.wait_until(timeout, |state| state.refused || state.exit.is_some());
        state.refused && state.exit.is_none()
    }

    /// Where the refusals begin that a call is told of which begins now: what came after those that the last call was told of
    /// may be from its work as well.
    pub fn refusal_position(&self) -> u64 {
        lock(&self.state).last_told
    }

    /// What was refused after a position. Of calls at the same time each is told, because it is not known which one it was.
    pub fn refusals_since(&self, position: u64) -> Vec<Denial> {
        let mut state = lock(&self.state);
        state.last_told = state.refusal_count;
        let newer = state.refusals.iter().filter(|(number, _)| *number > position);
        newer.map(|(_, denial)| denial.clone()).collect()
    }

    fn wait_until(
        &self,
        timeout: Duration,
        is_done: impl Fn(&ServerProcessState) -> bool,
    ) -> MutexGuard<'_, ServerProcessState> {
        let waited = self.changed.wait_timeout_while(lock(&self.state), timeout, |state| !is_done(state));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn set(&self, change: impl FnOnce(&mut ServerProcessState)) {
        change(&mut lock(&self.state));
        self.changed.notify_all();
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
    let [its_control, refused, refused_host] = std::array::from_fn(|_| Arc::clone(&control));
    let processes = processes.with_hooks(CommandHooks {
        on_refused: Some(Arc::new(move |denial: &Denial| lock(&refused.state).add_refusal(denial))),
        on_refused_host: Some(Arc::new(move |_: &Denial| refused_host.set(|state| state.refused = true))),
        asker: None,
    });
    let thread = std::thread::Builder::new().name("server".to_owned()).spawn(move || {
        // Kept open until the exit is known, so that no reader sees EOF before it.
        let streams = [its_input, its_output, its_errors];
        let ran = catch_unwind(AssertUnwindSafe(|| processes.run_with_streams(&request, &streams)));
        let ran = ran.unwrap_or_else(|_| Err(ToolError::internal("the server's supervisor panicked")));
        let recorded = record.finish_task(CallEnd::of_process(ran.as_ref()));
        let exit = match ran {
            Ok(finished) => ServerExit {
                exit: Some(finished.exit),
                denials: finished.denials,
                reason: finished.exhausted.or_else(|| recorded.err().map(|error| error.message)),
            },
            Err(error) => ServerExit { exit: None, denials: Vec::new(), reason: Some(error.message) },
        };
        its_control.set(|state| state.exit = Some(exit));
    });
    thread.map_err(|error| ToolError::io("create a thread for a server", &error))?;
    Ok(ServerProcess { input, output, errors, control })
}
