//! Confines the command's process between fork and exec, and passes the seccomp listener to Haft.
//!
//! [`Confinement::apply`] does not allocate, lock or panic; everything it needs is prepared before.

use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::ruleset::{LandlockRuleset, restrict_self};
use super::{last_error, privileges};
use crate::limits::ProcessLimits;
use crate::process::{StartError, StartStep};

/// Only fatal signals interrupt a call that waits for the witness, so that no call is performed twice (Linux 5.19).
const WAIT_KILLABLE: libc::c_ulong = libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
/// Large enough for the control message of one descriptor.
const CONTROL_BYTES: usize = 64;

/// What the command's process puts on.
pub(crate) struct Confinement {
    ruleset: Arc<LandlockRuleset>,
    filter: Vec<libc::sock_filter>,
    limits: ProcessLimits,
    /// The socket that the listener is sent over; `None` without a witness.
    socket: Option<OwnedFd>,
}

impl Confinement {
    /// The confinement, and the socket from which [`receive_listener`] gets the listener.
    pub(super) fn new(
        ruleset: Arc<LandlockRuleset>,
        filter: Vec<libc::sock_filter>,
        limits: ProcessLimits,
        witness: bool,
    ) -> Result<(Self, Option<OwnedFd>), Errno> {
        let (receiver, socket) = if witness {
            let flags = SocketFlags::CLOEXEC;
            Some(rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?).unzip()
        } else {
            (None, None)
        };
        Ok((Self { ruleset, filter, limits, socket }, receiver))
    }

    /// The descriptors that [`Confinement::apply`] needs.
    pub(crate) fn descriptors(&self) -> [Option<RawFd>; 2] {
        [Some(self.ruleset.as_raw_fd()), self.socket.as_ref().map(AsRawFd::as_raw_fd)]
    }

    /// Confines this process for good. `fds` are the descriptors under their new numbers.
    pub(crate) fn apply(&self, [ruleset, socket]: [RawFd; 2]) -> Result<(), StartError> {
        self.limits.apply().map_err(StartStep::Limits.failed())?;
        privileges::drop_all().map_err(StartStep::Privileges.failed())?;
        restrict_self(ruleset).map_err(StartStep::Landlock.failed())?;
        let listener = install_filter(&self.filter, self.socket.is_some());
        if let Some(listener) = listener.map_err(StartStep::Filter.failed())? {
            send_listener(socket, listener).map_err(StartStep::Filter.failed())?;
        }
        Ok(())
    }
}

/// Installs the filter; returns the listener if it has one.
#[expect(unsafe_code, reason = "seccomp has no safe wrapper")]
fn install_filter(filter: &[libc::sock_filter], has_listener: bool) -> Result<Option<RawFd>, Errno> {
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(|_| Errno::INVAL)?,
        filter: filter.as_ptr().cast_mut(),
    };
    let install = |flags: libc::c_ulong| {
        // SAFETY: the program is alive and has the given length.
        let result = unsafe {
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
        };
        RawFd::try_from(result).ok().filter(|result| *result >= 0)
    };
    if !has_listener {
        return install(0).map(|_| None).ok_or_else(last_error);
    }
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    install(flags | WAIT_KILLABLE).or_else(|| install(flags)).map(Some).ok_or_else(last_error)
}

/// A buffer with the alignment of a control message.
#[repr(align(8))]
struct ControlBuffer([u8; CONTROL_BYTES]);

#[expect(unsafe_code, reason = "descriptors are sent in control messages")]
fn send_listener(socket: RawFd, listener: RawFd) -> Result<(), Errno> {
    let mut byte = [1_u8];
    let mut control = ControlBuffer([0; CONTROL_BYTES]);
    // SAFETY: all pointers are to locals; the control buffer is large enough for one descriptor.
    let sent = unsafe {
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
        ptr::write_unaligned(libc::CMSG_DATA(header).cast::<RawFd>(), listener);
        libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL)
    };
    // SAFETY: the command must not keep the listener.
    unsafe { libc::close(listener) };
    if sent == 1 { Ok(()) } else { Err(last_error()) }
}

/// Receives the listener from the command's process; `None` if that ended before it sent one.
#[expect(unsafe_code, reason = "descriptors are received in control messages")]
pub(super) fn receive_listener(socket: &OwnedFd) -> Option<OwnedFd> {
    let mut byte = [0_u8];
    let mut control = ControlBuffer([0; CONTROL_BYTES]);
    // SAFETY: all pointers are to locals; the kernel writes no more than the given lengths.
    unsafe {
        let mut vector = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = &raw mut vector;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = CONTROL_BYTES as _;
        let received = loop {
            let received = libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC);
            if received >= 0 || last_error() != Errno::INTR {
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
