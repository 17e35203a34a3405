//! Tries parts of the sandbox in forked children.
//!
//! The children only make system calls: another thread of Haft may have held a lock when they were forked.
#![expect(unsafe_code, reason = "fork and raw system calls have no safe wrapper")]

use std::ffi::CStr;
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, WaitOptions};

use super::ruleset::restrict_self;
use crate::process::{last_error, pipe};

/// A child that takes longer is killed by SIGALRM.
const CHILD_TIMEOUT_SECONDS: libc::c_uint = 5;
const NOTIFICATION_TIMEOUT_MS: libc::c_int = 2_000;
/// A system call that the children do not need for anything else.
const REPORTED_CALL: libc::c_long = libc::SYS_getsid;
/// `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP`.
const SYNC_WAKE_UP_FLAG: u64 = 1;

/// What a child found out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Trial {
    /// The feature as a whole works.
    pub(super) works: bool,
    /// A program that waits for the witness can be killed.
    pub(super) waits_killable: bool,
    /// A descriptor can be passed to the caller.
    pub(super) adds_fd: bool,
    /// The same in one step with the reply.
    pub(super) adds_fd_and_replies: bool,
    /// Caller and witness can take turns on one processor.
    pub(super) wakes_synchronously: bool,
    /// The error that ended the trial.
    pub(super) error: Option<Errno>,
}

impl Trial {
    fn failed(error: Errno) -> Self {
        Self { error: Some(error), ..Self::default() }
    }

    fn works(works: bool) -> Self {
        Self { works, ..Self::default() }
    }

    fn to_bytes(self) -> [u8; TRIAL_BYTES] {
        let Self { works, waits_killable, adds_fd, adds_fd_and_replies, wakes_synchronously, error } = self;
        let flags = [works, waits_killable, adds_fd, adds_fd_and_replies, wakes_synchronously].map(u8::from);
        let code = error.map_or(0, Errno::raw_os_error).to_ne_bytes();
        let mut bytes = [0; TRIAL_BYTES];
        bytes[..flags.len()].copy_from_slice(&flags);
        bytes[flags.len()..].copy_from_slice(&code);
        bytes
    }

    fn from_bytes([works, killable, adds_fd, replies, wakes, code @ ..]: [u8; TRIAL_BYTES]) -> Self {
        let code = i32::from_ne_bytes(code);
        Self {
            works: works != 0,
            waits_killable: killable != 0,
            adds_fd: adds_fd != 0,
            adds_fd_and_replies: replies != 0,
            wakes_synchronously: wakes != 0,
            error: (code != 0).then(|| Errno::from_raw_os_error(code)),
        }
    }
}

/// Five flags and an error number.
const TRIAL_BYTES: usize = 9;

/// Runs `trial` in a child and returns its result.
///
/// # Safety
/// `trial` may only make system calls.
unsafe fn run_in_child(trial: impl FnOnce() -> Trial) -> Result<Trial, Errno> {
    let (read_end, write_end) = pipe()?;
    // SAFETY: the child only makes system calls.
    let child = match unsafe { libc::fork() } {
        -1 => return Err(last_error()),
        0 => {
            // SAFETY: as above. Default signals: SIGALRM must end this process, and children must be waited for.
            unsafe {
                libc::signal(libc::SIGALRM, libc::SIG_DFL);
                libc::signal(libc::SIGCHLD, libc::SIG_DFL);
                libc::alarm(CHILD_TIMEOUT_SECONDS);
            }
            let result = trial();
            let _ = rustix::io::write(&write_end, &result.to_bytes());
            // SAFETY: ends the process without exit handlers of Haft.
            unsafe { libc::_exit(0) }
        }
        child => child,
    };
    drop(write_end);
    let mut bytes = [0; TRIAL_BYTES];
    let count = rustix::io::retry_on_intr(|| rustix::io::read(&read_end, &mut bytes));
    wait_for(child);
    if count == Ok(TRIAL_BYTES) { Ok(Trial::from_bytes(bytes)) } else { Err(Errno::TIMEDOUT) }
}

/// Whether a child restricted by `ruleset` cannot write `file`, which exists and is writable.
pub(super) fn try_write_restricted(ruleset: RawFd, file: &CStr) -> Result<Trial, Errno> {
    let trial = || {
        if let Err(error) = restrict_self(ruleset) {
            return Trial::failed(error);
        }
        // SAFETY: the path ends with a NUL.
        let fd = unsafe { libc::open(file.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
        Trial::works(fd == -1 && last_error() == Errno::ACCESS)
    };
    // SAFETY: two system calls.
    unsafe { run_in_child(trial) }
}

/// Whether a child can set `no_new_privs`.
pub(super) fn try_no_new_privs() -> Result<Trial, Errno> {
    let trial = || match rustix::thread::set_no_new_privs(true) {
        Ok(()) => Trial::works(rustix::thread::no_new_privs() == Ok(true)),
        Err(error) => Trial::failed(error),
    };
    // SAFETY: two system calls.
    unsafe { run_in_child(trial) }
}

/// Whether calls of a child can be reported and replied to.
pub(super) fn try_notification() -> Result<Trial, Errno> {
    // SAFETY: the child only makes system calls, and so does its own child.
    unsafe { run_in_child(supervise) }
}

/// Installs a filter that reports one call, lets a child make that call, and replies to it.
fn supervise() -> Trial {
    let mut trial = Trial::default();
    if let Err(error) = rustix::thread::set_no_new_privs(true) {
        return Trial::failed(error);
    }
    let listener = match install_filter(libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV) {
        Ok(listener) => {
            trial.waits_killable = true;
            listener
        }
        Err(Errno::INVAL) => match install_filter(0) {
            Ok(listener) => listener,
            Err(error) => return Trial::failed(error),
        },
        Err(error) => return Trial::failed(error),
    };
    // SAFETY: the flags are a plain number, and the child only makes system calls.
    let child = unsafe {
        trial.wakes_synchronously =
            libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP_FLAG) == 0;
        match libc::fork() {
            -1 => return Trial { error: Some(last_error()), ..trial },
            0 => {
                // Its own copy would keep the listener open, and itself waiting, if the supervisor died.
                libc::close(listener);
                let fd = libc::syscall(REPORTED_CALL, 0);
                let is_open = fd > 2 && libc::fcntl(RawFd::try_from(fd).unwrap_or(-1), libc::F_GETFD) >= 0;
                libc::_exit(i32::from(!is_open))
            }
            child => child,
        }
    };
    trial = reply(listener, trial);
    if trial.error.is_some() {
        // SAFETY: it is a child of this process, which still waits.
        unsafe { libc::kill(child, libc::SIGKILL) };
    }
    trial.works = wait_for(child) == Some(0);
    trial
}

/// Replies to the reported call with a descriptor.
fn reply(listener: RawFd, mut trial: Trial) -> Trial {
    let failed = |trial| Trial { error: Some(last_error()), ..trial };
    // SAFETY: plain local data; the kernel reads and fills no more than its size.
    unsafe {
        let mut ready = libc::pollfd { fd: listener, events: libc::POLLIN, revents: 0 };
        if libc::poll(&raw mut ready, 1, NOTIFICATION_TIMEOUT_MS) != 1 {
            return Trial { error: Some(Errno::TIMEDOUT), ..trial };
        }
        let mut call: libc::seccomp_notif = mem::zeroed();
        if libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut call) != 0 {
            return failed(trial);
        }
        let mut added: libc::seccomp_notif_addfd = mem::zeroed();
        added.id = call.id;
        added.srcfd = listener.cast_unsigned();
        added.flags = u32::try_from(libc::SECCOMP_ADDFD_FLAG_SEND).unwrap_or_default();
        if libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const added) >= 0 {
            return Trial { adds_fd: true, adds_fd_and_replies: true, ..trial };
        }
        added.flags = 0;
        let fd = libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const added);
        if fd < 0 {
            return failed(trial);
        }
        trial.adds_fd = true;
        let mut response: libc::seccomp_notif_resp = mem::zeroed();
        response.id = call.id;
        response.val = fd.into();
        if libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut response) != 0 {
            return failed(trial);
        }
    }
    trial
}

/// Installs the filter and returns its listener.
fn install_filter(more_flags: libc::c_ulong) -> Result<RawFd, Errno> {
    let step =
        |code: u32, jt, jf, k| libc::sock_filter { code: u16::try_from(code).unwrap_or_default(), jt, jf, k };
    let reported = u32::try_from(REPORTED_CALL).unwrap_or(u32::MAX);
    let mut program = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, reported),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_USER_NOTIF),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let length = u16::try_from(program.len()).unwrap_or_default();
    let program = libc::sock_fprog { len: length, filter: program.as_mut_ptr() };
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | more_flags;
    // SAFETY: the kernel reads the program and the four steps it points to, which are alive.
    let fd =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) };
    if fd < 0 { Err(last_error()) } else { RawFd::try_from(fd).map_err(|_| Errno::BADF) }
}

/// The errors of reading a child's memory and of opening a pidfd for it; `None` where it works.
pub(super) fn try_child_access() -> Result<(Option<Errno>, Option<Errno>), Errno> {
    let value: u64 = 0x6861_6674_6861_6674;
    let (read_end, write_end): (OwnedFd, OwnedFd) = pipe()?;
    let waiting = read_end.as_raw_fd();
    // SAFETY: the child only makes system calls.
    let child = match unsafe { libc::fork() } {
        -1 => return Err(last_error()),
        // SAFETY: it closes its own copy, waits until the parent closes the other, and ends.
        0 => unsafe {
            libc::close(write_end.as_raw_fd());
            libc::signal(libc::SIGALRM, libc::SIG_DFL);
            libc::alarm(CHILD_TIMEOUT_SECONDS);
            let mut byte = 0_u8;
            libc::read(waiting, (&raw mut byte).cast(), 1);
            libc::_exit(0)
        },
        child => child,
    };
    let mut copy: u64 = 0;
    let local = libc::iovec { iov_base: (&raw mut copy).cast(), iov_len: size_of::<u64>() };
    let remote = libc::iovec { iov_base: ptr::from_ref(&value).cast_mut().cast(), iov_len: size_of::<u64>() };
    // SAFETY: the kernel writes eight bytes into `copy`; the child has the same memory layout.
    let read = unsafe { libc::process_vm_readv(child, &raw const local, 1, &raw const remote, 1, 0) };
    let memory = match read {
        -1 => Some(last_error()),
        _ => (copy != value).then_some(Errno::FAULT),
    };
    let pidfd = Pid::from_raw(child)
        .ok_or(Errno::SRCH)
        .and_then(|child| rustix::process::pidfd_open(child, PidfdFlags::empty()))
        .err();
    drop(write_end);
    wait_for(child);
    Ok((memory, pidfd))
}

/// Waits for a child; its exit code, if it exited.
fn wait_for(child: libc::pid_t) -> Option<i32> {
    let child = Pid::from_raw(child);
    let ended = rustix::io::retry_on_intr(|| rustix::process::waitpid(child, WaitOptions::empty()));
    ended.ok().flatten().and_then(|(_, status)| status.exit_status())
}
