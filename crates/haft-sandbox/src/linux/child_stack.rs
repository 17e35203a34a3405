//! Starts the command's process in the reaper's memory, as `posix_spawn` does: a second copy of Haft's page tables would
//! make every command 0.15 ms slower.

use std::ffi::{c_int, c_void};
use std::ptr;

use rustix::io::Errno;
use rustix::process::Pid;

use crate::process::last_error;

const STACK_BYTES: usize = 256 * 1024;
/// Unmapped memory below the stack, so that an overflow faults.
const GUARD_BYTES: usize = 64 * 1024;

/// Starts a process that calls `run` on a stack of its own; returns once it has executed a program or exited.
///
/// # Safety
/// `run` may only make system calls and must not return. Signals must be blocked.
#[expect(unsafe_code, reason = "clone has no safe wrapper")]
pub(crate) unsafe fn start_child<F: FnMut()>(mut run: F) -> Result<Pid, Errno> {
    extern "C" fn call<F: FnMut()>(run: *mut c_void) -> c_int {
        // SAFETY: the parent is suspended and keeps it alive.
        unsafe { (*run.cast::<F>())() };
        127
    }
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let size = GUARD_BYTES + STACK_BYTES;
    // SAFETY: fresh memory at an address of the kernel's choice; every offset is inside of it; stacks grow downwards.
    unsafe {
        let memory = libc::mmap(ptr::null_mut(), size, protection, flags, -1, 0);
        if memory == libc::MAP_FAILED {
            return Err(last_error());
        }
        libc::mprotect(memory, GUARD_BYTES, libc::PROT_NONE);
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let child = libc::clone(call::<F>, memory.byte_add(size), flags, (&raw mut run).cast());
        let child = if child < 0 { Err(last_error()) } else { Pid::from_raw(child).ok_or(Errno::CHILD) };
        // The child no longer uses this memory.
        libc::munmap(memory, size);
        child
    }
}
