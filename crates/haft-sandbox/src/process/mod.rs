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
mod child_stack;
mod confine;
mod environment;
mod keeper;
mod launch;
mod report;
mod spawn;
mod stray;
mod sys;
mod watch;

use std::ffi::OsString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use haft_tool::{
    Cancel, Capture, Denial, Exit, Finished, Processes, RunRequest, Scope, ToolError, json, lock,
};

pub(crate) use confine::Confinement;
pub use environment::Environment;
use launch::Launch;
use report::{Ended, Report, Step};
use spawn::{Running, Streams};
pub(crate) use sys::pipe;
use watch::{Bell, Hear, Watched};

use crate::enclosure::{Enclosure, Held};
use crate::sweep::Sweep;
use crate::witness::{self, Seen, Setting, Witness};
use haft_tool::Record;

/// Commands on this machine, each of which ends with everything it started.
#[derive(Clone)]
pub struct LocalProcesses {
    workspace: PathBuf,
    environment: Arc<Environment>,
    cancel: Cancel,
    holder: Option<Holder>,
}

/// What holds commands to a scope, and who writes down what they change.
#[derive(Clone)]
struct Holder {
    enclosure: Arc<Enclosure>,
    scope: Arc<Scope>,
    journal: Arc<dyn Record>,
}

impl LocalProcesses {
    /// Processes that start in `workspace`, see `environment` and nothing else of Haft's, and stop on `cancel`.
    ///
    /// Nobody holds them to anything; see [`LocalProcesses::held`].
    pub fn new(
        workspace: impl Into<PathBuf>,
        environment: impl Into<Arc<Environment>>,
        cancel: Cancel,
    ) -> Self {
        Self { workspace: workspace.into(), environment: environment.into(), cancel, holder: None }
    }

    /// The same, held to `scope` by the kernel, every change told to `journal`.
    #[must_use]
    pub fn held(self, enclosure: Arc<Enclosure>, scope: Arc<Scope>, journal: Arc<dyn Record>) -> Self {
        Self { holder: Some(Holder { enclosure, scope, journal }), ..self }
    }

    /// The same for a command that lives on: it tells its own journal and has its own end.
    pub(crate) fn for_task(&self, journal: Arc<dyn Record>, cancel: Cancel) -> Self {
        let holder = self.holder.clone().map(|holder| Holder { journal, ..holder });
        Self { cancel, holder, ..self.clone() }
    }

    /// Runs a command to its end; `hear` gets what it writes, as it comes.
    pub fn run_heard(&self, request: &RunRequest, hear: Hear<'_>) -> Result<Finished, ToolError> {
        self.run_and(request, streams(request), Some(hear))
    }

    /// Runs a command to its end; its input, output and errors are these.
    pub(crate) fn run_between(
        &self,
        request: &RunRequest,
        ends: &[OwnedFd; 3],
    ) -> Result<Finished, ToolError> {
        self.run_and(request, Streams::Given(ends.each_ref().map(AsRawFd::as_raw_fd)), None)
    }

    fn run_and(
        &self,
        request: &RunRequest,
        streams: Streams,
        hear: Option<Hear<'_>>,
    ) -> Result<Finished, ToolError> {
        match self.attempt(request, streams, hear, true)? {
            Some(done) => Ok(done),
            // The kernel, or a container around Haft, reports no calls: what changed is found by comparing.
            None => self
                .attempt(request, streams, hear, false)?
                .ok_or_else(|| ToolError::internal("a command without a witness cannot miss one")),
        }
    }

    /// Runs the command; nothing if a witness was asked for that cannot be had.
    fn attempt(
        &self,
        request: &RunRequest,
        streams: Streams,
        hear: Option<Hear<'_>>,
        witness: bool,
    ) -> Result<Option<Finished>, ToolError> {
        let started = Instant::now();
        if self.cancel.is_cancelled() {
            let nothing = Capture::default();
            return Ok(Some(finished(Exit::Cancelled, nothing.clone(), nothing, Duration::ZERO, 0)));
        }
        let cwd = match &request.cwd {
            Some(cwd) => self.workspace.join(cwd),
            None => self.workspace.clone(),
        };
        let held = match &self.holder {
            Some(holder) => Some((holder, holder.hold(&self.environment, request.inherit, witness)?)),
            None => None,
        };
        let environment = held.as_ref().map_or(&*self.environment, |(_, held)| &held.environment);
        let launch = Launch::new(&request.argv, &cwd, environment)?;
        let bell = Arc::new(Bell::new()?);
        let ringer = Arc::clone(&bell);
        let _listening = self.cancel.on_cancel(move || ringer.ring());

        let confinement = held.as_ref().map(|(_, held)| held.confinement.clone());
        let sweep = match &held {
            Some((holder, _)) if !witness => Some(Sweep::of(&holder.scope.roots)),
            _ => None,
        };
        let mut running = Running::start(launch, streams, confinement)?;
        let watching = match held {
            Some((holder, held)) => Some(holder.watch(held, &mut running, &bell, request.inherit, sweep)?),
            None => None,
        };
        let deadline = started.checked_add(request.timeout);
        let watched = watch::until_the_end(&mut running, &bell, deadline, request.keep_bytes, hear);
        let seen = watching.map(Watching::finish).transpose()?;
        let Watched { report, stdout, stderr, asked } = watched;
        let mut done = match report {
            Some(Report::NotStarted { step: Step::Filter, .. }) if witness => return Ok(None),
            Some(Report::NotStarted { step, error }) => return Err(running.not_started(step, error)),
            Some(Report::Ended(ended)) if ended.survivors > 0 => {
                return Err(not_ended(&ended, stdout, stderr));
            }
            Some(Report::Ended(ended)) => {
                finished(ended.exit(), stdout, stderr, started.elapsed(), ended.left_behind)
            }
            None => {
                let swept = stray::sweep(running.keeper());
                // The kernel kills the command when its keeper dies, so this is what has happened to it.
                let exit = asked.map_or(Exit::Signal(libc::SIGKILL), report::Ask::exit);
                finished(exit, stdout, stderr, started.elapsed(), swept)
            }
        };
        if let Some((denials, exhausted)) = seen {
            done.denials = denials;
            if exhausted.is_some() && done.exit == Exit::Cancelled {
                done.exit = Exit::Signal(libc::SIGKILL);
            }
            done.exhausted = exhausted;
        }
        Ok(Some(done))
    }
}

impl Processes for LocalProcesses {
    fn run(&self, request: &RunRequest) -> Result<Finished, ToolError> {
        self.run_and(request, streams(request), None)
    }
}

fn streams(request: &RunRequest) -> Streams {
    if request.inherit {
        Streams::Inherited { terminal: is_foreground() }
    } else {
        Streams::Captured { merge: request.merge }
    }
}

impl Holder {
    fn hold(&self, environment: &Environment, inherit: bool, witness: bool) -> Result<Held, ToolError> {
        let terminal =
            if inherit { rustix::termios::ttyname(rustix::stdio::stdin(), Vec::new()).ok() } else { None };
        let terminal = terminal.map(|name| PathBuf::from(OsString::from_vec(name.into_bytes())));
        self.enclosure.hold(&self.scope, environment, terminal.as_deref(), witness)
    }

    /// Puts the witness to work.
    fn watch(
        &self,
        held: Held,
        running: &mut Running,
        bell: &Arc<Bell>,
        inherits: bool,
        sweep: Option<Sweep>,
    ) -> Result<Watching, ToolError> {
        let verdict = witness::Verdict::default();
        let ringer = Arc::clone(bell);
        let stop = Arc::new(AtomicBool::new(false));
        let socket = running.witness.take();
        self.journal.enforced(held.how.clone());
        let setting = Setting {
            places: held.places.clone(),
            reach: held.reach,
            journal: Arc::clone(&self.journal),
            keeper: running.keeper().as_raw_nonzero().get(),
            verdict: Arc::clone(&verdict),
            end: Box::new(move || ringer.ring()),
            inherits,
            stop: Arc::clone(&stop),
        };
        let listener = move || socket.as_ref().and_then(confine::receive);
        let witness = Witness::start(listener, setting)?;
        Ok(Watching { witness, sweep, verdict, stop, held, journal: Arc::clone(&self.journal) })
    }
}

/// A command with its witness.
struct Watching {
    witness: Witness,
    /// What is compared where there is no witness.
    sweep: Option<Sweep>,
    verdict: witness::Verdict,
    stop: Arc<AtomicBool>,
    held: Held,
    journal: Arc<dyn Record>,
}

impl Watching {
    /// Writes down what the command changed; gives what it was refused and why it was ended, if Haft did.
    fn finish(self) -> Result<(Vec<Denial>, Option<String>), ToolError> {
        self.stop.store(true, Ordering::SeqCst);
        let Seen { mut changes, mut losses, mut denials } = self.witness.finish()?;
        if let Some(sweep) = self.sweep {
            (changes, losses) = sweep.finish();
        }
        self.journal.witnessed(changes);
        for loss in losses {
            self.journal.not_reversible(loss);
        }
        let refused = std::mem::take(&mut *lock(&self.held.refused));
        denials.extend(refused.into_list());
        self.journal.refused(&denials);
        let verdict = lock(&self.verdict).take();
        Ok((denials, verdict))
    }
}

/// Whether Haft has a terminal to give away.
fn is_foreground() -> bool {
    rustix::termios::tcgetpgrp(rustix::stdio::stdin()).is_ok_and(|group| group == rustix::process::getpgrp())
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
