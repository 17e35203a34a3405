//! Starts processes and ends process trees.
//!
//! Between Haft and a command is a reaper: a fork of Haft that executes nothing. It adopts the command's orphans, so
//! that the whole tree ends with the call: when the command ends, at its deadline, when the call is cancelled, and when
//! Haft itself is killed.
//!
//! On Linux no descendant escapes by `setsid`, a double fork or by ignoring SIGTERM. macOS has no subreaper: there the
//! reaper ends the command's process group, and a descendant that leaves the group escapes.

mod command;
mod drain;
mod head_tail;
mod orphans;
mod reaper;
mod recording;
mod report;
mod spawn;
mod stop_tree;
mod sys;

use std::ffi::OsString;
use std::io::Write as _;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_tool::{Cancel, Capture, Exit, Finished, Processes, Record, RunRequest, Scope, ToolError, json};

use rustix::io::Errno;

use command::{PreparedCommand, SpoolFile};
use drain::{Drained, OutputSink, Waker, drain};
use recording::{Recording, RecordingSetup};
use report::{ReaperReport, StopReason, TreeEnd};
pub(crate) use report::{StartError, StartStep};
use spawn::{CommandStreams, RunningCommand};
pub(crate) use stop_tree::stop_tree;
pub(crate) use sys::{block_signals, last_error, pipe, process_group, restore_signals};
#[cfg(target_os = "linux")]
pub(crate) use sys::{exit, keep_only};

use crate::session::{CommandHooks, CommandSandbox, SessionSandbox};
use crate::{Environment, platform};

/// How long a command is tried to be started while the machine has no process left.
const START_RETRY_TIMEOUT: Duration = Duration::from_secs(30);
const START_RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Commands on this machine, each of which ends with everything it started.
#[derive(Clone)]
pub struct LocalProcesses {
    cwd: PathBuf,
    environment: Arc<Environment>,
    cancel: Cancel,
    sandbox: Option<SandboxSettings>,
}

/// What restricts commands, and where their changes are recorded.
#[derive(Clone)]
struct SandboxSettings {
    session: Arc<SessionSandbox>,
    scope: Arc<Scope>,
    record: Arc<dyn Record>,
    hooks: CommandHooks,
    /// The name of the caches, if they are not the workspace's.
    caches: Option<Arc<str>>,
}

impl LocalProcesses {
    /// Processes that start in `cwd`, unless a request names another directory, with `environment`, and end on `cancel`. They
    /// are not sandboxed; see [`LocalProcesses::sandboxed`].
    pub fn new(cwd: impl Into<PathBuf>, environment: impl Into<Arc<Environment>>, cancel: Cancel) -> Self {
        Self { cwd: cwd.into(), environment: environment.into(), cancel, sandbox: None }
    }

    /// The same processes, restricted to `scope` by the kernel; every change is reported to `record`.
    #[must_use]
    pub fn sandboxed(self, session: Arc<SessionSandbox>, scope: Arc<Scope>, record: Arc<dyn Record>) -> Self {
        let hooks = CommandHooks::default();
        Self { sandbox: Some(SandboxSettings { session, scope, record, hooks, caches: None }), ..self }
    }

    /// The same processes with these hooks.
    #[must_use]
    pub fn with_hooks(&self, hooks: CommandHooks) -> Self {
        let sandbox = self.sandbox.clone().map(|sandbox| SandboxSettings { hooks, ..sandbox });
        Self { sandbox, ..self.clone() }
    }

    /// The same processes with caches of their own, whatever the workspace.
    #[must_use]
    pub fn with_caches(self, name: &str) -> Self {
        let caches = Some(Arc::from(name));
        Self { sandbox: self.sandbox.map(|sandbox| SandboxSettings { caches, ..sandbox }), ..self }
    }

    /// Whether the kernel restricts them.
    pub(crate) fn is_sandboxed(&self) -> bool {
        self.sandbox.is_some()
    }

    /// The same processes for a background task: with its own record and its own end.
    pub(crate) fn for_task(&self, record: Arc<dyn Record>, cancel: Cancel) -> Self {
        let sandbox = self.sandbox.clone().map(|sandbox| SandboxSettings { record, ..sandbox });
        Self { cancel, sandbox, ..self.clone() }
    }

    /// Runs a command to its end; `sink` receives its output as it is written.
    pub fn run_with_output(&self, request: &RunRequest, sink: &dyn Fn(&[u8])) -> Result<Finished, ToolError> {
        self.run_captured(request, Some(sink))
    }

    fn run_captured(
        &self,
        request: &RunRequest,
        sink: Option<OutputSink<'_>>,
    ) -> Result<Finished, ToolError> {
        let input = if request.input.is_empty() { None } else { Some(input_pipe(&request.input)?) };
        self.run_command(request, streams(request, input.as_ref().map(AsRawFd::as_raw_fd)), sink)
    }

    /// Runs a command to its end with these descriptors as its input, output and errors.
    pub(crate) fn run_with_streams(
        &self,
        request: &RunRequest,
        streams: &[OwnedFd; 3],
    ) -> Result<Finished, ToolError> {
        let streams = CommandStreams::Given(streams.each_ref().map(AsRawFd::as_raw_fd));
        self.run_command(request, streams, None)
    }

    fn run_command(
        &self,
        request: &RunRequest,
        streams: CommandStreams,
        sink: Option<OutputSink<'_>>,
    ) -> Result<Finished, ToolError> {
        let give_up = Instant::now() + START_RETRY_TIMEOUT.min(request.timeout);
        let mut witness = platform::HAS_WITNESS;
        loop {
            match self.try_run(request, streams, sink, witness)? {
                RunAttempt::Finished(finished) => return Ok(*finished),
                // The kernel, or a container around Haft, refuses seccomp notifications: compare before and after instead.
                RunAttempt::NoWitness => witness = false,
                RunAttempt::NoProcess(error) if Instant::now() > give_up => return Err(error),
                RunAttempt::NoProcess(_) => {
                    self.cancel.wait(START_RETRY_INTERVAL);
                }
            }
        }
    }

    /// Runs the command, if it can be started with or without a `witness`.
    fn try_run(
        &self,
        request: &RunRequest,
        streams: CommandStreams,
        sink: Option<OutputSink<'_>>,
        witness: bool,
    ) -> Result<RunAttempt, ToolError> {
        let started = Instant::now();
        if self.cancel.is_cancelled() {
            let nothing = Capture::default();
            let cancelled = finished(Exit::Cancelled, nothing.clone(), nothing, Duration::ZERO, 0);
            return Ok(RunAttempt::Finished(Box::new(cancelled)));
        }
        let cwd = request.cwd.as_ref().map_or_else(|| self.cwd.clone(), |cwd| self.cwd.join(cwd));
        let settings = self.sandbox.as_ref();
        let sandbox = settings.map(|settings| self.prepare_sandbox(settings, request.inherit, witness));
        let mut sandbox = sandbox.transpose()?;
        let environment = sandbox.as_ref().map_or(&*self.environment, |sandbox| &sandbox.environment);
        let mut command = PreparedCommand::new(&request.argv, &cwd, environment)?;
        if let Some(settings) = settings {
            let record = recorded(settings);
            if !witness {
                record.unwitnessed()?;
            }
            command.spool = record.spool_file()?.map(|path| SpoolFile::open(&path)).transpose()?;
        }
        let confinement = sandbox.as_mut().and_then(|sandbox| sandbox.confinement.take());
        let mut proxy = sandbox.as_mut().and_then(|sandbox| sandbox.proxy.take());
        #[cfg(target_os = "macos")]
        if let Some(confinement) = &confinement {
            command.wrap(confinement.wrapper()).map_err(|error| command.start_error(error))?;
        }
        if request.inherit && settings.is_some() {
            check_streams()?;
        }
        let waker = Waker::new().map_err(|error| {
            ToolError::io("No command can be started: too many files are open", &error.into())
        })?;
        let waker = Arc::new(waker);
        let cancel_waker = Arc::clone(&waker);
        let _listener = self.cancel.on_cancel(move || cancel_waker.wake());

        let snapshot = match settings {
            Some(settings) if !witness => Some(settings.session.snapshot(&settings.scope)?),
            _ => None,
        };
        let running = RunningCommand::start(&command, streams, confinement.as_ref());
        let mut running = match running {
            Ok(running) => running,
            Err(error) => return not_started(error, &command),
        };
        // Closes the parent's copies of the command's descriptors.
        drop(confinement);
        let recording = match settings.zip(sandbox) {
            Some((settings, sandbox)) => Some(Recording::start(RecordingSetup {
                sandbox,
                snapshot,
                scope: Arc::clone(&settings.scope),
                record: recorded(settings),
                reaper: running.reaper().as_raw_nonzero().get(),
                waker: Arc::clone(&waker),
                inherits_streams: request.inherit,
            })?),
            None => None,
        };
        let deadline = started.checked_add(request.timeout);
        let drained = drain(&mut running, &waker, proxy.as_mut(), deadline, request, sink);
        // All of its refusals are on the list before the recording ends.
        drop(proxy);
        let observed = recording.map(Recording::finish).transpose()?;
        let Drained { report, stdout, stderr, stopped } = drained;
        let mut finished = match report {
            Some(ReaperReport::NotStarted(error)) if witness && error.step == StartStep::Filter => {
                return Ok(RunAttempt::NoWitness);
            }
            Some(ReaperReport::NotStarted(error)) => return not_started(error, &command),
            Some(ReaperReport::Ended(end)) if end.survivors > 0 => {
                return Err(not_ended(&end, stdout, stderr));
            }
            Some(ReaperReport::Ended(end)) => {
                finished(end.exit(), stdout, stderr, started.elapsed(), end.left_behind)
            }
            None | Some(ReaperReport::Paused | ReaperReport::Started) => {
                let killed = orphans::kill_session(running.reaper());
                // The kernel kills the command when its reaper dies.
                let exit = stopped.map_or(Exit::Signal(libc::SIGKILL), StopReason::exit);
                finished(exit, stdout, stderr, started.elapsed(), killed)
            }
        };
        if let Some(observed) = observed {
            finished.denials = observed.denials;
            finished.runs_on_build = observed.runs_on_build;
            if observed.limit_exceeded.is_some() && finished.exit == Exit::Cancelled {
                finished.exit = Exit::Signal(libc::SIGKILL);
            }
            finished.exhausted = observed.limit_exceeded;
        }
        #[cfg(target_os = "linux")]
        if let Some(settings) = settings {
            finished.previewed = settings.session.previewed()?;
        }
        Ok(RunAttempt::Finished(Box::new(finished)))
    }

    fn prepare_sandbox(
        &self,
        settings: &SandboxSettings,
        inherit: bool,
        witness: bool,
    ) -> Result<CommandSandbox, ToolError> {
        let terminal = inherit.then(|| rustix::termios::ttyname(rustix::stdio::stdin(), Vec::new()).ok());
        let terminal = terminal.flatten().map(|name| PathBuf::from(OsString::from_vec(name.into_bytes())));
        let SandboxSettings { session, scope, hooks, caches, .. } = settings;
        let setup = session.setup(scope, &self.environment, terminal.as_deref(), caches.as_deref())?;
        session.prepare(scope, &setup, terminal.as_deref(), witness, hooks)
    }
}

/// What came of an attempt to run a command.
enum RunAttempt {
    Finished(Box<Finished>),
    /// It was not started, because it cannot be watched by a witness.
    NoWitness,
    /// It was not started, because the machine has no process left. Another command may be about to be ended for that.
    NoProcess(ToolError),
}

/// The outcome for a command that was not started.
fn not_started(error: StartError, command: &PreparedCommand) -> Result<RunAttempt, ToolError> {
    let is_temporary = error.error == Errno::AGAIN;
    let error = command.start_error(error);
    if is_temporary { Ok(RunAttempt::NoProcess(error)) } else { Err(error) }
}

impl Processes for LocalProcesses {
    fn run(&self, request: &RunRequest) -> Result<Finished, ToolError> {
        self.run_captured(request, None)
    }
}

/// Where the changes of a command are recorded.
fn recorded(settings: &SandboxSettings) -> Arc<dyn Record> {
    #[cfg(target_os = "linux")]
    if let Some(discarding) = settings.session.discarding_record() {
        settings.record.enforced("preview: the command changed nothing".to_owned());
        return discarding;
    }
    Arc::clone(&settings.record)
}

fn streams(request: &RunRequest, input: Option<RawFd>) -> CommandStreams {
    if request.inherit {
        CommandStreams::Inherited { terminal: is_foreground() }
    } else {
        CommandStreams::Captured { input, merge: request.merge }
    }
}

/// The end of a pipe from which the command reads these bytes.
fn input_pipe(bytes: &[u8]) -> Result<OwnedFd, ToolError> {
    let failed =
        |error: Errno| ToolError::io("No pipe can be made for the input of a command", &error.into());
    let (read_end, write_end) = pipe().map_err(failed)?;
    let bytes = bytes.to_vec();
    let write = move || {
        // A command need not read its input.
        let _ = std::fs::File::from(write_end).write_all(&bytes);
    };
    let spawned = std::thread::Builder::new().name("haft-input".to_owned()).spawn(write);
    spawned.map_err(|error| ToolError::io("start a thread for the input of a command", &error))?;
    Ok(read_end)
}

/// Whether Haft's process group is the foreground group of its terminal.
/// Refuses to pass a directory on: in it the command would see what its own view of the machine hides.
fn check_streams() -> Result<(), ToolError> {
    use rustix::fs::{FileType, fstat};
    use rustix::stdio::{stderr, stdin, stdout};
    let is_directory = |stat: rustix::fs::Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    let streams = [(stdin(), "input"), (stdout(), "output"), (stderr(), "error")];
    match streams.into_iter().find(|(stream, _)| fstat(stream).is_ok_and(is_directory)) {
        Some((_, name)) => Err(ToolError::invalid_arguments(format!(
            "Standard {name} is a directory, which a command in the sandbox may not have. Redirect it, for example with `< /dev/null`"
        ))),
        None => Ok(()),
    }
}

fn is_foreground() -> bool {
    rustix::termios::tcgetpgrp(rustix::stdio::stdin()).is_ok_and(|group| process_group(None) == Some(group))
}

fn finished(exit: Exit, stdout: Capture, stderr: Capture, elapsed: Duration, left_behind: u32) -> Finished {
    Finished {
        exit,
        stdout,
        stderr,
        elapsed,
        left_behind,
        denials: Vec::new(),
        exhausted: None,
        runs_on_build: Vec::new(),
        previewed: None,
    }
}

fn not_ended(end: &TreeEnd, stdout: Capture, stderr: Capture) -> ToolError {
    let processes = if end.survivors == 1 { "1 process" } else { &format!("{} processes", end.survivors) };
    ToolError::failed(format!(
        "{processes} of the command could not be ended: they run as another user or are blocked in the kernel. \
         End them by hand"
    ))
    .with_details(json!({
        "survivors": end.survivors,
        "stdout": stdout.into_text(),
        "stderr": stderr.into_text(),
    }))
}
