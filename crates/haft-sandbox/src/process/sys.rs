//! System calls without a safe wrapper. Nothing here allocates, locks or panics, so all of it may be called between
//! fork and exec.

use std::ffi::CStr;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::Pid;

use super::command::CStringArray;

/// The highest signal number of any supported platform.
const MAX_SIGNAL: i32 = 64;
/// Where `close_range` is missing, descriptors above this number are not closed one by one.
const MAX_CLOSED_FD: RawFd = 1 << 20;

/// The `errno` of the system call that has just failed in this thread.
pub(crate) fn last_error() -> Errno {
    let code = std::io::Error::last_os_error().raw_os_error().filter(|code| *code != 0);
    code.map_or(Errno::IO, Errno::from_raw_os_error)
}

/// A saved signal mask of the calling thread.
pub(crate) struct SignalMask(libc::sigset_t);

/// Blocks every signal in this thread and returns the previous mask.
///
/// A child forked in this state never runs a signal handler of Haft, whose pipes it would share.
#[expect(unsafe_code, reason = "signal masks have no safe wrapper")]
pub(crate) fn block_signals() -> SignalMask {
    // SAFETY: a sigset_t is plain data, and both calls only read and write the two local ones.
    unsafe {
        let mut all = mem::zeroed();
        let mut previous = mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut previous);
        SignalMask(previous)
    }
}

/// Restores the mask that [`block_signals`] returned.
#[expect(unsafe_code, reason = "signal masks have no safe wrapper")]
pub(crate) fn restore_signals(mask: &SignalMask) {
    // SAFETY: the mask was filled by the system.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask.0, ptr::null_mut()) };
}

/// Sets every signal to its default action and unblocks all.
#[expect(unsafe_code, reason = "signal dispositions have no safe wrapper")]
pub(super) fn reset_signals() {
    // SAFETY: SIG_DFL is always valid; numbers that cannot be set are refused. The set is plain local data.
    unsafe {
        for signal in 1..=MAX_SIGNAL {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none = mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
}

/// Installs a SIGCHLD handler, so that the end of a child interrupts [`wait_for_child_or_input`] even if Haft ignores
/// SIGCHLD.
#[expect(unsafe_code, reason = "signal dispositions have no safe wrapper")]
#[expect(clippy::fn_to_numeric_cast_any, reason = "sigaction takes a handler as a number")]
pub(super) fn catch_sigchld() {
    extern "C" fn ignore(_: libc::c_int) {}
    // SAFETY: a zeroed sigaction is a valid one; the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = ignore as *const () as libc::sighandler_t;
        action.sa_flags = 0;
        libc::sigaction(libc::SIGCHLD, &raw const action, ptr::null_mut());
    }
}

/// Waits until a child ends, `input` can be read or the timeout expires; true if `input` can be read.
///
/// All signals must be blocked: SIGCHLD is unblocked only inside of this call, so no end of a child is missed.
#[expect(unsafe_code, reason = "pselect has no safe wrapper")]
pub(super) fn wait_for_child_or_input(input: Option<BorrowedFd<'_>>, timeout: Option<Duration>) -> bool {
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs().try_into().unwrap_or(i32::MAX.into()),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    // SAFETY: the sets are plain local data; the reaper's control pipe is descriptor 3, below FD_SETSIZE.
    unsafe {
        let mut mask = mem::zeroed();
        libc::sigfillset(&raw mut mask);
        libc::sigdelset(&raw mut mask, libc::SIGCHLD);
        let mut readable = mem::zeroed();
        libc::FD_ZERO(&raw mut readable);
        let mut count = 0;
        if let Some(input) = input {
            libc::FD_SET(input.as_raw_fd(), &raw mut readable);
            count = input.as_raw_fd() + 1;
        }
        let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
        let none = ptr::null_mut();
        libc::pselect(count, &raw mut readable, none, none, timeout, &raw const mask) > 0
    }
}

/// Stops this process and its group as Ctrl-Z does; returns when it is continued, or at once if no shell could do that.
#[expect(unsafe_code, reason = "signal dispositions have no safe wrapper")]
pub(super) fn stop_own_group() {
    // SAFETY: SIG_IGN and the previous action are valid ones; raise sends a signal to this thread.
    unsafe {
        // The signal to the group is ignored here: it would be delivered some time later, perhaps after the process was continued.
        let previous = libc::signal(libc::SIGTSTP, libc::SIG_IGN);
        let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
        libc::signal(libc::SIGTSTP, previous);
        libc::raise(libc::SIGTSTP);
    }
}

/// The process group of a process, or of this one. It has no number where its leader is in a pid namespace above this one, as
/// in containers that make no session of their own.
#[expect(unsafe_code, reason = "the safe wrapper takes the number 0 for a group")]
pub(crate) fn process_group(process: Option<Pid>) -> Option<Pid> {
    // SAFETY: plain numbers.
    let group = unsafe { libc::getpgid(process.map_or(0, |process| process.as_raw_nonzero().get())) };
    if group > 0 { Pid::from_raw(group) } else { None }
}

/// Replaces this process with `program`; returns only if that fails.
#[expect(unsafe_code, reason = "execve has no safe wrapper")]
pub(super) fn execute(program: &CStr, argv: &CStringArray, environment: &CStringArray) -> Errno {
    // SAFETY: both arrays end with a null and point to C strings that live as long as they do.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), environment.as_ptr()) };
    last_error()
}

/// Ends this process without running exit handlers of Haft.
#[expect(unsafe_code, reason = "_exit has no safe wrapper")]
pub(crate) fn exit(code: i32) -> ! {
    // SAFETY: always sound.
    unsafe { libc::_exit(code) }
}

/// Makes `fds` the descriptors 0, 1, 2, … of this process and closes all others.
///
/// # Safety
/// Nothing in this process may use any other descriptor afterwards: call it in a fresh fork only.
#[expect(unsafe_code, reason = "descriptors are moved by number")]
pub(crate) unsafe fn keep_only<const N: usize>(fds: [RawFd; N]) -> Result<(), Errno> {
    let count = RawFd::try_from(N).map_err(|_| Errno::MFILE)?;
    let mut copies = [0; N];
    for (copy, fd) in copies.iter_mut().zip(fds) {
        // Copied above the targets first: a source may have the number of another one's target.
        // SAFETY: duplicating a descriptor touches no memory.
        *copy = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, count) };
        if *copy < 0 {
            return Err(last_error());
        }
    }
    for (target, copy) in (0..count).zip(copies) {
        // SAFETY: the caller gave up whatever was at `target`.
        if unsafe { libc::dup2(copy, target) } < 0 {
            return Err(last_error());
        }
    }
    close_from(count);
    Ok(())
}

/// Closes every descriptor from `first` on.
#[expect(unsafe_code, reason = "descriptors are closed by number")]
fn close_from(first: RawFd) {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: closing touches no memory; the only caller has given these descriptors up.
        if unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) } == 0 {
            return;
        }
    }
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let limit = limit.and_then(|limit| RawFd::try_from(limit).ok()).unwrap_or(RawFd::MAX).min(MAX_CLOSED_FD);
    for fd in first..limit {
        // SAFETY: as above.
        unsafe { libc::close(fd) };
    }
}

/// The descriptor `fd`, which [`keep_only`] has placed and which stays open for the life of the process.
#[expect(unsafe_code, reason = "descriptors are named by number")]
pub(super) fn placed(fd: RawFd) -> BorrowedFd<'static> {
    // SAFETY: only used for placed descriptors, in a process where nothing closes them.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// Closes descriptors by number.
///
/// # Safety
/// Nothing in this process may use them afterwards.
#[expect(unsafe_code, reason = "descriptors are closed by number")]
pub(super) unsafe fn close<const N: usize>(fds: [RawFd; N]) {
    for fd in fds {
        // SAFETY: the caller has given them up.
        unsafe { libc::close(fd) };
    }
}

/// A close-on-exec pipe: its read end and its write end.
pub(crate) fn pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    #[cfg(target_os = "linux")]
    return rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC);
    #[cfg(not(target_os = "linux"))]
    {
        let ends = rustix::pipe::pipe()?;
        rustix::io::fcntl_setfd(&ends.0, rustix::io::FdFlags::CLOEXEC)?;
        rustix::io::fcntl_setfd(&ends.1, rustix::io::FdFlags::CLOEXEC)?;
        Ok(ends)
    }
}
