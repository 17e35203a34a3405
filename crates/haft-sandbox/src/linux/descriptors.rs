//! Passes descriptors between processes.

use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use rustix::io::Errno;

use crate::process::last_error;

/// Large enough for the control message of one descriptor.
const CONTROL_BYTES: usize = 64;

/// A buffer with the alignment of a control message.
#[repr(align(8))]
struct ControlBuffer([u8; CONTROL_BYTES]);

/// Sends a descriptor. Does not allocate, lock or panic: it is called between fork and exec.
#[expect(unsafe_code, reason = "descriptors are sent in control messages")]
pub(super) fn send_descriptor(socket: RawFd, fd: RawFd) -> Result<(), Errno> {
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
        ptr::write_unaligned(libc::CMSG_DATA(header).cast::<RawFd>(), fd);
        libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL)
    };
    if sent == 1 { Ok(()) } else { Err(last_error()) }
}

/// Receives a descriptor; `None` if the other end was closed, or sent none.
#[expect(unsafe_code, reason = "descriptors are received in control messages")]
pub(super) fn receive_descriptor(socket: &OwnedFd) -> Option<OwnedFd> {
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
