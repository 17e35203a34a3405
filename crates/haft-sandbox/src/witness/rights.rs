//! Root's special rights, laid down for a moment.
//!
//! A command has none of them, also as root. What it may write is the scope's to say, so there the witness uses what it
//! has; but what it reads on a command's behalf, the command must be able to read by itself.

use rustix::io::Errno;

/// Whether this thread has rights that a command has not.
#[derive(Debug)]
pub(super) struct Rights {
    sets: Option<[Set; 2]>,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Set {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

#[repr(C)]
struct Header {
    version: u32,
    thread: i32,
}

/// The version whose sets are two words long.
const VERSION: u32 = 0x2008_0522;

impl Rights {
    /// Those that this thread has now.
    #[expect(unsafe_code, reason = "capabilities have no safe wrapper")]
    pub(super) fn now() -> Self {
        let mut sets = [Set::default(); 2];
        let header = Header { version: VERSION, thread: 0 };
        // SAFETY: both are laid out as the kernel wants them.
        let got = unsafe { libc::syscall(libc::SYS_capget, &raw const header, sets.as_mut_ptr()) };
        let some = sets.iter().any(|set| set.effective != 0);
        Self { sets: (got == 0 && some).then_some(sets) }
    }

    /// Does `work` without them.
    pub(super) fn without<T>(&self, work: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
        let Some(sets) = &self.sets else { return work() };
        let none = sets.map(|set| Set { effective: 0, ..set });
        if !set(&none) {
            return Err(Errno::ACCESS);
        }
        let done = work();
        set(sets);
        done
    }
}

#[expect(unsafe_code, reason = "capabilities have no safe wrapper")]
fn set(sets: &[Set; 2]) -> bool {
    let header = Header { version: VERSION, thread: 0 };
    // SAFETY: both are laid out as the kernel wants them; only this thread is meant.
    unsafe { libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr()) == 0 }
}
