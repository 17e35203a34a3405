//! Seccomp notifications: receives the system calls that wait for the witness and replies to them.

use std::mem;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::supervisor::Reply;
use crate::process::last_error;

/// `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP`.
const SYNC_WAKE_UP_FLAG: u64 = 1;
const SECCOMP_USER_NOTIF_FLAG_CONTINUE: u32 = 1;
const SECCOMP_ADDFD_FLAG_SEND: u32 = 2;

/// A system call that waits for a reply.
#[derive(Debug, Clone, Copy)]
pub(super) struct Syscall {
    pub(super) id: u64,
    /// The thread that made the call.
    pub(super) thread: i32,
    pub(super) number: i64,
    pub(super) arguments: [u64; 6],
}

impl Syscall {
    /// An argument of 32 bits: a descriptor or flags.
    #[expect(clippy::cast_possible_truncation, reason = "the kernel uses only these 32 bits, too")]
    pub(super) fn int(&self, index: usize) -> i32 {
        (self.arguments[index] as u32).cast_signed()
    }
}

/// The listener of a command's seccomp filter.
#[derive(Debug)]
pub(super) struct NotifyListener(OwnedFd);

/// The result of waiting for a call.
pub(super) enum ReceivedCall {
    Syscall(Syscall),
    Timeout,
    /// No process with this filter is left.
    Closed,
}

impl NotifyListener {
    pub(super) fn new(fd: OwnedFd) -> Self {
        let listener = Self(fd);
        // Since Linux 6.6 the kernel can switch to the witness at once; without it calls take a little longer.
        let _ = listener.ioctl(libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP_FLAG as *mut libc::c_void);
        listener
    }

    /// Waits for the next call.
    pub(super) fn next(&self, timeout: Duration) -> ReceivedCall {
        let timeout = Timespec::try_from(timeout).unwrap_or_default();
        loop {
            let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
            match rustix::event::poll(&mut fds, Some(&timeout)) {
                Ok(0) => return ReceivedCall::Timeout,
                Ok(_) if fds[0].revents().contains(PollFlags::IN) => {}
                Err(Errno::INTR) => continue,
                Ok(_) | Err(_) => return ReceivedCall::Closed,
            }
            #[expect(unsafe_code, reason = "plain data for the kernel to fill")]
            // SAFETY: the kernel requires zeroed memory, and all-zero is a valid notification.
            let mut notification: libc::seccomp_notif = unsafe { mem::zeroed() };
            match self.ioctl(libc::SECCOMP_IOCTL_NOTIF_RECV, (&raw mut notification).cast()) {
                Ok(_) => {
                    return ReceivedCall::Syscall(Syscall {
                        id: notification.id,
                        thread: notification.pid.cast_signed(),
                        number: i64::from(notification.data.nr),
                        arguments: notification.data.args,
                    });
                }
                // The caller was killed between poll and ioctl.
                Err(Errno::NOENT | Errno::INTR) => {}
                Err(_) => return ReceivedCall::Closed,
            }
        }
    }

    /// Whether the caller still waits. Only then was the memory that was read really the caller's.
    pub(super) fn is_valid(&self, call: u64) -> bool {
        let mut id = call;
        self.ioctl(libc::SECCOMP_IOCTL_NOTIF_ID_VALID, (&raw mut id).cast()).is_ok()
    }

    /// Sends a reply to a call.
    pub(super) fn send_reply(&self, call: u64, reply: Reply) {
        match reply {
            Reply::Continue => self.continue_call(call),
            Reply::Value(value) => self.reply(call, Ok(value)),
            Reply::Error(error) => self.reply(call, Err(error)),
            Reply::Fd { fd, close_on_exec } => self.reply_with_fd(call, fd, close_on_exec),
            Reply::Deferred => {}
        }
    }

    /// Lets the kernel perform the call; Landlock still restricts it.
    fn continue_call(&self, call: u64) {
        self.send(&libc::seccomp_notif_resp {
            id: call,
            val: 0,
            error: 0,
            flags: SECCOMP_USER_NOTIF_FLAG_CONTINUE,
        });
    }

    /// Replies with a result.
    fn reply(&self, call: u64, result: Result<i64, Errno>) {
        let (val, error) = match result {
            Ok(value) => (value, 0),
            Err(error) => (0, -error.raw_os_error()),
        };
        self.send(&libc::seccomp_notif_resp { id: call, val, error, flags: 0 });
    }

    /// Adds a descriptor to the caller's table and replies with its number there.
    ///
    /// An executable file that is open for writing cannot be executed (ETXTBSY). So Haft closes its own descriptor of
    /// such a file before the caller continues, which needs two steps.
    fn reply_with_fd(&self, call: u64, fd: OwnedFd, close_on_exec: bool) {
        let in_two_steps = is_writable_executable(&fd);
        let mut request = libc::seccomp_notif_addfd {
            id: call,
            flags: if in_two_steps { 0 } else { SECCOMP_ADDFD_FLAG_SEND },
            srcfd: fd.as_raw_fd().cast_unsigned(),
            newfd: 0,
            newfd_flags: if close_on_exec { libc::O_CLOEXEC.cast_unsigned() } else { 0 },
        };
        loop {
            match self.ioctl(libc::SECCOMP_IOCTL_NOTIF_ADDFD, (&raw mut request).cast()) {
                Err(Errno::INTR) => {}
                Ok(number) if in_two_steps => {
                    drop(fd);
                    return self.reply(call, Ok(number.into()));
                }
                // Done, or the caller is gone.
                Ok(_) | Err(Errno::NOENT | Errno::INPROGRESS) => return,
                Err(error) => return self.reply(call, Err(error)),
            }
        }
    }

    /// Adds a descriptor to the caller's table without a reply; returns its number there.
    pub(super) fn add_fd(&self, call: u64, fd: &OwnedFd, close_on_exec: bool) -> Result<i32, Errno> {
        let mut request = libc::seccomp_notif_addfd {
            id: call,
            flags: 0,
            srcfd: fd.as_raw_fd().cast_unsigned(),
            newfd: 0,
            newfd_flags: if close_on_exec { libc::O_CLOEXEC.cast_unsigned() } else { 0 },
        };
        loop {
            match self.ioctl(libc::SECCOMP_IOCTL_NOTIF_ADDFD, (&raw mut request).cast()) {
                Err(Errno::INTR) => {}
                added => return added,
            }
        }
    }

    fn send(&self, response: &libc::seccomp_notif_resp) {
        // Fails only if the caller was killed.
        let _ = self.ioctl(libc::SECCOMP_IOCTL_NOTIF_SEND, ptr::from_ref(response).cast_mut().cast());
    }

    #[expect(unsafe_code, reason = "ioctl has no safe wrapper")]
    fn ioctl(&self, request: libc::Ioctl, argument: *mut libc::c_void) -> Result<i32, Errno> {
        // SAFETY: each request gets the structure that it expects, alive for the call.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), request, argument) };
        if result < 0 { Err(last_error()) } else { Ok(result) }
    }
}

/// Whether a file is executable and open for writing. If it becomes executable later, that is a call of its own.
fn is_writable_executable(fd: &OwnedFd) -> bool {
    let is_executable = rustix::fs::fstat(fd).is_ok_and(|stat| stat.st_mode & 0o111 != 0);
    is_executable
        && rustix::fs::fcntl_getfl(fd).is_ok_and(|flags| flags.intersects(OFlags::WRONLY | OFlags::RDWR))
}
