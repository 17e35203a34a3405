//! Starts the command's process in the reaper's memory, as `posix_spawn` does.

use std::ffi::{c_int, c_void};
use std::ptr;

use rustix::io::Errno;
use rustix::process::Pid;

const STACK_BYTES: usize = 256 * 1024;
const GUARD_BYTES: usize = 64 * 1024;

/// Starts a process that calls `run` on a stack of its own; returns once it has executed a program or exited.
///
/// # Safety
/// This process must have one thread, and `run` may only make system calls and must not return.
#[expect(unsafe_code, reason = "clone has no safe wrapper")]
pub(super) unsafe fn start<F: FnMut()>(mut run: F) -> Result<Pid, Errno> {
    extern "C" fn call<F: FnMut()>(run: *mut c_void) -> c_int {
        // SAFETY: the parent is suspended and keeps it alive.
        unsafe { (*run.cast::<F>())() };
        127
    }
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let size = GUARD_BYTES + STACK_BYTES;
    // SAFETY: fresh memory at an address of the kernel's choice; all offsets are inside it; the stack grows downwards.
    let child = unsafe {
        let memory = libc::mmap(ptr::null_mut(), size, protection, flags, -1, 0);
        if memory == libc::MAP_FAILED {
            return Err(super::sys::last_error());
        }
        libc::mprotect(memory, GUARD_BYTES, libc::PROT_NONE);
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        libc::clone(call::<F>, memory.byte_add(size), flags, (&raw mut run).cast())
    };
    if child < 0 { Err(super::sys::last_error()) } else { Pid::from_raw(child).ok_or(Errno::CHILD) }
}
