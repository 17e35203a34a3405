//! The only place in Haft that starts processes.
//!
//! Between Haft and a command stands a keeper: a fork of Haft that never executes anything. It adopts whatever
//! the command leaves behind, so that the whole tree ends with the call: at the command's end, when its time is
//! up, when the call is cancelled, and when Haft itself is killed.
//!
//! On Linux no child gets away by `setsid`, a double fork or by ignoring SIGTERM. Other systems have no
//! subreaper: there the keeper ends the command's process group, and a child that leaves the group escapes.
//!
//! What runs where: `launch` gets everything ready, `spawn` forks, `keeper` guards the tree, `watch` drains the
//! pipes. `spawn::prepare` is the one function between fork and exec where a command is confined.

mod capture;
mod environment;
mod keeper;
mod launch;
mod report;
mod spawn;
mod stray;
mod sys;
mod watch;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_tool::{Cancel, Capture, Exit, Finished, Processes, RunRequest, ToolError, json};

pub use environment::Environment;
use launch::Launch;
use report::{Ended, Report};
use spawn::Running;
use watch::{Bell, Watched};

/// Commands on this machine, each of which ends with everything it started.
#[derive(Debug, Clone)]
pub struct LocalProcesses {
    workspace: PathBuf,
    environment: Arc<Environment>,
    cancel: Cancel,
}

impl LocalProcesses {
    /// Processes that start in `workspace`, see `environment` and nothing else of Haft's, and stop on `cancel`.
    pub fn new(
        workspace: impl Into<PathBuf>,
        environment: impl Into<Arc<Environment>>,
        cancel: Cancel,
    ) -> Self {
        Self { workspace: workspace.into(), environment: environment.into(), cancel }
    }
}

impl Processes for LocalProcesses {
    fn run(&self, request: &RunRequest) -> Result<Finished, ToolError> {
        let started = Instant::now();
        if self.cancel.is_cancelled() {
            return Ok(finished(Exit::Cancelled, Capture::default(), Capture::default(), Duration::ZERO, 0));
        }
        let cwd = match &request.cwd {
            Some(cwd) => self.workspace.join(cwd),
            None => self.workspace.clone(),
        };
        let launch = Launch::new(&request.argv, &cwd, &self.environment)?;
        let bell = Arc::new(Bell::new()?);
        let ringer = Arc::clone(&bell);
        let _listening = self.cancel.on_cancel(move || ringer.ring());

        let mut running = Running::start(&launch, request.merge)?;
        let deadline = started.checked_add(request.timeout);
        let watched = watch::until_the_end(&mut running, &bell, deadline, request.keep_bytes);
        let Watched { report, stdout, stderr, asked } = watched;
        match report {
            Some(Report::NotStarted { step, error }) => Err(launch.not_started(step, error)),
            Some(Report::Ended(ended)) if ended.survivors > 0 => Err(not_ended(&ended, stdout, stderr)),
            Some(Report::Ended(ended)) => {
                Ok(finished(ended.exit(), stdout, stderr, started.elapsed(), ended.left_behind))
            }
            None => {
                let swept = stray::sweep(running.keeper());
                // The kernel kills the command when its keeper dies, so this is what has happened to it.
                let exit = asked.map_or(Exit::Signal(libc::SIGKILL), report::Ask::exit);
                Ok(finished(exit, stdout, stderr, started.elapsed(), swept))
            }
        }
    }
}

fn finished(exit: Exit, stdout: Capture, stderr: Capture, elapsed: Duration, left_behind: u32) -> Finished {
    Finished { exit, stdout, stderr, elapsed, left_behind, denials: Vec::new(), exhausted: None }
}

fn not_ended(ended: &Ended, stdout: Capture, stderr: Capture) -> ToolError {
    ToolError::failed(format!(
        "{} processes of the command could not be ended, because they run as another user or hang in the kernel; \
         end them by hand and do not start such commands here",
        ended.survivors
    ))
    .with_details(json!({
        "survivors": ended.survivors,
        "stdout": stdout.into_text(),
        "stderr": stderr.into_text(),
    }))
}
