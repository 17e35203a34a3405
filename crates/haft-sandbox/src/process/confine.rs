//! Between fork and exec: everything that holds a command to its scope, put on by the command's own process.
//!
//! Nothing here allocates, locks or panics; all that it needs was prepared before.

use std::mem;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr;

use rustix::io::Errno;

use super::report::Step;
use crate::sandbox::{self, Limits};

/// What the child puts on.
#[derive(Debug, Clone)]
pub(crate) struct Confinement {
    /// The Landlock ruleset.
    pub(crate) ruleset: RawFd,
    /// The seccomp program.
    pub(crate) program: Vec<libc::sock_filter>,
    pub(crate) limits: Limits,
    /// Whether mutating calls are reported, so that there is a listener to send.
    pub(crate) witness: bool,
}

/// Calls that wait for an answer are not interrupted by signals, so none is done twice; for kernels that can.
const WAIT_KILLABLE: libc::c_ulong = 1 << 5;

/// Confines this process for good; `report_to` is the socket over which Haft gets the listener.
pub(super) fn confine(
    confinement: &Confinement,
    ruleset: RawFd,
    report_to: RawFd,
) -> Result<(), (Step, Errno)> {
    sandbox::apply(&confinement.limits).map_err(|error| (Step::Limits, error))?;
    sandbox::drop_all().map_err(|error| (Step::Privileges, error))?;
    sandbox::restrict(ruleset).map_err(|error| (Step::Landlock, error))?;
    let listener =
        install(&confinement.program, confinement.witness).map_err(|error| (Step::Filter, error))?;
    if let Some(listener) = listener {
        send(report_to, listener).map_err(|error| (Step::Filter, error))?;
    }
    Ok(())
}

#[expect(unsafe_code, reason = "seccomp has no safe wrapper")]
fn install(program: &[libc::sock_filter], listen: bool) -> Result<Option<RawFd>, Errno> {
    let program = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| Errno::INVAL)?,
        filter: program.as_ptr().cast_mut(),
    };
    let set = |flags: libc::c_ulong| {
        // SAFETY: the program is alive and as long as is said.
        let result = unsafe {
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
        };
        i32::try_from(result).ok().filter(|result| *result >= 0)
    };
    if !listen {
        return set(0).map(|_| None).ok_or_else(super::sys::last_error);
    }
    let listen = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    set(listen | WAIT_KILLABLE).or_else(|| set(listen)).map(Some).ok_or_else(super::sys::last_error)
}

/// Room for one descriptor's control message, aligned as the kernel wants it.
#[repr(align(8))]
struct Control([u8; 64]);

#[expect(unsafe_code, reason = "descriptors travel in control messages")]
fn send(socket: RawFd, fd: RawFd) -> Result<(), Errno> {
    let mut byte = [1_u8];
    let mut control = Control([0; 64]);
    // SAFETY: all pointers are to locals; the control buffer is large enough for one descriptor.
    let result = unsafe {
        let mut vector = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = &raw mut vector;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(4) as _;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(4) as _;
        ptr::write_unaligned(libc::CMSG_DATA(header).cast::<RawFd>(), fd);
        libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL)
    };
    // SAFETY: the listener is Haft's now; the command must not have it.
    unsafe { libc::close(fd) };
    if result == 1 { Ok(()) } else { Err(super::sys::last_error()) }
}

/// Takes the listener that the command's process sent; nothing if it ended before.
#[expect(unsafe_code, reason = "descriptors travel in control messages")]
pub(super) fn receive(socket: &OwnedFd) -> Option<OwnedFd> {
    use std::os::fd::FromRawFd;
    let mut byte = [0_u8];
    let mut control = Control([0; 64]);
    // SAFETY: all pointers are to locals; the kernel writes no more than it is told there is room for.
    unsafe {
        let mut vector = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = &raw mut vector;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = control.0.len() as _;
        let received = loop {
            let received = libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC);
            if received >= 0 || super::sys::last_error() != Errno::INTR {
                break received;
            }
        };
        if received != 1 {
            return None;
        }
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        if header.is_null() || (*header).cmsg_type != libc::SCM_RIGHTS {
            return None;
        }
        let fd = ptr::read_unaligned(libc::CMSG_DATA(header).cast::<RawFd>());
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd))
    }
}
