//! Haft forks the reaper, the reaper starts the command.
//!
//! Everything from [`run_reaper`] on runs in a fork of a process with several threads: no allocation, no lock, no
//! panic, only system calls.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::fs::{Access, Mode, OFlags};
use rustix::io::{Errno, FdFlags};
use rustix::process::{Pid, Signal, WaitOptions};

use super::command::PreparedCommand;
use super::report::{CONTINUE_CODE, ReaperReport, StartError, StartStep, StopReason};
use super::{reaper, sys};
use crate::platform::Confinement;
use crate::terminal::{current_modes, lend, take_back};

/// Descriptor of the reaper: stop requests from Haft.
const CONTROL_FD: RawFd = 3;
/// Descriptor of the reaper and the command: reports to Haft.
const REPORT_FD: RawFd = 4;
/// First of the two descriptors that the confinement brings along.
const CONFINEMENT_FD: RawFd = 5;
/// Descriptor of the reaper: the command's spool.
const SPOOL_FD: RawFd = CONFINEMENT_FD + 2;
/// Exit code of a process that could not execute the command; the report says why.
const NOT_STARTED_EXIT_CODE: i32 = 127;

/// What the standard streams of a command are connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandStreams {
    /// Pipes to Haft: two, or one for both outputs. The input is empty, or this descriptor.
    Captured { input: Option<RawFd>, merge: bool },
    /// Haft's own streams. A terminal belongs to the command until it ends.
    Inherited { terminal: bool },
    /// These descriptors: input, output, errors.
    Given([RawFd; 3]),
}

impl CommandStreams {
    fn are_captured(self) -> bool {
        matches!(self, Self::Captured { .. })
    }

    fn have_terminal(self) -> bool {
        self == Self::Inherited { terminal: true }
    }
}

/// A command that was started, and its reaper. Dropping it ends the process tree.
pub(super) struct RunningCommand {
    reaper: Pid,
    /// Whether the command, and not the user's shell, has the terminal.
    has_terminal: bool,
    /// The process group that had the terminal when the command was stopped.
    terminal_group: Option<Pid>,
    /// Closing it makes the reaper kill the tree.
    control: Option<OwnedFd>,
    /// Kept open so that writing to a dead reaper causes no SIGPIPE.
    _control_read_end: OwnedFd,
    pub(super) report: OwnedFd,
    /// `None` if the stream is not captured.
    pub(super) stdout: Option<OwnedFd>,
    /// `None` also if both streams share one pipe.
    pub(super) stderr: Option<OwnedFd>,
}

impl RunningCommand {
    /// Starts the command. The first report says whether it could be executed.
    #[expect(unsafe_code, reason = "fork has no safe wrapper")]
    pub(super) fn start(
        command: &PreparedCommand,
        streams: CommandStreams,
        confinement: Option<&Confinement>,
    ) -> Result<Self, StartError> {
        let pipe = || sys::pipe().map_err(StartStep::Pipes.failed());
        let captured = streams.are_captured();
        let merge = matches!(streams, CommandStreams::Captured { merge: true, .. });
        let (stdout, stdout_write_end) = if captured { Some(pipe()?) } else { None }.unzip();
        let (stderr, stderr_write_end) = if captured && !merge { Some(pipe()?) } else { None }.unzip();
        let (control_read_end, control) = pipe()?;
        let (report, report_write_end) = pipe()?;
        for read_end in [stdout.as_ref(), stderr.as_ref(), Some(&report)].into_iter().flatten() {
            rustix::io::ioctl_fionbio(read_end, true).map_err(StartStep::Pipes.failed())?;
        }
        // Haft's own: commands could have put something else in place of the one that they see.
        let null = rustix::fs::open(c"/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let null = null.map_err(StartStep::Pipes.failed())?;
        let [_, out, err] = match streams {
            CommandStreams::Given(given) => given,
            _ => [0, 1, 2],
        };
        let ends = ChildEnds {
            streams,
            stdout: stdout_write_end.as_ref().map_or(out, AsRawFd::as_raw_fd),
            stderr: stderr_write_end.as_ref().or(stdout_write_end.as_ref()).map_or(err, AsRawFd::as_raw_fd),
            control: control_read_end.as_raw_fd(),
            report: report_write_end.as_raw_fd(),
            null: null.as_raw_fd(),
        };
        let modes = streams.have_terminal().then(current_modes).flatten();
        let mask = sys::block_signals();
        let run = || run_reaper(command, &ends, confinement);
        // SAFETY: the child only makes system calls.
        let reaper = unsafe {
            match confinement.and_then(|confinement| confinement.start_process(run)) {
                Some(started) => started.map_err(StartStep::Namespaces.failed()),
                None => fork(run).map_err(StartStep::Fork.failed()),
            }
        };
        sys::restore_signals(&mask);
        let reaper = reaper?;
        if let Some(modes) = modes {
            lend(reaper, modes);
        }
        Ok(Self {
            reaper,
            has_terminal: streams.have_terminal(),
            terminal_group: None,
            control: Some(control),
            _control_read_end: control_read_end,
            report,
            stdout,
            stderr,
        })
    }

    /// The reaper's pid, which is also the id of the session that the command runs in.
    pub(super) fn reaper(&self) -> Pid {
        self.reaper
    }

    /// Asks the reaper to end the tree.
    pub(super) fn stop(&self, reason: StopReason) {
        if let Some(control) = &self.control {
            // A full pipe already holds a request; a dead reaper shows in the report pipe.
            let _ = rustix::io::write(control, &[reason as u8]);
        }
        self.continue_reaper();
    }

    /// Stops Haft as the command was stopped, so that the user's shell takes over; continues the command after Haft.
    ///
    /// Where no shell waits, the kernel ignores the signal, and the command goes on at once.
    pub(super) fn pause(&mut self) {
        let own = sys::process_group(None);
        let foreground = || rustix::termios::tcgetpgrp(rustix::stdio::stdin()).ok();
        // `fg` of a job that runs in the background makes Haft's group the foreground group without stopping it first.
        if own.is_none() || foreground() != own {
            if self.has_terminal
                && let Some(own) = own
            {
                self.terminal_group = foreground();
                give_terminal(own);
            }
            sys::stop_own_group();
        }
        // After `bg` it is still the shell's.
        self.has_terminal = own.is_some() && foreground() == own;
        if let Some(group) = self.terminal_group.filter(|_| self.has_terminal) {
            give_terminal(group);
        }
        if let Some(control) = &self.control {
            let _ = rustix::io::write(control, &[CONTINUE_CODE]);
        }
    }

    /// Kills a reaper that does not answer; the kernel then kills the command.
    pub(super) fn kill_reaper(&self) {
        let _ = rustix::process::kill_process(self.reaper, Signal::KILL);
    }

    /// The command may have stopped its reaper.
    fn continue_reaper(&self) {
        let _ = rustix::process::kill_process(self.reaper, Signal::CONT);
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        drop(self.control.take());
        self.continue_reaper();
        while let Err(Errno::INTR) = rustix::process::waitpid(Some(self.reaper), WaitOptions::empty()) {}
        take_back(!self.has_terminal);
    }
}

/// Makes `group` the foreground group of Haft's terminal.
fn give_terminal(group: Pid) {
    // SIGTTOU would stop Haft if it is in the background.
    let mask = sys::block_signals();
    let _ = rustix::termios::tcsetpgrp(rustix::stdio::stdin(), group);
    sys::restore_signals(&mask);
}

/// Forks a child that calls `run`.
///
/// # Safety
/// `run` may only make system calls and must not return.
#[expect(unsafe_code, reason = "fork has no safe wrapper")]
unsafe fn fork(run: impl Fn()) -> Result<Pid, Errno> {
    // SAFETY: as promised by the caller.
    let child = unsafe { libc::fork() };
    if child == 0 {
        run();
    }
    if child < 0 { Err(sys::last_error()) } else { Pid::from_raw(child).ok_or(Errno::CHILD) }
}

/// The children's ends of the pipes.
struct ChildEnds {
    streams: CommandStreams,
    stdout: RawFd,
    stderr: RawFd,
    control: RawFd,
    report: RawFd,
    null: RawFd,
}

/// The first child process.
#[expect(unsafe_code, reason = "descriptors are moved by number, and fork has no safe wrapper")]
fn run_reaper(command: &PreparedCommand, ends: &ChildEnds, confinement: Option<&Confinement>) -> ! {
    let stdin = match ends.streams {
        CommandStreams::Captured { input, .. } => input.unwrap_or(ends.null),
        CommandStreams::Inherited { .. } => 0,
        CommandStreams::Given([input, ..]) => input,
    };
    let [first, second] =
        confinement.map_or([None; 2], Confinement::descriptors).map(|fd| fd.unwrap_or(ends.null));
    let spool = command.spool.as_ref().map(|spool| spool.0.as_raw_fd());
    let spool_or_null = spool.unwrap_or(ends.null);
    let (control, report) = (ends.control, ends.report);
    // SAFETY: this is a fresh fork, and everything it uses from here on is among the eight.
    let placed = unsafe {
        sys::keep_only([stdin, ends.stdout, ends.stderr, control, report, first, second, spool_or_null])
    };
    if let Err(error) = placed {
        fail(ends.report, StartError { step: StartStep::Pipes, error });
    }
    if let Err(error) = set_up_reaper(ends.streams) {
        fail(REPORT_FD, StartError { step: StartStep::Reaper, error });
    }
    let reaper = rustix::process::getpid();
    let run = || run_command(command, ends.streams, confinement, reaper);
    // SAFETY: this process has a single thread; the command's process only makes system calls until it is executed.
    let pid = match unsafe { crate::platform::start_child(run) } {
        Ok(pid) => pid,
        Err(error) => fail(REPORT_FD, StartError { step: StartStep::Fork, error }),
    };
    // SAFETY: the reaper does not use the command's descriptors and must not keep them open.
    unsafe { sys::close([0, 1, 2, CONFINEMENT_FD, CONFINEMENT_FD + 1]) };
    let (control, report) = (sys::placed(CONTROL_FD), sys::placed(REPORT_FD));
    // The command's process has been executed or has ended with a report of its own. Fails only if Haft is gone.
    let _ = rustix::io::write(report, &ReaperReport::Started.to_bytes());
    let spool = spool.map(|_| sys::placed(SPOOL_FD));
    reaper::run(pid, control, report, ends.streams.have_terminal(), spool)
}

/// Puts this process into a session of its own and, on Linux, makes it the subreaper of its descendants.
fn set_up_reaper(streams: CommandStreams) -> Result<(), Errno> {
    for fd in CONTROL_FD..=SPOOL_FD {
        rustix::io::fcntl_setfd(sys::placed(fd), FdFlags::CLOEXEC)?;
    }
    // A command with a terminal stays in the terminal's session.
    if !streams.have_terminal() {
        rustix::process::setsid()?;
    }
    sys::catch_sigchld();
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        // Its memory has Haft's environment, which commands must not read.
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
        // Another name than Haft's, so that `pkill haft` does not also kill the reaper, which ends the command.
        rustix::thread::set_name(c"reaper")?;
    }
    Ok(())
}

/// The second child process.
fn run_command(
    command: &PreparedCommand,
    streams: CommandStreams,
    confinement: Option<&Confinement>,
    reaper: Pid,
) -> ! {
    if let Err(error) = prepare_process(command, streams, confinement, reaper) {
        fail(REPORT_FD, error);
    }
    let mut result = Errno::NOENT;
    for program in command.programs() {
        match sys::execute(program, command.argv(), command.environment()) {
            Errno::NOENT | Errno::NOTDIR => {}
            // A directory of PATH without search permission says nothing about the program.
            Errno::ACCESS if rustix::fs::access(program, Access::EXISTS).is_err() => {}
            Errno::ACCESS => result = Errno::ACCESS,
            error => {
                result = error;
                break;
            }
        }
    }
    fail(REPORT_FD, StartError { step: StartStep::Program, error: result })
}

/// Everything between fork and exec: the process group, the directory, the confinement, the signals.
fn prepare_process(
    command: &PreparedCommand,
    streams: CommandStreams,
    confinement: Option<&Confinement>,
    reaper: Pid,
) -> Result<(), StartError> {
    let failed = StartStep::Reaper.failed();
    rustix::process::setpgid(None, None).map_err(&failed)?;
    if streams.have_terminal() {
        // Signals are still blocked, so SIGTTOU does not stop this background process.
        let _ = rustix::termios::tcsetpgrp(sys::placed(0), rustix::process::getpid());
    }
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(&failed)?;
    if rustix::process::getppid() != Some(reaper) {
        // The reaper died before the death signal was set.
        return Err(failed(Errno::SRCH));
    }
    rustix::process::chdir(command.cwd()).map_err(StartStep::Directory.failed())?;
    if let Some(confinement) = confinement {
        confinement.apply([CONFINEMENT_FD, CONFINEMENT_FD + 1])?;
    }
    sys::reset_signals();
    Ok(())
}

/// Reports why the command was not started, and ends this process.
fn fail(report: RawFd, error: StartError) -> ! {
    // Fails only if Haft is gone.
    let _ = rustix::io::write(sys::placed(report), &ReaperReport::NotStarted(error).to_bytes());
    sys::exit(NOT_STARTED_EXIT_CODE)
}
