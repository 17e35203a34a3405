//! Trying a part of the sandbox for real, in a forked child that is thrown away.
//!
//! The children only make system calls: another thread of Haft may have held a lock when they were forked.
#![expect(unsafe_code, reason = "forks and raw system calls have no safe wrapper")]

use std::ffi::CStr;
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, WaitOptions};

use super::landlock;

/// How long a trial may take before its child is ended, in seconds.
const PATIENCE: libc::c_uint = 5;
/// The same for one answer, in milliseconds.
const ANSWER: libc::c_int = 2_000;
/// A call that nothing in a trial needs, so that it can be reported.
const REPORTED: libc::c_long = libc::SYS_getsid;
/// `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP`.
const SYNC_WAKE_UP: u64 = 1;

/// What a child found out: parts that work, as bits, and the error that ended the trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub parts: u8,
    pub error: Option<Errno>,
}

impl Answer {
    pub(super) fn has(self, part: u8) -> bool {
        self.parts & part == part
    }
}

/// The trial went as it should.
pub(super) const WORKS: u8 = 1;
/// A waiting program can be ended while its call is being looked at.
pub(super) const WAITS_KILLABLE: u8 = 1 << 1;
/// A file that Haft opened can be handed over.
pub(super) const HANDS_OVER: u8 = 1 << 2;
/// The same in one step with the answer.
pub(super) const HANDS_OVER_AT_ONCE: u8 = 1 << 3;
/// Supervisor and program take turns on one processor.
pub(super) const TAKES_TURNS: u8 = 1 << 4;

/// Runs `inside` in a child and returns what it found.
///
/// # Safety
/// `inside` may only make system calls.
unsafe fn in_child(inside: impl FnOnce() -> Answer) -> Result<Answer, Errno> {
    let (reading, writing) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    // SAFETY: the child keeps to system calls.
    let child = match unsafe { libc::fork() } {
        -1 => return Err(last_error()),
        0 => {
            // SAFETY: as above; whatever Haft made of the signals, here one ends the process, and children can be
            // waited for.
            unsafe {
                libc::signal(libc::SIGALRM, libc::SIG_DFL);
                libc::signal(libc::SIGCHLD, libc::SIG_DFL);
                libc::alarm(PATIENCE);
            }
            let Answer { parts, error } = inside();
            let code = error.map_or(0, Errno::raw_os_error).to_ne_bytes();
            let _ = rustix::io::write(&writing, &[parts, code[0], code[1], code[2], code[3]]);
            // SAFETY: ends the process without anything that Haft wanted done at its own end.
            unsafe { libc::_exit(0) }
        }
        child => child,
    };
    drop(writing);
    let mut bytes = [0; 5];
    let count = rustix::io::retry_on_intr(|| rustix::io::read(&reading, &mut bytes));
    reap(child);
    if count != Ok(bytes.len()) {
        return Err(Errno::TIMEDOUT);
    }
    let code = i32::from_ne_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
    Ok(Answer { parts: bytes[0], error: (code != 0).then(|| Errno::from_raw_os_error(code)) })
}

/// Whether a child under `ruleset` is kept from writing `file`, which is there and could be written.
pub(super) fn is_kept_from_writing(ruleset: RawFd, file: &CStr) -> Result<Answer, Errno> {
    let inside = || {
        if let Err(error) = landlock::restrict(ruleset) {
            return Answer { parts: 0, error: Some(error) };
        }
        // SAFETY: the path ends with a NUL.
        match unsafe { libc::open(file.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) } {
            -1 if last_error() == Errno::ACCESS => Answer { parts: WORKS, error: None },
            _ => Answer::default(),
        }
    };
    // SAFETY: two system calls.
    unsafe { in_child(inside) }
}

/// Whether a child can give up all ways to more rights.
pub(super) fn no_new_privs() -> Result<Answer, Errno> {
    let inside = || match rustix::thread::set_no_new_privs(true) {
        Ok(()) => Answer { parts: u8::from(rustix::thread::no_new_privs() == Ok(true)), error: None },
        Err(error) => Answer { parts: 0, error: Some(error) },
    };
    // SAFETY: two system calls.
    unsafe { in_child(inside) }
}

/// Whether a child can have these namespaces of its own.
pub(super) fn unshares(flags: libc::c_int) -> bool {
    // SAFETY: one system call, in a process of its own.
    let inside = || Answer { parts: u8::from(unsafe { libc::unshare(flags) } == 0), error: None };
    // SAFETY: as above.
    unsafe { in_child(inside) }.is_ok_and(|answer| answer.has(WORKS))
}

/// Whether calls of a child can be reported and answered.
pub(super) fn reports_calls() -> Result<Answer, Errno> {
    // SAFETY: the child only makes system calls, and so does its own child.
    unsafe { in_child(supervise) }
}

/// Installs a filter that reports one call, lets a child make that call, and answers it.
fn supervise() -> Answer {
    let mut parts = 0;
    let stop = |parts, error| Answer { parts, error: Some(error) };
    if let Err(error) = rustix::thread::set_no_new_privs(true) {
        return stop(parts, error);
    }
    let listener = match listen(libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV) {
        Ok(listener) => {
            parts |= WAITS_KILLABLE;
            listener
        }
        Err(Errno::INVAL) => match listen(0) {
            Ok(listener) => listener,
            Err(error) => return stop(parts, error),
        },
        Err(error) => return stop(parts, error),
    };
    // SAFETY: the flags are a plain number, and the child only makes system calls.
    let child = unsafe {
        if libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP) == 0 {
            parts |= TAKES_TURNS;
        }
        match libc::fork() {
            -1 => return stop(parts, last_error()),
            0 => {
                // Its own copy would keep the reports open, and itself waiting, if the supervisor died.
                libc::close(listener);
                let fd = libc::syscall(REPORTED, 0);
                let good = fd > 2 && libc::fcntl(RawFd::try_from(fd).unwrap_or(-1), libc::F_GETFD) >= 0;
                libc::_exit(i32::from(!good))
            }
            child => child,
        }
    };
    let answer = hand_over(listener, parts);
    if answer.error.is_some() {
        // SAFETY: it is our own child, which still waits.
        unsafe { libc::kill(child, libc::SIGKILL) };
    }
    let worked = reap(child) == Some(0);
    Answer { parts: answer.parts | if worked { WORKS } else { 0 }, ..answer }
}

/// Answers the one call that is reported with a descriptor.
fn hand_over(listener: RawFd, mut parts: u8) -> Answer {
    let stop = |parts| Answer { parts, error: Some(last_error()) };
    // SAFETY: plain data that lives here; the kernel reads and fills no more than its size.
    unsafe {
        let mut ready = libc::pollfd { fd: listener, events: libc::POLLIN, revents: 0 };
        if libc::poll(&raw mut ready, 1, ANSWER) != 1 {
            return Answer { parts, error: Some(Errno::TIMEDOUT) };
        }
        let mut call: libc::seccomp_notif = mem::zeroed();
        if libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut call) != 0 {
            return stop(parts);
        }
        let mut gift: libc::seccomp_notif_addfd = mem::zeroed();
        gift.id = call.id;
        gift.srcfd = listener.cast_unsigned();
        gift.flags = u32::try_from(libc::SECCOMP_ADDFD_FLAG_SEND).unwrap_or_default();
        if libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const gift) >= 0 {
            return Answer { parts: parts | HANDS_OVER | HANDS_OVER_AT_ONCE, error: None };
        }
        gift.flags = 0;
        let fd = libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const gift);
        if fd < 0 {
            return stop(parts);
        }
        parts |= HANDS_OVER;
        let mut answer: libc::seccomp_notif_resp = mem::zeroed();
        answer.id = call.id;
        answer.val = fd.into();
        if libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) != 0 {
            return stop(parts);
        }
    }
    Answer { parts, error: None }
}

/// Installs the filter; returns where its reports come out.
fn listen(more: libc::c_ulong) -> Result<RawFd, Errno> {
    let step =
        |code: u32, jt, jf, k| libc::sock_filter { code: u16::try_from(code).unwrap_or_default(), jt, jf, k };
    let mut program = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, u32::try_from(REPORTED).unwrap_or(u32::MAX)),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_USER_NOTIF),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let length = u16::try_from(program.len()).unwrap_or_default();
    let program = libc::sock_fprog { len: length, filter: program.as_mut_ptr() };
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | more;
    // SAFETY: the kernel reads the program and the four steps it points to, which live here.
    let fd =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) };
    if fd < 0 { Err(last_error()) } else { RawFd::try_from(fd).map_err(|_| Errno::BADF) }
}

/// Whether a child's memory can be read, and whether it can be held by a handle.
pub(super) fn looks_into_a_child() -> Result<(Option<Errno>, Option<Errno>), Errno> {
    let secret: u64 = 0x6861_6674_6861_6674;
    let (reading, writing): (OwnedFd, OwnedFd) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let waiting = reading.as_raw_fd();
    // SAFETY: the child only makes system calls.
    let child = match unsafe { libc::fork() } {
        -1 => return Err(last_error()),
        // SAFETY: it closes its own copy, waits for the parent to close the other, and ends.
        0 => unsafe {
            libc::close(writing.as_raw_fd());
            libc::signal(libc::SIGALRM, libc::SIG_DFL);
            libc::alarm(PATIENCE);
            let mut byte = 0_u8;
            libc::read(waiting, (&raw mut byte).cast(), 1);
            libc::_exit(0)
        },
        child => child,
    };
    let mut copy: u64 = 0;
    let ours = libc::iovec { iov_base: (&raw mut copy).cast(), iov_len: size_of::<u64>() };
    let theirs =
        libc::iovec { iov_base: ptr::from_ref(&secret).cast_mut().cast(), iov_len: size_of::<u64>() };
    // SAFETY: the kernel writes eight bytes into `copy`; the child's memory is laid out as ours was.
    let read = unsafe { libc::process_vm_readv(child, &raw const ours, 1, &raw const theirs, 1, 0) };
    let memory = match read {
        -1 => Some(last_error()),
        _ => (copy != secret).then_some(Errno::FAULT),
    };
    let pidfd = Pid::from_raw(child)
        .ok_or(Errno::SRCH)
        .and_then(|child| rustix::process::pidfd_open(child, PidfdFlags::empty()))
        .err();
    drop(writing);
    reap(child);
    Ok((memory, pidfd))
}

/// Waits for a child of ours to end; its exit code, if it ended by itself.
fn reap(child: libc::pid_t) -> Option<i32> {
    let child = Pid::from_raw(child);
    let ended = rustix::io::retry_on_intr(|| rustix::process::waitpid(child, WaitOptions::empty()));
    ended.ok().flatten().and_then(|(_, status)| status.exit_status())
}

fn last_error() -> Errno {
    Errno::from_raw_os_error(std::io::Error::last_os_error().raw_os_error().unwrap_or_default())
}
