//! Haft forks a keeper, the keeper forks the command.
//!
//! Everything from [`become_keeper`] on runs in a fork of a process with several threads: no allocation, no lock, no
//! panic, only system calls.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use haft_tool::ToolError;
use rustix::fs::{Access, Mode, OFlags};
use rustix::io::{Errno, FdFlags};
use rustix::process::{Pid, Signal, WaitOptions};

use super::confine::{Confinement, confine};
use super::launch::Launch;
use super::report::{Ask, Report, Step};
use super::{child_stack, keeper, sys};

/// Where the keeper finds the pipe that Haft asks through.
const CONTROL: RawFd = 3;
/// Where keeper and command find the pipe that they report through.
const REPORT: RawFd = 4;
/// Where the command finds the socket over which it sends the witness its listener.
const WITNESS: RawFd = 5;
/// Where the command finds the rules it is put under.
const RULES: RawFd = 6;

/// What a command's streams are connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Streams {
    /// Pipes to Haft: two, or one for both.
    Captured { merge: bool },
    /// What Haft's own are; a terminal goes to the command until it ends.
    Inherited { terminal: bool },
    /// Pipes that somebody else holds the other ends of: input, output, errors.
    Given([RawFd; 3]),
}

impl Streams {
    fn captured(self) -> bool {
        matches!(self, Self::Captured { .. })
    }

    fn terminal(self) -> bool {
        self == Self::Inherited { terminal: true }
    }
}

/// A command that was started, and its keeper. Dropping it ends the tree.
pub(super) struct Running {
    keeper: Pid,
    launch: Launch,
    terminal: bool,
    /// Closing it tells the keeper to end everything at once.
    control: Option<OwnedFd>,
    /// Held open so that asking a dead keeper is no SIGPIPE.
    _control_far_end: OwnedFd,
    pub(super) report: OwnedFd,
    /// Where the witness's listener comes from.
    pub(super) witness: Option<OwnedFd>,
    /// None if the stream is not captured.
    pub(super) stdout: Option<OwnedFd>,
    /// None, too, if both streams go into one pipe.
    pub(super) stderr: Option<OwnedFd>,
}

impl Running {
    /// Starts the command. Whether it could be executed is told by the first report.
    #[expect(unsafe_code, reason = "fork has no safe wrapper")]
    #[expect(clippy::needless_pass_by_value, reason = "the descriptors must be closed here after the fork")]
    pub(super) fn start(
        launch: Launch,
        streams: Streams,
        confinement: Option<Confinement>,
    ) -> Result<Self, ToolError> {
        let pipe = || sys::pipe().map_err(|error| launch.not_started(Step::Pipes, error));
        let captured = streams.captured();
        let merge = streams == Streams::Captured { merge: true };
        let (stdout, stdout_far_end) = if captured { Some(pipe()?) } else { None }.unzip();
        let (stderr, stderr_far_end) = if !captured || merge { None } else { Some(pipe()?) }.unzip();
        let (witness, witness_far_end) = match &confinement {
            Some(_) => {
                Some(sys::socket_pair().map_err(|error| launch.not_started(Step::Pipes, error))?).unzip()
            }
            None => (None, None),
        };
        let (control_far_end, control) = pipe()?;
        let (report, report_far_end) = pipe()?;
        for read in [stdout.as_ref(), stderr.as_ref(), Some(&report)].into_iter().flatten() {
            rustix::io::ioctl_fionbio(read, true).map_err(|error| launch.not_started(Step::Pipes, error))?;
        }
        let [_, out, err] = match streams {
            Streams::Given(given) => given,
            _ => [0, 1, 2],
        };
        let ends = FarEnds {
            streams,
            stdout: stdout_far_end.as_ref().map_or(out, AsRawFd::as_raw_fd),
            stderr: stderr_far_end.as_ref().or(stdout_far_end.as_ref()).map_or(err, AsRawFd::as_raw_fd),
            control: control_far_end.as_raw_fd(),
            report: report_far_end.as_raw_fd(),
            witness: witness_far_end.as_ref().map(AsRawFd::as_raw_fd),
        };

        let mask = sys::block_signals();
        // SAFETY: the child makes nothing but system calls.
        let child = unsafe { libc::fork() };
        if child == 0 {
            become_keeper(&launch, &ends, confinement.as_ref());
        }
        let forked =
            if child < 0 { Err(sys::last_error()) } else { Pid::from_raw(child).ok_or(Errno::CHILD) };
        sys::restore_signals(&mask);
        let keeper = forked.map_err(|error| launch.not_started(Step::Fork, error))?;
        Ok(Self {
            keeper,
            launch,
            terminal: streams.terminal(),
            control: Some(control),
            _control_far_end: control_far_end,
            report,
            witness,
            stdout,
            stderr,
        })
    }

    /// Why the command was not started, for the caller.
    pub(super) fn not_started(&self, step: Step, error: Errno) -> ToolError {
        self.launch.not_started(step, error)
    }

    /// The keeper's process, which is also the session its command runs in.
    pub(super) fn keeper(&self) -> Pid {
        self.keeper
    }

    /// Asks the keeper to end the tree.
    pub(super) fn ask(&self, ask: Ask) {
        if let Some(control) = &self.control {
            // A full pipe holds enough questions; a keeper that is gone shows in the report pipe.
            let _ = rustix::io::write(control, &[ask as u8]);
        }
        self.wake();
    }

    /// Ends the keeper itself, when it does not answer; the kernel then ends the command.
    pub(super) fn give_up(&self) {
        let _ = rustix::process::kill_process(self.keeper, Signal::KILL);
    }

    /// A command may have stopped its keeper; nobody else has a reason to.
    fn wake(&self) {
        let _ = rustix::process::kill_process(self.keeper, Signal::CONT);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.control.take());
        self.wake();
        while let Err(Errno::INTR) = rustix::process::waitpid(Some(self.keeper), WaitOptions::empty()) {}
        if self.terminal {
            let mask = sys::block_signals();
            let _ = rustix::termios::tcsetpgrp(rustix::stdio::stdin(), rustix::process::getpgrp());
            sys::restore_signals(&mask);
        }
    }
}

/// The ends of the pipes that are not Haft's.
struct FarEnds {
    streams: Streams,
    stdout: RawFd,
    stderr: RawFd,
    control: RawFd,
    report: RawFd,
    witness: Option<RawFd>,
}

/// What the first process does.
#[expect(unsafe_code, reason = "descriptors are moved by number, and fork has no safe wrapper")]
fn become_keeper(launch: &Launch, ends: &FarEnds, confinement: Option<&Confinement>) -> ! {
    let null = match rustix::fs::open(c"/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
        Ok(null) => null,
        Err(error) => fail(ends.report, Step::Pipes, error),
    };
    let stdin = match ends.streams {
        Streams::Captured { .. } => null.as_raw_fd(),
        Streams::Inherited { .. } => 0,
        Streams::Given([input, ..]) => input,
    };
    let witness = ends.witness.unwrap_or(null.as_raw_fd());
    let rules = confinement.map_or(null.as_raw_fd(), |confinement| confinement.ruleset);
    // SAFETY: this is a fresh fork, and what it uses from here on is among the seven.
    let placed = unsafe {
        sys::only_descriptors([stdin, ends.stdout, ends.stderr, ends.control, ends.report, witness, rules])
    };
    if let Err(error) = placed {
        fail(ends.report, Step::Pipes, error);
    }
    if let Err(error) = stand_apart(ends.streams) {
        fail(REPORT, Step::Keeper, error);
    }
    let keeper = rustix::process::getpid();
    // SAFETY: this process has one thread, which waits until the command is executed.
    let started = unsafe { child_stack::start(|| become_command(launch, ends.streams, confinement, keeper)) };
    let command = match started {
        Ok(command) => command,
        Err(error) => fail(REPORT, Step::Fork, error),
    };
    // SAFETY: the keeper has no use for the command's streams, and must not hold them open.
    unsafe { sys::close([0, 1, 2, WITNESS, RULES]) };
    keeper::keep(command, sys::placed(CONTROL), sys::placed(REPORT), ends.streams.terminal())
}

/// Makes this process a keeper: in a session of its own, heir of every orphan below it.
fn stand_apart(streams: Streams) -> Result<(), Errno> {
    for fd in [CONTROL, REPORT, WITNESS, RULES] {
        rustix::io::fcntl_setfd(sys::placed(fd), FdFlags::CLOEXEC)?;
    }
    // A program that talks to a person stays with its terminal.
    if !streams.terminal() {
        rustix::process::setsid()?;
    }
    sys::notice_children();
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        // Not Haft's name: whoever ends all of Haft by name would let the command go.
        rustix::thread::set_name(c"keeper")?;
    }
    Ok(())
}

/// What the second process does.
fn become_command(launch: &Launch, streams: Streams, confinement: Option<&Confinement>, keeper: Pid) -> ! {
    if let Err((step, error)) = prepare(launch, streams, confinement, keeper) {
        fail(REPORT, step, error);
    }
    let mut answer = Errno::NOENT;
    for program in launch.programs() {
        match sys::execute(program, launch.argv(), launch.environment()) {
            Errno::NOENT | Errno::NOTDIR => {}
            // A directory of PATH that may not be searched says nothing about the program.
            Errno::ACCESS if rustix::fs::access(program, Access::EXISTS).is_err() => {}
            Errno::ACCESS => answer = Errno::ACCESS,
            error => {
                answer = error;
                break;
            }
        }
    }
    fail(REPORT, Step::Program, answer)
}

/// The seam between fork and exec: all that confines a command is done here, in its own process.
fn prepare(
    launch: &Launch,
    streams: Streams,
    confinement: Option<&Confinement>,
    keeper: Pid,
) -> Result<(), (Step, Errno)> {
    let keeping = |error| (Step::Keeper, error);
    rustix::process::setpgid(None, None).map_err(keeping)?;
    if streams.terminal() {
        // Signals are still held back, so this does not stop a process in the background.
        let _ = rustix::termios::tcsetpgrp(sys::placed(0), rustix::process::getpid());
    }
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(keeping)?;
    if rustix::process::getppid() != Some(keeper) {
        // The keeper died before the kernel knew whom to tell.
        return Err(keeping(Errno::SRCH));
    }
    rustix::process::chdir(launch.cwd()).map_err(|error| (Step::Directory, error))?;
    #[cfg(target_os = "linux")]
    if let Some(confinement) = confinement {
        confine(confinement, RULES, WITNESS)?;
    }
    sys::default_signals();
    Ok(())
}

/// Reports why the command was not started, and ends this process.
fn fail(report: RawFd, step: Step, error: Errno) -> ! {
    // If nobody reads it, nobody is left to tell.
    let _ = rustix::io::write(sys::placed(report), &Report::NotStarted { step, error }.to_bytes());
    sys::exit(127)
}
