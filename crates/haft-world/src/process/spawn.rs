//! Haft forks a keeper, the keeper forks the command.
//!
//! Everything from [`become_keeper`] on runs in a copy of a process with many threads: no allocation, no lock, no
//! panic, only system calls.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use haft_tool::ToolError;
use rustix::fs::{Access, Mode, OFlags};
use rustix::io::{Errno, FdFlags};
use rustix::process::{Pid, Signal, WaitOptions};

use super::launch::Launch;
use super::report::{Ask, Report, Step};
use super::{keeper, sys};

/// Where the keeper finds the pipe that Haft asks through.
const CONTROL: RawFd = 3;
/// Where keeper and command find the pipe that they report through.
const REPORT: RawFd = 4;

/// A command that was started, and its keeper. Dropping it ends the tree.
pub(super) struct Running {
    keeper: Pid,
    /// Closing it tells the keeper to end everything at once.
    control: Option<OwnedFd>,
    /// Held open so that asking a dead keeper is no SIGPIPE.
    _control_far_end: OwnedFd,
    pub(super) report: OwnedFd,
    pub(super) stdout: Option<OwnedFd>,
    /// None if both streams go into one pipe.
    pub(super) stderr: Option<OwnedFd>,
}

impl Running {
    /// Starts the command. Whether it could be executed is told by the first report.
    #[expect(unsafe_code, reason = "fork has no safe wrapper")]
    pub(super) fn start(launch: &Launch, merge: bool) -> Result<Self, ToolError> {
        let pipe = || sys::pipe().map_err(|error| launch.not_started(Step::Pipes, error));
        let (stdout, stdout_far_end) = pipe()?;
        let (stderr, stderr_far_end) = if merge { None } else { Some(pipe()?) }.unzip();
        let (control_far_end, control) = pipe()?;
        let (report, report_far_end) = pipe()?;
        for read in [Some(&stdout), stderr.as_ref(), Some(&report)].into_iter().flatten() {
            rustix::io::ioctl_fionbio(read, true).map_err(|error| launch.not_started(Step::Pipes, error))?;
        }
        let far_ends = FarEnds {
            stdout: stdout_far_end.as_raw_fd(),
            stderr: stderr_far_end.as_ref().unwrap_or(&stdout_far_end).as_raw_fd(),
            control: control_far_end.as_raw_fd(),
            report: report_far_end.as_raw_fd(),
        };

        let mask = sys::block_signals();
        // SAFETY: the child goes straight to `become_keeper`, which makes nothing but system calls.
        let forked = unsafe { sys::fork() };
        if let Ok(None) = forked {
            become_keeper(launch, &far_ends);
        }
        sys::restore_signals(&mask);

        let error = match forked {
            Ok(Some(keeper)) => {
                return Ok(Self {
                    keeper,
                    control: Some(control),
                    _control_far_end: control_far_end,
                    report,
                    stdout: Some(stdout),
                    stderr,
                });
            }
            Ok(None) => Errno::CHILD,
            Err(error) => error,
        };
        Err(launch.not_started(Step::Fork, error))
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
    }
}

/// The ends of the pipes that are not Haft's.
struct FarEnds {
    stdout: RawFd,
    stderr: RawFd,
    control: RawFd,
    report: RawFd,
}

/// What the first fork does.
#[expect(unsafe_code, reason = "descriptors are moved by number and fork has no safe wrapper")]
fn become_keeper(launch: &Launch, ends: &FarEnds) -> ! {
    let null = match rustix::fs::open(c"/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
        Ok(null) => null,
        Err(error) => fail(ends.report, Step::Pipes, error),
    };
    // SAFETY: this is a fresh fork, and what it uses from here on is among the five.
    let placed = unsafe {
        sys::only_descriptors([null.as_raw_fd(), ends.stdout, ends.stderr, ends.control, ends.report])
    };
    if let Err(error) = placed {
        fail(ends.report, Step::Pipes, error);
    }
    if let Err(error) = stand_apart() {
        fail(REPORT, Step::Keeper, error);
    }
    let keeper = rustix::process::getpid();
    // SAFETY: the child goes straight to `become_command`, which makes nothing but system calls.
    match unsafe { sys::fork() } {
        Ok(None) => become_command(launch, keeper),
        Ok(Some(command)) => {
            // SAFETY: the keeper has no use for the command's streams, and must not hold them open.
            unsafe { sys::close_standard() };
            keeper::keep(command, sys::placed(CONTROL), sys::placed(REPORT))
        }
        Err(error) => fail(REPORT, Step::Fork, error),
    }
}

/// Makes this process a keeper: in a session of its own, heir of every orphan below it.
fn stand_apart() -> Result<(), Errno> {
    for fd in [CONTROL, REPORT] {
        rustix::io::fcntl_setfd(sys::placed(fd), FdFlags::CLOEXEC)?;
    }
    rustix::process::setsid()?;
    sys::notice_children();
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        rustix::thread::set_name(c"haft-keeper")?;
        // A keeper's memory is a copy of Haft's, keys included; executing a program makes the command readable again.
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    }
    Ok(())
}

/// What the second fork does.
fn become_command(launch: &Launch, keeper: Pid) -> ! {
    if let Err((step, error)) = prepare(launch, keeper) {
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
fn prepare(launch: &Launch, keeper: Pid) -> Result<(), (Step, Errno)> {
    let keeping = |error| (Step::Keeper, error);
    rustix::process::setpgid(None, None).map_err(keeping)?;
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(keeping)?;
    if rustix::process::getppid() != Some(keeper) {
        // The keeper died before the kernel knew whom to tell.
        return Err(keeping(Errno::SRCH));
    }
    rustix::process::chdir(launch.cwd()).map_err(|error| (Step::Directory, error))?;
    sys::default_signals();
    Ok(())
}

/// Reports why the command was not started, and ends this process.
fn fail(report: RawFd, step: Step, error: Errno) -> ! {
    // If nobody reads it, nobody is left to tell.
    let _ = rustix::io::write(sys::placed(report), &Report::NotStarted { step, error }.to_bytes());
    sys::exit(127)
}
