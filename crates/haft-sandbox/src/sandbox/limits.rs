//! How much a command may use, so that one that runs wild ends before the machine does.

use std::sync::OnceLock;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const GIB: u64 = 1 << 30;

/// What one process may use; for `processes` all of the user's count together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Bytes of memory of its own.
    pub memory: u64,
    /// Bytes in one file.
    pub file_size: u64,
    /// Open files.
    pub files: u64,
    /// Processes and threads; root has no such limit.
    pub processes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory: memory() / 4 * 3, file_size: 32 * GIB, files: 65_536, processes: 16_384 }
    }
}

/// Holds the calling process, and all that it starts, to `limits`. No limit is ever raised.
///
/// Nothing here allocates, locks or panics: it is called between fork and exec.
pub(crate) fn apply(limits: &Limits) -> Result<(), Errno> {
    lower(Resource::Core, 0)?;
    lower(Resource::Nofile, limits.files)?;
    lower(Resource::Fsize, limits.file_size)?;
    lower(Resource::Data, limits.memory)?;
    if !rustix::process::getuid().is_root() {
        lower(Resource::Nproc, limits.processes)?;
    }
    Ok(())
}

fn lower(resource: Resource, most: u64) -> Result<(), Errno> {
    let Rlimit { current, maximum } = getrlimit(resource);
    // None stands for no limit at all.
    let maximum = maximum.map_or(most, |maximum| maximum.min(most));
    let current = current.map_or(maximum, |current| current.min(maximum));
    setrlimit(resource, Rlimit { current: Some(current), maximum: Some(maximum) })
}

/// Bytes of memory that this machine, or the container around Haft, has.
fn memory() -> u64 {
    static MEMORY: OnceLock<u64> = OnceLock::new();
    *MEMORY.get_or_init(|| {
        let bounds = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
        let bound = bounds.iter().find_map(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok());
        physical().unwrap_or(8 * GIB).min(bound.unwrap_or(u64::MAX)).max(GIB)
    })
}

#[expect(unsafe_code, reason = "sysconf has no safe wrapper")]
fn physical() -> Option<u64> {
    // SAFETY: sysconf only answers.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    u64::try_from(pages).ok()?.checked_mul(u64::try_from(size).ok()?)
}
