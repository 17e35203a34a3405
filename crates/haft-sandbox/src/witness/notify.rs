//! The kernel's side of the witness: calls that wait for an answer, and the ways to answer them.

use std::mem;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;
use rustix::io::Errno;

const RECEIVE: libc::c_ulong = 0xc050_2100;
const SEND: libc::c_ulong = 0xc018_2101;
const STILL_VALID: libc::c_ulong = 0x4008_2102;
const ADD_DESCRIPTOR: libc::c_ulong = 0x4018_2103;
const SET_FLAGS: libc::c_ulong = 0x4008_2104;

const SYNC_WAKE_UP: u64 = 1;
const CONTINUE: u32 = 1;
const AND_ANSWER: u32 = 2;

/// A call that waits for its answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) id: u64,
    /// The thread that calls.
    pub(super) thread: i32,
    pub(super) number: i64,
    pub(super) arguments: [u64; 6],
}

impl Call {
    /// An argument that is a descriptor, a flag word or another number of 32 bits.
    #[expect(clippy::cast_possible_truncation, reason = "the kernel looks at these 32 bits, too")]
    pub(super) fn int(&self, index: usize) -> i32 {
        (self.arguments[index] as u32).cast_signed()
    }
}

#[repr(C)]
struct Notification {
    id: u64,
    pid: u32,
    flags: u32,
    nr: i32,
    arch: u32,
    instruction_pointer: u64,
    args: [u64; 6],
}

#[repr(C)]
struct Response {
    id: u64,
    val: i64,
    error: i32,
    flags: u32,
}

#[repr(C)]
struct Descriptor {
    id: u64,
    flags: u32,
    srcfd: u32,
    newfd: u32,
    newfd_flags: u32,
}

/// Where the calls of one command's processes arrive.
#[derive(Debug)]
pub(super) struct Listener(OwnedFd);

/// What waiting brought.
pub(super) enum Arrived {
    Call(Call),
    /// The time is up.
    Nothing,
    /// No process is left that could call.
    End,
}

impl Listener {
    pub(super) fn new(fd: OwnedFd) -> Self {
        let listener = Self(fd);
        // Newer kernels hand the processor over at once; others only take a little longer.
        let _ = listener.control(SET_FLAGS, SYNC_WAKE_UP as *mut libc::c_void);
        listener
    }

    /// Waits for the next call.
    pub(super) fn next(&self, patience: Timespec) -> Arrived {
        loop {
            let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
            match rustix::event::poll(&mut fds, Some(&patience)) {
                Ok(0) => return Arrived::Nothing,
                Ok(_) if fds[0].revents().contains(PollFlags::IN) => {}
                Ok(_) => return Arrived::End,
                Err(Errno::INTR) => continue,
                Err(_) => return Arrived::End,
            }
            #[expect(unsafe_code, reason = "plain data for the kernel to fill")]
            // SAFETY: the kernel wants the memory zeroed, and all-zero is a valid notification.
            let mut notification: Notification = unsafe { mem::zeroed() };
            match self.control(RECEIVE, (&raw mut notification).cast()) {
                Ok(_) => {
                    return Arrived::Call(Call {
                        id: notification.id,
                        thread: notification.pid.cast_signed(),
                        number: i64::from(notification.nr),
                        arguments: notification.args,
                    });
                }
                // The caller was killed between the two calls.
                Err(Errno::NOENT | Errno::INTR) => {}
                Err(_) => return Arrived::End,
            }
        }
    }

    /// Whether the caller still waits; only then what was read of its memory was really its own.
    pub(super) fn is_waiting(&self, call: u64) -> bool {
        let mut id = call;
        self.control(STILL_VALID, (&raw mut id).cast()).is_ok()
    }

    /// Lets the kernel do the call as if nobody had looked; Landlock still holds it.
    pub(super) fn go_on(&self, call: u64) {
        self.send(&Response { id: call, val: 0, error: 0, flags: CONTINUE });
    }

    /// Answers with a result.
    pub(super) fn answer(&self, call: u64, result: Result<i64, Errno>) {
        let (val, error) = match result {
            Ok(value) => (value, 0),
            Err(error) => (0, -error.raw_os_error()),
        };
        self.send(&Response { id: call, val, error, flags: 0 });
    }

    /// Gives the caller a descriptor of ours and answers with its number there.
    ///
    /// Both in one step, unless it could be a program that is being written: nobody can execute it while ours is open,
    /// so that is closed before the caller goes on.
    pub(super) fn hand_over(&self, call: u64, fd: OwnedFd, close_on_exec: bool) {
        let apart = is_program_being_written(&fd);
        let mut descriptor = Descriptor {
            id: call,
            flags: if apart { 0 } else { AND_ANSWER },
            srcfd: fd.as_raw_fd().cast_unsigned(),
            newfd: 0,
            newfd_flags: if close_on_exec { libc::O_CLOEXEC.cast_unsigned() } else { 0 },
        };
        loop {
            match self.control(ADD_DESCRIPTOR, (&raw mut descriptor).cast()) {
                Err(Errno::INTR) => {}
                Ok(number) if apart => {
                    drop(fd);
                    return self.answer(call, Ok(number.into()));
                }
                // Done, or nobody waits any more.
                Ok(_) | Err(Errno::NOENT | Errno::INPROGRESS) => return,
                Err(error) => return self.answer(call, Err(error)),
            }
        }
    }

    fn send(&self, response: &Response) {
        // It fails only if the caller was killed meanwhile.
        let _ = self.control(SEND, ptr_of(response));
    }

    #[expect(unsafe_code, reason = "ioctl has no safe wrapper")]
    fn control(&self, request: libc::c_ulong, argument: *mut libc::c_void) -> Result<i32, Errno> {
        // SAFETY: each request is called with the structure that it wants, alive for the call.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), request, argument) };
        if result < 0 { Err(last_error()) } else { Ok(result) }
    }
}

/// Making it executable later is a call of its own, which waits until ours is closed.
fn is_program_being_written(fd: &OwnedFd) -> bool {
    let executable = rustix::fs::fstat(fd).is_ok_and(|stat| stat.st_mode & 0o111 != 0);
    executable
        && rustix::fs::fcntl_getfl(fd).is_ok_and(|flags| flags.intersects(OFlags::WRONLY | OFlags::RDWR))
}

fn ptr_of(response: &Response) -> *mut libc::c_void {
    std::ptr::from_ref(response).cast_mut().cast()
}

pub(super) fn last_error() -> Errno {
    Errno::from_raw_os_error(std::io::Error::last_os_error().raw_os_error().unwrap_or_default())
}
