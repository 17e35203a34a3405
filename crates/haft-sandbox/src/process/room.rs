//! Where keeper and command run before the command is executed: in Haft's own memory, on stacks of their own.
//!
//! A fork copies the tables of all of Haft's memory twice for every command, and costs more than the command's own
//! start. A process that shares the memory costs nothing of the kind. It must not touch what belongs to Haft's
//! threads: it gets its own stack, and its own place for what the C library keeps per thread, such as `errno`.

use std::ffi::{c_int, c_void};
use std::ptr;

use rustix::io::Errno;
use rustix::process::Pid;

/// What a new process does; it never returns.
pub(super) type Work = extern "C" fn(*mut c_void) -> c_int;

const PAGE: usize = 64 * 1024;
const STACK: usize = 4 * PAGE;
/// As much on either side as any C library keeps per thread before or behind the pointer to it.
const THREAD: usize = PAGE;
const SIZE: usize = PAGE + STACK + PAGE + STACK + 2 * THREAD;

/// Memory for one keeper and its command. It must outlive both.
#[derive(Debug)]
pub(super) struct Room {
    memory: *mut c_void,
}

#[expect(unsafe_code, reason = "a pointer to memory of its own")]
// SAFETY: the memory is only used by the processes that are started in it.
unsafe impl Send for Room {}

/// Whether whoever starts a process waits until it has executed a program or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    Beside,
    Waiting,
}

impl Room {
    #[expect(unsafe_code, reason = "memory for stacks comes from the system")]
    pub(super) fn new() -> Result<Self, Errno> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: fresh memory, at an address of the system's choice.
        let memory = unsafe { libc::mmap(ptr::null_mut(), SIZE, protection, flags, -1, 0) };
        if memory == libc::MAP_FAILED {
            return Err(super::sys::last_error());
        }
        for below_stack in [0, PAGE + STACK] {
            // SAFETY: the page lies inside; a stack that grows too far ends there instead of in another's memory.
            unsafe { libc::mprotect(memory.byte_add(below_stack), PAGE, libc::PROT_NONE) };
        }
        Ok(Self { memory })
    }

    /// Starts a process that does `work`, with all signals held back as they are now.
    ///
    /// # Safety
    /// `work` may only make system calls until it executes a program or exits, and `argument` must outlive it.
    #[cfg(target_os = "linux")]
    #[expect(unsafe_code, reason = "clone has no safe wrapper")]
    pub(super) unsafe fn start(&self, start: Start, work: Work, argument: *mut c_void) -> Result<Pid, Errno> {
        let thread = PAGE + STACK + PAGE + STACK + THREAD;
        // SAFETY: all offsets lie inside the memory; stacks grow downwards from their ends.
        let result = unsafe {
            let thread = self.memory.byte_add(thread);
            // Where the C library looks for the thread's own record: here, on some processors at the pointer itself
            // and two words behind it. All else there is zero, which says that nobody wants to cancel the thread.
            *thread.cast::<*mut c_void>() = thread;
            *thread.cast::<*mut c_void>().add(2) = thread;
            let (stack, flags) = match start {
                Start::Beside => (PAGE + STACK, libc::CLONE_VM | libc::CLONE_SETTLS | libc::SIGCHLD),
                Start::Waiting => {
                    (PAGE + STACK + PAGE + STACK, libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD)
                }
            };
            let none = ptr::null_mut::<libc::pid_t>();
            libc::clone(work, self.memory.byte_add(stack), flags, argument, none, thread, none)
        };
        if result < 0 {
            return Err(super::sys::last_error());
        }
        Pid::from_raw(result).ok_or(Errno::CHILD)
    }

    /// The same by copying, where memory cannot be shared.
    ///
    /// # Safety
    /// As above.
    #[cfg(not(target_os = "linux"))]
    #[expect(unsafe_code, reason = "fork has no safe wrapper")]
    pub(super) unsafe fn start(
        &self,
        _start: Start,
        work: Work,
        argument: *mut c_void,
    ) -> Result<Pid, Errno> {
        // SAFETY: the caller keeps to what a child may do.
        match unsafe { libc::fork() } {
            -1 => Err(super::sys::last_error()),
            0 => super::sys::exit(work(argument)),
            child => Pid::from_raw(child).ok_or(Errno::CHILD),
        }
    }
}

impl Drop for Room {
    #[expect(unsafe_code, reason = "memory goes back to the system")]
    fn drop(&mut self) {
        // SAFETY: the owner sees to it that the processes that ran here are gone.
        unsafe { libc::munmap(self.memory, SIZE) };
    }
}
