//! A process that lives beside the session and is talked to over pipes: somebody else's server.
//!
//! It is held like every other command, and ends with everything it has started when somebody ends it, when it ends itself,
//! and when Haft does.

use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haft_tool::{CallEnd, Cancel, Denial, Exit, Record, RunRequest, ToolError, lock};

use crate::LocalProcesses;
use crate::process::pipe;

/// A process that is talked to.
#[derive(Debug)]
pub struct Companion {
    /// What it reads.
    pub input: OwnedFd,
    /// What it writes.
    pub output: OwnedFd,
    /// What it complains about.
    pub errors: OwnedFd,
    /// Whether it lives, and its end.
    pub life: Arc<Life>,
}

/// How a companion ended.
#[derive(Debug, Clone)]
pub struct Parting {
    /// How its process ended; nothing if it never started.
    pub exit: Option<Exit>,
    /// What it was refused.
    pub denials: Vec<Denial>,
    /// Why it did not start, or was ended.
    pub why: Option<String>,
}

/// Whether a companion lives, and its end.
#[derive(Debug, Default)]
pub struct Life {
    cancel: Cancel,
    parting: Mutex<Option<Parting>>,
    parted: Condvar,
}

impl Life {
    /// Ends it with everything it has started: asked first, then forced. Does not wait for that.
    pub fn end(&self) {
        self.cancel.cancel();
    }

    /// How it ended, if it has.
    pub fn parting(&self) -> Option<Parting> {
        self.locked().clone()
    }

    /// Waits for its end, so long at most.
    pub fn wait(&self, time: Duration) -> Option<Parting> {
        let limit = Instant::now() + time;
        let mut parting = self.locked();
        while parting.is_none() {
            let left = limit.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let woken = self.parted.wait_timeout(parting, left);
            parting = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        parting.clone()
    }

    fn part(&self, parting: Parting) {
        *self.locked() = Some(parting);
        self.parted.notify_all();
    }

    fn locked(&self) -> MutexGuard<'_, Option<Parting>> {
        lock(&self.parting)
    }
}

/// Starts a process to be talked to. What it changes goes to `record`; `request` says what it is.
pub fn accompany(
    processes: &LocalProcesses,
    request: RunRequest,
    record: Arc<dyn Record>,
) -> Result<Companion, ToolError> {
    let new_pipe = || pipe().map_err(|error| ToolError::io("make a pipe to a server", &error.into()));
    let ((far_input, input), (output, far_output), (errors, far_errors)) =
        (new_pipe()?, new_pipe()?, new_pipe()?);
    let life = Arc::<Life>::default();
    let processes = processes.for_task(Arc::clone(&record), life.cancel.clone());
    let its_life = Arc::clone(&life);
    let started = std::thread::Builder::new().name("companion".to_owned()).spawn(move || {
        // Held until the end, so that nobody sees the end of a pipe before it.
        let ends = [far_input, far_output, far_errors];
        let ran = catch_unwind(AssertUnwindSafe(|| processes.run_between(&request, &ends)));
        let ran = ran.unwrap_or_else(|_| Err(ToolError::internal("what watches the server broke down")));
        let recorded = record.finish_task(CallEnd::of_process(ran.as_ref()));
        its_life.part(match ran {
            Ok(finished) => Parting {
                exit: Some(finished.exit),
                denials: finished.denials,
                why: finished.exhausted.or_else(|| recorded.err().map(|error| error.message)),
            },
            Err(error) => Parting { exit: None, denials: Vec::new(), why: Some(error.message) },
        });
    });
    started.map_err(|error| ToolError::io("there is no room for another thread", &error))?;
    Ok(Companion { input, output, errors, life })
}
