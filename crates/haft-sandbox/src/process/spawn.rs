//! Haft starts a keeper, the keeper starts the command.
//!
//! Everything from [`become_keeper`] on runs beside Haft's threads, in their memory: no allocation, no lock, no
//! panic, only system calls.

use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use haft_tool::ToolError;
use rustix::fs::{Access, Mode, OFlags};
use rustix::io::{Errno, FdFlags};
use rustix::process::{Pid, Signal, WaitOptions};

use super::confine::{Confinement, confine};
use super::launch::Launch;
use super::report::{Ask, Report, Step};
use super::room::{Room, Start};
use super::{keeper, sys};

/// Where the keeper finds the pipe that Haft asks through.
const CONTROL: RawFd = 3;
/// Where keeper and command find the pipe that they report through.
const REPORT: RawFd = 4;
/// Where the command finds the socket over which it sends the witness its listener.
const WITNESS: RawFd = 5;
/// Where the command finds the rules it is put under.
const RULES: RawFd = 6;

/// How much a keeper comes before others.
#[cfg(target_os = "linux")]
const KEEPER: i32 = -10;

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

/// What keeper and command work from; it stays as long as the keeper lives.
struct Work {
    launch: Launch,
    ends: FarEnds,
    confinement: Option<Confinement>,
    room: Room,
    keeper: Option<Pid>,
    /// Haft's own priority, which is the command's, too.
    priority: i32,
}

/// A command that was started, and its keeper. Dropping it ends the tree.
pub(super) struct Running {
    keeper: Pid,
    work: Box<Work>,
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

        let priority = rustix::process::getpriority_process(None).unwrap_or(0);
        let room = Room::new().map_err(|error| launch.not_started(Step::Fork, error))?;
        let mut work = Box::new(Work { launch, ends, confinement, room, keeper: None, priority });
        let argument = (&raw mut *work).cast();
        let mask = sys::block_signals();
        // SAFETY: the keeper makes nothing but system calls, and `work` stays until it has ended.
        let started = unsafe { work.room.start(Start::Beside, become_keeper, argument) };
        sys::restore_signals(&mask);
        match started {
            Ok(keeper) => Ok(Self {
                keeper,
                work,
                control: Some(control),
                _control_far_end: control_far_end,
                report,
                witness,
                stdout,
                stderr,
            }),
            Err(error) => Err(work.launch.not_started(Step::Fork, error)),
        }
    }

    /// Why the command was not started, for the caller.
    pub(super) fn not_started(&self, step: Step, error: Errno) -> ToolError {
        self.work.launch.not_started(step, error)
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
        if self.work.ends.streams.terminal() {
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
#[expect(unsafe_code, reason = "descriptors are moved by number, and what to do comes as a pointer")]
extern "C" fn become_keeper(work: *mut c_void) -> c_int {
    let argument = work;
    // SAFETY: Haft keeps it until this process has ended, and does not touch it meanwhile.
    let work = unsafe { &mut *work.cast::<Work>() };
    let ends = &work.ends;
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
    let rules = work.confinement.as_ref().map_or(null.as_raw_fd(), |confinement| confinement.ruleset);
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
    work.keeper = Some(rustix::process::getpid());
    // SAFETY: the command's process makes nothing but system calls, and this one waits for it.
    match unsafe { work.room.start(Start::Waiting, become_command, argument) } {
        Ok(command) => {
            // SAFETY: the keeper has no use for the command's streams, and must not hold them open.
            unsafe { sys::close_standard() };
            // SAFETY: nor for what only the command needs.
            unsafe { sys::close([WITNESS, RULES]) };
            keeper::keep(command, sys::placed(CONTROL), sys::placed(REPORT), work.ends.streams.terminal())
        }
        Err(error) => fail(REPORT, Step::Fork, error),
    }
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
        // Before whatever the command starts: a keeper that gets no turn cannot end it. Only root may ask for that, and
        // only root's commands may start as many as they like.
        let _ = rustix::process::setpriority_process(None, KEEPER);
        // Not Haft's name: whoever ends all of Haft by name would let the command go.
        rustix::thread::set_name(c"keeper")?;
    }
    Ok(())
}

/// What the second process does.
#[expect(unsafe_code, reason = "what to do comes as a pointer")]
extern "C" fn become_command(work: *mut c_void) -> c_int {
    // SAFETY: the keeper holds it, and waits.
    let work = unsafe { &*work.cast::<Work>() };
    let launch = &work.launch;
    if let Err((step, error)) = prepare(work) {
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
fn prepare(work: &Work) -> Result<(), (Step, Errno)> {
    let keeping = |error| (Step::Keeper, error);
    rustix::process::setpgid(None, None).map_err(keeping)?;
    if work.ends.streams.terminal() {
        // Signals are still held back, so this does not stop a process in the background.
        let _ = rustix::termios::tcsetpgrp(sys::placed(0), rustix::process::getpid());
    }
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::process::setpriority_process(None, work.priority);
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(keeping)?;
    }
    if rustix::process::getppid() != work.keeper {
        // The keeper died before the kernel knew whom to tell.
        return Err(keeping(Errno::SRCH));
    }
    rustix::process::chdir(work.launch.cwd()).map_err(|error| (Step::Directory, error))?;
    #[cfg(target_os = "linux")]
    if let Some(confinement) = &work.confinement {
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
