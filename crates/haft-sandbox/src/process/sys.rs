//! The few system calls that have no safe wrapper. Nothing here allocates, locks or panics, so all of it may
//! be called between fork and exec.

use std::ffi::CStr;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr;
use std::time::Duration;

use rustix::io::Errno;

use super::launch::CStrings;

/// The calling thread's signal mask, to be put back.
pub(super) struct Mask(libc::sigset_t);

/// Holds back every signal of this thread; what was held back before is returned.
///
/// A child forked in this state never runs a handler of Haft's, whose pipes it would share.
#[expect(unsafe_code, reason = "signal masks have no safe wrapper")]
pub(super) fn block_signals() -> Mask {
    // SAFETY: a sigset_t is plain data, and both calls only read and write the two local ones.
    unsafe {
        let mut all = mem::zeroed();
        let mut before = mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        Mask(before)
    }
}

/// Puts the mask back that [`block_signals`] returned.
#[expect(unsafe_code, reason = "signal masks have no safe wrapper")]
pub(super) fn restore_signals(mask: &Mask) {
    // SAFETY: the mask was filled by the system.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask.0, ptr::null_mut()) };
}

/// Lets every signal through and gives each its default meaning, whatever Haft made of it.
#[expect(unsafe_code, reason = "signal dispositions have no safe wrapper")]
pub(super) fn default_signals() {
    // SAFETY: SIG_DFL is always valid; numbers that cannot be set are refused. The set is plain local data.
    unsafe {
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none = mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
}

/// Lets a child's end interrupt [`wait`], also if Haft ignores SIGCHLD, which would make ends unseen.
#[expect(unsafe_code, reason = "signal dispositions have no safe wrapper")]
#[expect(clippy::fn_to_numeric_cast_any, reason = "sigaction takes a handler as a number")]
pub(super) fn notice_children() {
    extern "C" fn noticed(_: libc::c_int) {}
    // SAFETY: a zeroed sigaction is a valid one; the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = noticed as *const () as libc::sighandler_t;
        action.sa_flags = 0;
        libc::sigaction(libc::SIGCHLD, &raw const action, ptr::null_mut());
    }
}

/// Waits until a child ends, `control` can be read or the time is up; true if it can be read.
///
/// All signals must be held back: SIGCHLD gets through here only, so no end is missed.
#[expect(unsafe_code, reason = "pselect has no safe wrapper")]
pub(super) fn wait(control: Option<BorrowedFd<'_>>, timeout: Option<Duration>) -> bool {
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs().try_into().unwrap_or(i32::MAX.into()),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    // SAFETY: sets are plain local data; the keeper's control pipe is at 3, far below FD_SETSIZE.
    unsafe {
        let mut mask = mem::zeroed();
        libc::sigfillset(&raw mut mask);
        libc::sigdelset(&raw mut mask, libc::SIGCHLD);
        let mut readable = mem::zeroed();
        libc::FD_ZERO(&raw mut readable);
        let mut count = 0;
        if let Some(control) = control {
            libc::FD_SET(control.as_raw_fd(), &raw mut readable);
            count = control.as_raw_fd() + 1;
        }
        let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
        let ready = libc::pselect(
            count,
            &raw mut readable,
            ptr::null_mut(),
            ptr::null_mut(),
            timeout,
            &raw const mask,
        );
        ready > 0
    }
}

/// Executes `program` in place of this process; returns only why that was not possible.
#[expect(unsafe_code, reason = "execve has no safe wrapper")]
pub(super) fn execute(program: &CStr, argv: &CStrings, environment: &CStrings) -> Errno {
    // SAFETY: both arrays end with a null and point to C strings that live as long as they do.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), environment.as_ptr()) };
    last_error()
}

/// Ends this process at once, without anything that Haft wanted done at its own end.
#[expect(unsafe_code, reason = "_exit has no safe wrapper")]
pub(super) fn exit(code: i32) -> ! {
    // SAFETY: always sound.
    unsafe { libc::_exit(code) }
}

/// Makes `fds` this process's descriptors 0, 1, 2, … and closes all others.
///
/// # Safety
/// Nothing in this process may go on using any other descriptor: call it in a fresh fork only.
#[expect(unsafe_code, reason = "descriptors are moved by number")]
pub(super) unsafe fn only_descriptors<const N: usize>(fds: [RawFd; N]) -> Result<(), Errno> {
    let count = RawFd::try_from(N).map_err(|_| Errno::MFILE)?;
    let mut aside = [0; N];
    for (place, fd) in aside.iter_mut().zip(fds) {
        // Out of the way first: a source may have the number of another's target.
        // SAFETY: duplicating a descriptor touches no memory.
        *place = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, count) };
        if *place < 0 {
            return Err(last_error());
        }
    }
    for (target, fd) in (0..count).zip(aside) {
        // SAFETY: the caller gave up whatever was at `target`.
        if unsafe { libc::dup2(fd, target) } < 0 {
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
    let limit = limit.and_then(|limit| RawFd::try_from(limit).ok()).unwrap_or(RawFd::MAX).min(1 << 20);
    for fd in first..limit {
        // SAFETY: as above.
        unsafe { libc::close(fd) };
    }
}

/// The descriptor `fd`, which [`only_descriptors`] has put there and which stays for the life of the process.
#[expect(unsafe_code, reason = "descriptors are named by number")]
pub(super) fn placed(fd: RawFd) -> BorrowedFd<'static> {
    // SAFETY: only asked for what was placed, in a process where nothing closes it.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// Closes descriptors by number.
///
/// # Safety
/// Nothing in this process may go on using them.
#[expect(unsafe_code, reason = "descriptors are closed by number")]
pub(super) unsafe fn close<const N: usize>(fds: [RawFd; N]) {
    for fd in fds {
        // SAFETY: the caller has given them up.
        unsafe { libc::close(fd) };
    }
}

/// Two ends of a socket that no executed program inherits.
pub(super) fn socket_pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType};
    rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
}

/// A pipe that no executed program inherits: where to read, where to write.
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

pub(super) fn last_error() -> Errno {
    Errno::from_raw_os_error(std::io::Error::last_os_error().raw_os_error().unwrap_or_default())
}
